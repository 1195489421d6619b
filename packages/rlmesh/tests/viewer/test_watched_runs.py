"""Every kind of run, watched: what is seen while it goes on, and that it does what it is asked."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from numpy.typing import NDArray
from rlmesh import View
from rlmesh.runs.hooks import RunHooks, StepEvent
from rlmesh.transport.png import decode_png

if TYPE_CHECKING:
    from packages.rlmesh.tests.viewer.conftest import Painter

PRESS = rlmesh.numpy.Model(lambda observation: 1)


def asked(view: View, path: str, method: str = "GET") -> bytes:
    assert view.address is not None
    request = urllib.request.Request(view.address + path, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        content: bytes = answer.read()
        return content


class Looker(RunHooks):
    """Looks at the page after one step, and asks for something there."""

    def __init__(self, view: View, at: int, *paths: str) -> None:
        self._view, self._at, self._paths = view, at, paths
        self.hud: Mapping[str, Any] = {}
        self.sources: list[str] = []
        self.frame: NDArray[np.uint8] | None = None

    def on_step(self, event: StepEvent) -> None:
        if event.step + 1 == self._at and self.frame is None:
            self.hud = json.loads(asked(self._view, "hud.json"))
            self.sources = json.loads(asked(self._view, "sources.json"))["sources"]
            self.frame = decode_png(asked(self._view, "frame"))
            for path in self._paths:
                asked(self._view, path, "POST")


@pytest.fixture
def view() -> View:
    return View("http", port=0, format="png", fps=1000)


def test_a_local_run_is_watched(painter: type[Painter], view: View) -> None:
    looker = Looker(view, 5)
    result = rlmesh.run(PRESS, painter(), episodes=2, view=view, hooks=looker)
    assert result.success_rate == 1.0
    assert looker.sources == ["render", "camera"]
    assert looker.frame is not None
    assert looker.frame.shape == (48, 64, 3)
    assert (looker.hud["episodes"], looker.hud["episode"], looker.hud["seed"]) == (2, 0, 0)
    assert view.address is None


def test_a_remote_run_is_watched_through_its_handle(painter: type[Painter], view: View) -> None:
    looker = Looker(view, 5)
    with rlmesh.EnvServer(painter, "tcp://127.0.0.1:0") as server:
        result = rlmesh.run(PRESS, server.address, episodes=1, view=view, hooks=looker)
    assert result.episodes[0].steps == 20
    assert looker.frame is not None
    assert looker.frame.shape == (48, 64, 3)


def test_lanes_are_watched_as_a_grid(painter: type[Painter], view: View) -> None:
    looker = Looker(view, 5)
    with rlmesh.EnvServer([painter() for _ in range(4)], "tcp://127.0.0.1:0") as server:
        result = rlmesh.run(PRESS, server.address, episodes=4, view=view, hooks=looker)
    assert len(result.episodes) == 4
    assert looker.sources[:2] == ["render", "camera"]
    assert looker.frame is not None
    assert looker.frame.shape == (96, 128, 3)


def test_a_served_model_is_watched(painter: type[Painter], view: View) -> None:
    looker = Looker(view, 5)
    served = rlmesh.numpy.Model(lambda observation: 1)
    address = served.start("tcp://127.0.0.1:0")
    try:
        with rlmesh.RemoteModel(address) as model:
            result = rlmesh.run(model, painter(), episodes=1, view=view, hooks=looker)
    finally:
        served.shutdown()
    assert result.episodes[0].steps == 20
    assert looker.frame is not None


def test_an_episode_that_is_skipped_is_truncated(painter: type[Painter], view: View) -> None:
    looker = Looker(view, 3, "skip")
    result = rlmesh.run(PRESS, painter(), episodes=2, view=view, hooks=looker)
    first, second = result.episodes
    assert (first.truncated, first.terminated, first.outcome.value) == (True, False, "truncated")
    assert 3 <= first.steps <= 5
    assert (second.terminated, second.steps) == (True, 20)


def test_a_run_that_is_ended_returns_what_it_has(painter: type[Painter], view: View) -> None:
    class Late(Looker):
        def on_step(self, event: StepEvent) -> None:
            if event.episode == 2:
                super().on_step(event)

    looker = Late(view, 3, "quit")
    result = rlmesh.run(PRESS, painter(), episodes=50, view=view, hooks=looker)
    assert result.stopped is not None
    assert [one.outcome.value for one in result.episodes[:2]] == ["success", "success"]
    assert len(result.episodes) <= 3


def test_watching_changes_nothing_that_is_measured(painter: type[Painter], view: View) -> None:
    plain = rlmesh.run(PRESS, painter(), seeds=[3, 4])
    watched = rlmesh.run(PRESS, painter(), seeds=[3, 4], view=view)
    facts: Callable[[rlmesh.RunResult], list[object]] = lambda result: [  # noqa: E731
        (one.seed, one.steps, one.reward, one.outcome) for one in result.episodes
    ]
    assert facts(plain) == facts(watched)


def test_a_session_is_watched_until_it_is_closed(painter: type[Painter], view: View) -> None:
    with rlmesh.session(PRESS, painter(), view=view) as session:
        observation, _ = session.reset(seed=5)
        for _ in range(4):
            observation, *_ = session.step(session.predict(observation))
        hud = json.loads(asked(view, "hud.json"))
        assert (hud["step"], hud["seed"]) == (4, 5)
        assert decode_png(asked(view, "frame")).shape == (48, 64, 3)
        asked(view, "skip")
        *_, truncated, _ = session.step(1)
        assert truncated
        assert session.done
        session.run(episodes=1)
        assert json.loads(asked(view, "episodes.json"))["episodes"][-1]["outcome"] == "success"
    assert view.address is None


def test_a_model_that_raises_leaves_no_page_behind(painter: type[Painter], view: View) -> None:
    def broken(observation: object) -> int:
        assert view.address is not None
        raise ArithmeticError("no answer")

    with pytest.raises(ArithmeticError, match="no answer"):
        rlmesh.run(rlmesh.numpy.Model(broken), painter(), view=view)
    assert view.address is None


@pytest.mark.parametrize("view", ["nowhere", 5])
def test_a_view_that_is_none_is_refused_before_anything_is_opened(
    painter: type[Painter], view: object
) -> None:
    def make() -> Painter:
        raise AssertionError("nothing is to be opened")

    with pytest.raises(rlmesh.ConfigurationError, match="view is"):
        rlmesh.run(PRESS, make, view=view)
    with pytest.raises(rlmesh.ConfigurationError, match="view is"):
        rlmesh.session(PRESS, make, view=view)


def test_the_command_shows_a_run() -> None:
    command = [sys.executable, "-m", "rlmesh", "run", "random", "CartPole-v1", "--episodes", "2"]
    done = subprocess.run(
        [*command, "--view", "http:0"], capture_output=True, text=True, timeout=50, check=True
    )
    assert "watch the run at http://127.0.0.1:" in done.stderr
    assert "Warning" not in done.stderr
    assert "2 of 2 scored" in done.stdout
