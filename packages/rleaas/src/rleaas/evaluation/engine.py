"""Evaluation: a policy plays the asked seeds, every episode with a typed outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rlcore import RunInterrupted
from rlmesh.runs.hooks import RunHooks, StepEvent

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult, RunResult


class _StopWhenAsked(RunHooks):
    def __init__(self, stop_requested: Callable[[], bool]) -> None:
        self._stop_requested = stop_requested

    def on_step(self, event: StepEvent) -> None:
        # A run ends early, with a valid partial result, by interrupt only.
        if self._stop_requested():
            raise KeyboardInterrupt


def evaluate(
    model: object,
    env: object,
    seeds: Sequence[int],
    *,
    max_episode_steps: int | None = None,
    success_threshold: float | None = None,
    on_episode: Callable[[EpisodeResult], object] | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> tuple[RunResult, bool]:
    """Play one episode per seed; returns the result and whether it was stopped before the end.

    Raises:
        RunFailed: the run could not go on and no episode has a score.
        rlcore.RLMeshException: the environment cannot be reached or is another one.
    """
    import rlmesh

    try:
        result = rlmesh.run(
            model,
            env,
            seeds=seeds,
            max_episode_steps=max_episode_steps,
            success_threshold=success_threshold,
            on_episode=on_episode,
            hooks=_StopWhenAsked(stop_requested),
            progress=False,
        )
    except RunInterrupted as interrupted:
        # rlcore cannot name the class: it knows nothing of runs.
        return cast("RunResult", interrupted.partial), True
    return result, False
