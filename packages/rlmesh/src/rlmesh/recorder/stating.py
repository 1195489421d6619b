"""Whether what a bundle's result says about an episode is what its steps say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from rlmesh.recorder.differing import Gap
from rlmesh.recorder.records import EpisodeRecord, WorkloadRecord
from rlmesh.recorder.trajectory import Trajectory
from rlmesh.runs.grading import reported_success

Wrong = tuple[str, Gap]


def stated(episode: EpisodeRecord, recorded: Trajectory) -> Wrong | None:
    """Return what the result says otherwise than the recorded steps, and where; or None.

    Of an episode without a score only the number of its steps is compared.
    """
    if episode.steps != recorded.steps:
        return _wrong("steps", recorded.steps, episode.steps)
    if not episode.outcome.scored:
        return None
    total, rewards = 0.0, recorded.rewards.tolist()
    for reward in rewards:
        total += reward  # in the order in which a run does
    # The last digits depend on how whoever wrote the bundle sums up.
    rounding = 1e-9 * math.fsum(abs(reward) for reward in rewards)
    if math.isfinite(total) and not abs(episode.reward - total) <= rounding:
        return _wrong("reward", total, episode.reward)
    for name, last in (
        ("terminated", bool(recorded.terminated[-1])),
        ("truncated", bool(recorded.truncated[-1])),
    ):
        if getattr(episode, name) != last:
            return _wrong(name, last, getattr(episode, name))
    return None


def grading_of(
    workload: WorkloadRecord,
) -> Callable[[EpisodeRecord, Mapping[str, object]], Wrong | None]:
    """Return what compares an episode's success with its last info.

    A run that had a criterion of its own, and what was recorded without a run, cannot be judged.
    """
    run: Any = workload.details.get("run")  # Any: JSON, which was checked when it was read
    settings: Mapping[str, object] = {} if run is None else run.get("settings", {})
    judged = run is not None and not settings.keys() & {"success", "success_threshold"}

    def graded(episode: EpisodeRecord, info: Mapping[str, object]) -> Wrong | None:
        if not judged or not episode.outcome.scored:
            return None
        success = reported_success(info)
        if success == episode.success:
            return None
        return "success", Gap("$", str(episode.success), str(success))

    return graded


def _wrong(name: str, recorded: object, says: object) -> Wrong:
    return f"result.{name}", Gap("$", str(recorded), str(says))
