import io
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.progress import ProgressLine, RunProgress, Tracker, watcher
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.statistics import wilson_interval


def result(index: int, **facts: Any) -> EpisodeResult:  # Any: the fields' own types
    values: dict[str, Any] = {"seed": index, "steps": 100, "reward": 10.0}
    return EpisodeResult(index=index, terminated=True, truncated=False, **{**values, **facts})


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_call_after_each_episode_counts_scores_and_failures() -> None:
    seen: list[RunProgress] = []
    clock = Clock()
    tracker = Tracker(4, watcher(seen.append), clock)

    clock.now = 1.0
    tracker.episode(result(0, success=True))
    clock.now = 2.0
    tracker.steps(50)
    tracker.episode(result(1, outcome=Outcome.ENV_ERROR))

    assert [(item.done, item.failed, item.steps) for item in seen] == [(1, 0, 100), (2, 1, 200)]
    assert (seen[1].mean_reward, seen[1].success_rate, seen[1].eta_s) == (10.0, 1.0, 2.0)
    assert str(seen[1]) == (
        "episode 2/4  mean reward 10.00  success 100% [21%, 100%]  1 failed  100 steps/s  ETA 0:02"
    )


def test_the_terminal_line_is_rewritten_in_place_and_left_standing() -> None:
    stream, clock = io.StringIO(), Clock()
    tracker = Tracker(2, ProgressLine(stream), clock)

    clock.now = 0.05
    tracker.steps(1)
    clock.now = 0.2
    tracker.steps(20)
    clock.now = 65.0
    tracker.episode(result(0))
    tracker.episode(result(1))
    tracker.end()

    lines = [line.rstrip() for line in stream.getvalue().split("\r")]
    assert lines == [
        "",
        "episode 0/2  100 steps/s",
        "episode 1/2  mean reward 10.00  2 steps/s  ETA 1:05",
        "episode 2/2  mean reward 10.00 [10.00, 10.00]  3 steps/s  took 1:05",
    ]
    assert stream.getvalue().endswith("\n")


def test_nothing_is_shown_where_stderr_is_no_terminal() -> None:
    assert watcher(None) is None
    assert watcher(False) is None
    assert isinstance(watcher(True), ProgressLine)


def test_a_line_that_was_never_written_is_not_ended() -> None:
    stream = io.StringIO()
    ProgressLine(stream).end()
    assert stream.getvalue() == ""


def test_the_interval_that_runs_along_is_the_normal_one_of_the_mean() -> None:
    rewards = np.random.default_rng(0).normal(5.0, 2.0, 50)
    seen: list[RunProgress] = []
    tracker = Tracker(50, watcher(seen.append), Clock())

    for index, reward in enumerate(rewards):
        tracker.episode(result(index, reward=float(reward), success=bool(reward > 5)))

    half = 1.959964 * rewards.std(ddof=1) / 50**0.5
    low, high = rewards.mean() - half, rewards.mean() + half
    assert seen[-1].mean_reward_interval == pytest.approx((low, high))
    assert seen[-1].success_interval == wilson_interval(int((rewards > 5).sum()), 50)
    assert seen[0].mean_reward_interval is None


def test_an_episode_that_does_not_tell_success_ends_the_rate() -> None:
    seen: list[RunProgress] = []
    tracker = Tracker(2, watcher(seen.append), Clock())

    tracker.episode(result(0, success=True))
    tracker.episode(result(1))

    assert [item.success_rate for item in seen] == [1.0, None]
    assert seen[1].success_interval is None


def test_episodes_of_an_earlier_sitting_are_done_and_say_nothing_about_the_pace() -> None:
    seen: list[RunProgress] = []
    clock = Clock()
    tracker = Tracker(10, watcher(seen.append), clock)

    tracker.resume(result(index) for index in range(6))
    clock.now = 3.0
    tracker.episode(result(6))

    assert (seen[0].done, seen[0].resumed, seen[0].steps, seen[0].eta_s) == (7, 6, 100, 9.0)
    assert "episode 7/10" in str(seen[0])
    assert "6 resumed" in str(seen[0])


def test_steps_of_all_workers_make_the_pace() -> None:
    stream, clock = io.StringIO(), Clock()
    tracker = Tracker(2, ProgressLine(stream), clock)

    with ThreadPoolExecutor(1) as other:
        other.submit(tracker.steps, 30).result()
        clock.now = 0.5
        tracker.steps(20)

    assert stream.getvalue().split("\r")[-1].rstrip() == "episode 0/2  100 steps/s"


def test_in_a_notebook_one_output_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            shown.append(("update", data["text/plain"]))

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        shown.append(("display", data["text/plain"]))
        return Handle()

    ipython = types.ModuleType("IPython")
    vars(ipython)["get_ipython"] = lambda: types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))

    tracker = Tracker(2, watcher(None), Clock())
    tracker.episode(result(0))
    tracker.episode(result(1))
    tracker.end()

    assert [kind for kind, _ in shown] == ["display", "update"]
    assert shown[1][1].startswith("episode 2/2")
    assert watcher(False) is None
