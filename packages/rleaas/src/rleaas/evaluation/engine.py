"""Evaluation: a policy plays what was asked, every episode with a typed outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from rlcore import RunInterrupted
from rlmesh.runs.hooks import RunHooks, StepEvent

from rleaas.evaluation.planned_env import PlannedEnv
from rleaas.evaluation.plans import EpisodePlan

if TYPE_CHECKING:
    import gymnasium
    from rlmesh.runs.results import EpisodeResult, RunResult


class _StopWhenAsked(RunHooks):
    def __init__(self, stop_requested: Callable[[], bool]) -> None:
        self._stop_requested = stop_requested

    def on_step(self, event: StepEvent) -> None:
        # A run ends early, with a valid partial result, by interrupt only.
        if self._stop_requested():
            raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class _Opening:
    target: Callable[[], object]
    plans: Sequence[EpisodePlan]

    def __call__(self) -> object:
        # Any: observations and actions are whatever the environment's spaces say.
        return PlannedEnv(cast("gymnasium.Env[Any, Any]", self.target()), self.plans)


def evaluate(
    model: object,
    target: object,
    plans: Sequence[EpisodePlan],
    *,
    policy_seeds: Sequence[int] | None = None,
    num_workers: int = 1,
    max_episode_steps: int | None = None,
    success_threshold: float | None = None,
    on_episode: Callable[[EpisodeResult], object] | None = None,
    hooks: Sequence[RunHooks] = (),
    stop_requested: Callable[[], bool] = lambda: False,
) -> tuple[RunResult, bool]:
    """Play each plan once; returns the result and whether it was stopped before the end.

    Episodes are numbered by their place among the plans.

    Args:
        model: what `rlmesh.run` takes for one.
        target: what opens the environment, once for each worker, and again where one was lost; or
            anything else that `rlmesh.run` plays on, which then is told no scenarios.
        plans: the episodes.
        policy_seeds: what the policy's context has for each; by default their own `run_seed`.
        num_workers: how many environments are played on at once.
        max_episode_steps: where an episode is cut off.
        success_threshold: the return from which an episode is a success, whatever else is said.
        on_episode: told of each result as it comes.
        hooks: told of all that happens.
        stop_requested: asked at each step.

    Raises:
        RunFailed: the run could not go on.
        rlcore.RLMeshException: the environment cannot be reached or is another one.
    """
    import rlmesh

    env = [_Opening(target, plans)] * num_workers if callable(target) else target
    try:
        result = rlmesh.run(
            model,
            env,
            seeds=[plan.run_seed for plan in plans] if policy_seeds is None else policy_seeds,
            max_episode_steps=max_episode_steps,
            success_threshold=success_threshold,
            on_episode=on_episode,
            hooks=[*hooks, _StopWhenAsked(stop_requested)],
            progress=False,
        )
    except RunInterrupted as interrupted:
        # rlcore cannot name the class: it knows nothing of runs.
        return cast("RunResult", interrupted.partial), True
    return result, False
