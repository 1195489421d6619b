"""The report of an evaluation, from the run that it was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlmesh.runs.results import EpisodeResult, RunResult

from rleaas.models.evaluation import EpisodeRecord


def results_of(result: RunResult) -> dict[str, object]:
    """An evaluation's `results`: coverage first, then numbers with intervals.

    The keys are those of `rleaas.models.EvaluationReport`; the server puts the episodes in, which
    were reported one by one.
    """
    coverage = result.coverage
    success, returns = result.success_interval, result.mean_reward_interval
    return {
        "asked": coverage.asked,
        "scored": coverage.scored,
        "failed": coverage.failed,
        "success_rate": result.success_rate,
        "success_interval": None if success is None else list(success),
        "mean_return": _number(result.mean_reward),
        "return_interval": None if returns is None else list(returns),
        "std_return": _number(result.std_reward),
        "overall_score": _number(result.mean_reward),
        "pass_rate": result.success_rate,
        "stopped": result.stopped,
        "checkpoint_sha256": (result.model_digest or "").removeprefix("sha256:") or None,
        "package_versions": dict(result.package_versions),
    }


def episode_record(episode: EpisodeResult) -> EpisodeRecord:
    """One episode as reports keep it."""
    return EpisodeRecord(
        index=episode.index,
        seed=episode.seed,
        steps=episode.steps,
        reward=episode.reward,
        outcome=episode.outcome.value,
        success=episode.success,
        terminated=episode.terminated,
        truncated=episode.truncated,
        error=episode.error,
        duration_s=episode.duration_s,
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
