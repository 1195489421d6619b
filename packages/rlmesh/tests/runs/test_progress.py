import io
from typing import Any

from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.progress import ProgressLine, RunProgress, Tracker, watcher
from rlmesh.runs.results import EpisodeResult


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
        "episode 2/4  mean reward 10.00  success 100%  1 failed  100 steps/s  ETA 0:02"
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
        "episode 2/2  mean reward 10.00  3 steps/s  took 1:05",
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
