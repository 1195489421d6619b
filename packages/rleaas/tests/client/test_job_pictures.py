"""Watching a job and drawing its curve: what is asked, shown and written."""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rlcore import ConfigurationError, MissingDependencyError, PlatformUnreachable
from rleaas._flow.wire import Reply
from rleaas.charts.learning_curve import LearningCurve
from rleaas.charts.screen import Notebook, Terminal, html_of
from rleaas.charts.watched import Watched
from rleaas.models import Event, TrainingJob
from rleaas.resources.job_pictures import watch_job
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.testing import Offline, converse, reply

STREAM = Reply(200, b"", {"content-type": "text/event-stream"})


def job(**facts: object) -> dict[str, object]:
    return {
        "job_id": "j",
        "status": "running",
        "environment_name": "E",
        "algorithm": "PPO",
        "num_episodes": 40,
        **facts,
    }


def handle(**facts: object) -> TrainingJobResource[Offline]:
    return TrainingJobResource(Offline(), TrainingJob.model_validate(job(**facts)))


def point(episode: int, **facts: object) -> dict[str, object]:
    return {
        "episode": episode,
        "episode_reward": float(episode % 7),
        "timestep": 9 * episode,
    } | facts


def told(number: int, kind: str, **data: object) -> bytes:
    event = {"id": number, "kind": kind, "subject": "training:j", "job_id": "j", "data": data}
    return f"id: {number}\ndata: {json.dumps(event)}\n\n".encode()


class Sheet:
    """A screen that notes what is shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int]] = []
        self.said: list[str] = []
        self.closed = 0

    def show(self, job: Watched) -> None:
        self.shown.append((job.record.status, len(job.curve)))

    def close(self) -> None:
        self.closed += 1

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def watching(sheet: Sheet, driver: Offline, seen: Callable[[TrainingJob], object] = print) -> Any:
    record = TrainingJob.model_validate(job(status="pending"))
    return watch_job(record, 60, sheet, driver.context, seen)


def test_watching_follows_the_events_and_comes_back_after_a_cut() -> None:
    sheet, driver, records = Sheet(), Offline(), list[TrainingJob]()
    nothing = reply({"events": [], "cursor": 6})

    talk = converse(
        watching(sheet, driver, records.append),
        [
            reply(job()),
            STREAM,
            told(1, "started") + told(2, "metric", **point(1)),
            PlatformUnreachable("cut", retryable=True),
            STREAM,
            told(3, "metric", **point(2)) + told(4, "checkpoint_saved", episode=2),
            told(5, "completed"),
            nothing,
            reply(job(status="completed", progress=100)),
        ],
        driver.clock,
    )

    assert sheet.shown[0] == ("pending", 0)
    assert sheet.shown[-1] == ("completed", 2)
    assert sheet.closed == 1
    assert records[-1].status == "completed"
    streams = [one for one in talk.requests if "event-stream" in one.headers.get("Accept", "")]
    assert [one.headers.get("Last-Event-ID") for one in streams] == [None, "2"]


def test_who_stops_watching_is_told_that_the_job_goes_on() -> None:
    sheet, driver = Sheet(), Offline()
    flow = watching(sheet, driver)
    next(flow)

    flow.close()  # what a driver does when Ctrl-C or a cancellation comes

    assert sheet.said == ["job j goes on; watch() shows it again, cancel() ends it"]
    assert sheet.closed


def watched(*events: tuple[str, dict[str, object]]) -> Watched:
    seen = Watched(TrainingJob.model_validate(job(run_name="<b>\x1b[2J")))
    for number, (kind, data) in enumerate(events, 1):
        seen.hear(Event(id=number, kind=kind, subject="training:j", data=data))
    return seen


EVENTS: list[tuple[str, dict[str, object]]] = [
    ("started", {}),
    *(("metric", point(n, avg_reward=3.25, success_rate=0.5, tier=1)) for n in range(1, 31)),
    ("metric", {"episode": 30, "metrics": {"entropy": 0.69, "approx_kl": 0.01}}),
    ("checkpoint_saved", {"episode": 20}),
    ("reward_collapse_alert", {"avg_reward": 1.5}),
]


def test_a_terminal_shows_a_table_and_a_curve() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=90, color_system=None)
    screen = Terminal(console)
    screen.show(watched(*EVENTS))
    screen.close()
    text = file.getvalue()

    for words in (
        "PPO on E",
        "30 of 40",
        "3.25",
        "entropy",
        "reward_collapse_alert",
        "mean reward",
    ):
        assert words in text
    assert "\x1b[2J" not in text
    assert any("\u2800" <= one <= "\u28ff" for one in text)  # braille: the curve


def test_a_pipe_gets_the_last_picture_alone() -> None:
    file = io.StringIO()
    console = Console(file=file, width=90)
    screen = Terminal(console)
    screen.show(watched())
    screen.show(watched(*EVENTS))
    screen.close()
    screen.close()
    text = file.getvalue()

    assert text.count("PPO on E") == 1
    assert "30 of 40" in text


def test_a_notebook_has_one_display_that_is_drawn_anew() -> None:
    calls: list[tuple[str, Any]] = []

    class Handle:
        def update(self, picture: dict[str, str], raw: bool) -> None:
            calls.append(("update", picture["text/html"]))

    def display(picture: dict[str, str], **_: object) -> Handle:
        calls.append(("display", picture))
        return Handle()

    screen = Notebook(display)
    screen.show(watched())
    screen.show(watched(*EVENTS))
    screen.say("goes on")

    assert [kind for kind, _ in calls] == ["display", "update", "display"]
    assert "<polyline" in calls[1][1]
    assert "<b>" not in html_of(watched(*EVENTS))
    assert "&lt;b&gt;" in calls[1][1]


def test_episodes_after_a_restarts_checkpoint_are_drawn_once() -> None:
    again = watched(*EVENTS, ("started", {"attempt": 2, "episode": 20}))
    assert [one.episode for one in again.curve.episodes] == list(range(1, 21))
    again.hear(
        Event(id=99, kind="metric", subject="training:j", data=point(21, episode_reward=9.0))
    )
    assert again.curve.episodes[-1].reward == 9.0


def test_the_band_is_one_standard_deviation_of_the_window() -> None:
    rewards = [4.0, 8.0, 15.0, 16.0, 23.0, 42.0]
    curve = LearningCurve({"episode": n, "episode_reward": r} for n, r in enumerate(rewards, 1))

    band = curve.band(3)

    parts = [rewards[max(0, n - 2) : n + 1] for n in range(6)]
    assert band.mean == pytest.approx([statistics.fmean(one) for one in parts])
    assert band.high == pytest.approx(
        [statistics.fmean(one) + statistics.pstdev(one) for one in parts]
    )
    assert curve.band(3, 2).mean == band.mean[::2]
    with pytest.raises(ConfigurationError, match="window 0"):
        curve.band(0)


def curve_of(points: list[dict[str, object]]) -> Reply:
    return reply({"metrics": points, "cursor": None})


@pytest.mark.parametrize(
    ("name", "magic"), [("a.png", b"\x89PNG"), ("new/a.svg", b"<?xml"), ("a.PDF", b"%PDF")]
)
def test_a_plot_is_written_as_its_name_says(name: str, magic: bytes, tmp_path: Path) -> None:
    points = [point(n, success_rate=n / 40, tier=1 + n // 25) for n in range(1, 41)]

    talk = converse(
        handle().plot(tmp_path / name, window=5),
        [reply(job(run_name="$x_{ 回")), curve_of(points)],
    )

    assert (tmp_path / name).read_bytes().startswith(magic)
    axes: Any = talk.result.axes  # matplotlib leaves its types open
    upper, lower = axes
    assert upper.get_title() == "PPO on E: $x_{ 回"
    assert upper.lines[0].get_ydata()[:3].tolist() == [1.0, 2.0, 3.0]
    assert upper.lines[1].get_ydata()[4] == pytest.approx(3.0)
    assert len(upper.collections) == 1  # the band
    assert [one.get_text() for one in upper.texts] == ["tier 2"]
    assert lower.get_ylabel() == "success rate"


def test_a_plot_of_a_running_job_is_a_figure_that_a_notebook_shows() -> None:
    talk = converse(handle().plot(over="timestep"), [reply(job()), curve_of([point(1), point(2)])])

    picture: Any = talk.result
    (axes,) = picture.axes
    assert axes.lines[0].get_xdata().tolist() == [9.0, 18.0]
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no finished episode to draw; it is running"):
        converse(handle().plot(tmp_path / "a.png"), [reply(job()), curve_of([])])
    with pytest.raises(ConfigurationError, match="no ending of a picture"):
        converse(handle().plot(tmp_path / "a.jpeg2"), [])
    with pytest.raises(ConfigurationError, match="window 0"):
        converse(handle().plot(window=0), [])
    with pytest.raises(ConfigurationError, match="'epoch'"):
        converse(handle().plot(over="epoch"), [])  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_what_draws_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(name: str) -> None:
        assert name in ("matplotlib", "rich", "plotext")

    monkeypatch.setattr("rleaas.charts.picture.find_spec", find_none)
    monkeypatch.setattr("rleaas.charts.screen.find_spec", find_none)

    with pytest.raises(MissingDependencyError, match="rleaas\\[plot\\]"):
        converse(handle().plot(), [])
    with pytest.raises(MissingDependencyError, match="rleaas\\[cli,plot\\]"):
        converse(handle().watch(), [])


def test_a_plot_loads_no_pyplot() -> None:
    code = (
        "import sys\n"
        "from rleaas.charts.learning_curve import LearningCurve\n"
        "from rleaas.charts.picture import draw, png_of\n"
        "curve = LearningCurve([{'episode': n, 'episode_reward': 1.0} for n in range(3)])\n"
        "assert png_of(draw(curve, 'x', over='episode'))[1:4] == b'PNG'\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert ran.stdout == "False\n"
