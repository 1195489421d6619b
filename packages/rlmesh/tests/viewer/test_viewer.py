from __future__ import annotations

import json
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rlmesh.runs.frames import FrameSource
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.views import ViewHooks, open_view
from rlmesh.viewer import viewer as viewer_room
from rlmesh.viewer.view import View
from rlmesh.viewer.viewer import Viewer

if TYPE_CHECKING:
    from packages.rlmesh.tests.viewer.conftest import Context, Painter

Events = Callable[..., StepEvent]


class Clock:
    """Time as a test says it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(viewer_room, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def page() -> Iterator[Callable[..., Viewer]]:
    """Makes a viewer with a page on a free port; all are closed at the end."""
    opened: list[Viewer] = []

    def make(**changes: Any) -> Viewer:
        made = Viewer(View("http", port=0, format="png", **changes), episodes=3)
        opened.append(made)
        return made

    yield make
    for viewer in opened:
        viewer.close()


def start(viewer: Viewer, env: Painter, context_of: Callable[[Painter], Context]) -> None:
    viewer.on_run_start(context_of(env))
    observation, _ = env.reset(seed=7)
    viewer.on_reset(observation, episode=0, seed=7)


def address_of(viewer: Viewer) -> str | None:
    return viewer.view.address


def red(viewer: Viewer) -> int:
    _, picture = viewer.screen.look()
    assert picture is not None
    return int(picture[0, 0, 0])


def test_a_viewer_is_hooks_with_a_control() -> None:
    viewer = open_view("http:0", episodes=3)
    assert isinstance(viewer, ViewHooks)
    assert not viewer.takes_terminal
    viewer.close()


@pytest.mark.parametrize(
    ("view", "takes"), [("terminal", True), ("both", True), ("http", False), (True, True)]
)
def test_a_viewer_says_whether_the_terminal_is_its_own(view: object, takes: bool) -> None:
    viewer = open_view(view)
    assert viewer is not None
    assert viewer.takes_terminal is takes


def test_the_address_is_printed_and_known_while_the_page_is_there(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    capfd: pytest.CaptureFixture[str],
) -> None:
    viewer = page()
    assert address_of(viewer) is None
    start(viewer, painter(), context_of)
    address = address_of(viewer)
    assert address is not None
    assert capfd.readouterr() == ("", f"watch the run at {address}\n")
    with urllib.request.urlopen(address + "hud.json") as answer:
        assert json.load(answer)["episodes"] == 3
    viewer.close()
    assert address_of(viewer) is None
    viewer.close()


def test_frames_are_drawn_at_most_so_often(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page(fps=10)
    start(viewer, env, context_of)
    assert env.renders == 1
    for step in range(1000):  # ten seconds, a hundred steps in each
        viewer.screen.look()
        clock.now += 0.01
        env.step(0)
        viewer.on_step(step_event(step))
    assert 99 <= env.renders <= 102
    viewer.close()


def test_hardly_anything_is_drawn_while_nobody_looks(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page()
    start(viewer, env, context_of)
    for step in range(1000):
        clock.now += 0.01
        viewer.on_step(step_event(step))
    assert 9 <= env.renders <= 11
    viewer.close()


def test_slow_steps_are_all_drawn(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page(fps=10)
    start(viewer, env, context_of)
    for step in range(10):
        viewer.screen.look()
        clock.now += 0.15
        env.step(0)
        viewer.on_step(step_event(step))
        assert red(viewer) == step + 1
    viewer.close()


def test_a_run_that_stands_still_shows_where_it_stands(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page()
    start(viewer, env, context_of)
    env.step(0)
    viewer.on_step(step_event(0))  # no frame is due
    assert red(viewer) == 0
    viewer.control.step()
    viewer.control.wait()
    assert red(viewer) == 1
    viewer.close()


def test_another_source_can_be_looked_at(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page(source="camera")
    start(viewer, env, context_of)
    assert viewer.screen.labels == ("render", "camera")
    env.step(0)
    clock.now += 1
    viewer.on_step(step_event(0))
    _, picture = viewer.screen.look()
    assert picture is not None
    assert picture.shape == (24, 32, 3)
    assert picture[0, 0].tolist() == [0, 1, 0]
    assert env.renders == 0
    viewer.screen.select(0)
    clock.now += 1
    viewer.on_step(step_event(1))
    assert red(viewer) == 1
    viewer.close()


def test_all_lanes_are_shown_as_a_grid_and_each_alone(
    page: Callable[..., Viewer], context_of: Callable[[Painter], Context], painter: type[Painter],
    clock: Clock, step_event: Events,
) -> None:  # fmt: skip
    viewer = page()
    context = context_of(painter())
    pick = context.sources[1].pick
    context.num_envs = 2
    context.sources = (
        FrameSource("camera", "observation", pick=pick),
        FrameSource("camera[1]", "observation", pick=pick, lane=1),
    )
    viewer.on_run_start(context)
    for lane in range(2):
        clock.now += 1
        viewer.on_step(step_event(9 + lane, lane=lane, episode=lane))
    _, picture = viewer.screen.look()
    assert picture is not None
    assert picture.shape == (24, 64, 3)
    assert (int(picture[0, 0, 1]), int(picture[0, 32, 1])) == (10, 11)
    viewer.screen.select(1)
    for lane in range(2):
        clock.now += 1
        viewer.on_step(step_event(20 + lane, lane=lane, episode=lane))
    _, picture = viewer.screen.look()
    assert picture is not None
    assert picture.shape == (24, 32, 3)
    assert int(picture[0, 0, 1]) == 22
    assert viewer.hud.to_dict()["lane"] == 1
    viewer.close()


def test_a_source_that_raises_costs_a_warning_and_nothing_else(
    painter: type[Painter],
    context_of: Callable[[Painter], Context],
    page: Callable[..., Viewer],
    clock: Clock,
    step_event: Events,
) -> None:
    env, viewer = painter(), page()
    start(viewer, env, context_of)
    env.broken = True
    clock.now += 2
    with pytest.warns(UserWarning, match=r"render is shown no more: RuntimeError: the lamp is out"):
        viewer.on_step(step_event(0))
    for step in range(1, 5):
        clock.now += 2
        viewer.on_step(step_event(step))
    assert env.renders == 2
    viewer.close()


def test_a_taken_port_is_a_warning(
    painter: type[Painter], context_of: Callable[[Painter], Context], taken_port: int
) -> None:
    viewer = Viewer(View("http", port=taken_port, format="png"))
    with pytest.warns(UserWarning, match=f"not shown in a browser: 127.0.0.1:{taken_port} cannot"):
        start(viewer, painter(), context_of)
    assert viewer.view.address is None
    viewer.close()


def test_an_environment_with_nothing_to_look_at_is_a_warning_and_still_counted(
    painter: type[Painter], page: Callable[..., Viewer], step_event: Events,
    context_of: Callable[[Painter], Context],
) -> None:  # fmt: skip
    viewer = page()
    context = context_of(painter(render_mode=None))
    context.sources = ()
    with pytest.warns(UserWarning, match="there is nothing to look at"):
        viewer.on_run_start(context)
    viewer.on_step(step_event(0))
    assert viewer.hud.to_dict()["step"] == 1
    viewer.close()


def test_a_source_that_is_not_there_is_a_warning_that_names_those_that_are(
    painter: type[Painter], context_of: Callable[[Painter], Context], page: Callable[..., Viewer]
) -> None:
    viewer = page(source="wrist")
    with pytest.warns(UserWarning, match=r"no source 'wrist' to look at, only: render, camera"):
        viewer.on_run_start(context_of(painter()))
    viewer.close()


def test_a_second_run_of_a_session_is_shown_in_the_same_place(
    painter: type[Painter], context_of: Callable[[Painter], Context], page: Callable[..., Viewer],
    step_event: Events, empty_result: RunResult, episode_result: Callable[..., EpisodeResult],
) -> None:  # fmt: skip
    env, viewer = painter(), page()
    start(viewer, env, context_of)
    address = viewer.view.address
    viewer.on_step(step_event(0))
    viewer.on_episode_end(episode_result(0))
    viewer.on_run_end(empty_result)
    before = viewer.hud.to_dict()["elapsed_s"]
    assert viewer.hud.to_dict()["elapsed_s"] == before
    start(viewer, env, context_of)
    assert viewer.view.address == address
    assert viewer.hud.finished == 1
    viewer.close()


def test_a_skip_for_one_episode_does_not_end_the_next(
    painter: type[Painter], context_of: Callable[[Painter], Context], page: Callable[..., Viewer]
) -> None:
    env, viewer = painter(), page()
    start(viewer, env, context_of)
    viewer.control.skip()
    viewer.on_reset(env.reset()[0], episode=1, seed=8)
    assert not viewer.control.take_skip()
    viewer.close()


def test_closing_a_viewer_that_never_started_does_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Viewer(View("both")).close()


def test_a_picture_that_is_shown_is_nobody_elses(
    painter: type[Painter], context_of: Callable[[Painter], Context], page: Callable[..., Viewer]
) -> None:
    env, viewer = painter(), page(source="camera")
    viewer.on_run_start(context_of(env))
    observation, _ = env.reset()
    viewer.on_reset(observation, episode=0)
    observation["camera"][:] = 255
    _, picture = viewer.screen.look()
    assert picture is not None
    assert not np.any(picture)
    viewer.close()
