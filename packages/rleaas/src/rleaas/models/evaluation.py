"""Evaluations and their reports."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from rlcore import EnvironmentIdentity

from rleaas.models.shape import JsonObject, Moment, Shape, Status

FINISHED_EVALUATION = frozenset({"completed", "failed", "cancelled", "done", "error"})
"""Statuses that an evaluation does not leave; `done` and `error` are older words."""
EVALUATION_FAILURES = frozenset({"failed", "error"})


class EpisodeRecord(Shape):
    """One episode of an evaluation; without a score (`reward` is None) where it failed."""

    index: int
    seed: int | None = None
    steps: int = 0
    reward: float | None = None
    outcome: str
    success: bool | None = None
    terminated: bool | None = None
    truncated: bool | None = None
    error: str | None = None
    duration_s: float | None = None


class Evaluation(Shape):
    """A checkpoint's evaluation on a list of seeds."""

    other_names: ClassVar = {
        "id": ("job_id",),
        "environment": ("environment_name",),
        "environment_name": ("environment",),
    }

    id: str
    status: Status
    name: str | None = None
    purpose: str | None = None
    environment: str | None = None
    environment_name: str | None = None
    environment_version: int | None = None
    contract_digest: str | None = None
    agent_checkpoint_id: str | None = None
    checkpoint_sha256: str | None = None
    scenario_suite_id: str | None = None
    seeds: list[int] = Field(default_factory=list[int])
    max_episode_steps: int | None = None
    success_threshold: float | None = None
    progress: int = 0
    episodes_done: int = 0
    overall_score: float | None = None
    pass_rate: float | None = None
    error: str | None = None
    message: str | None = None
    created_at: Moment | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None

    @property
    def finished(self) -> bool:
        """Whether the evaluation is over."""
        return self.status in FINISHED_EVALUATION

    @property
    def failed_outright(self) -> bool:
        """Whether the evaluation itself failed, as opposed to some of its episodes."""
        return self.status in EVALUATION_FAILURES

    @property
    def reason(self) -> str:
        """Why it failed, as far as the server says; empty when it says nothing."""
        return next((one for one in (self.error, self.message) if one), "")

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """The environment it ran on; None before the contract is known."""
        if self.environment_name is None or self.contract_digest is None:
            return None
        return EnvironmentIdentity(
            self.environment_name, self.environment_version, self.contract_digest
        )


class EvaluationReport(Evaluation):
    """What an evaluation found; coverage (`asked`, `scored`, `failed`) comes before any average.

    Rates carry a Wilson interval and returns a bootstrap interval, both over scored episodes.
    """

    episodes: list[EpisodeRecord] = Field(default_factory=list[EpisodeRecord])
    asked: int = 0
    scored: int = 0
    failed: int = 0
    success_rate: float | None = None
    success_interval: tuple[float, float] | None = None
    mean_return: float | None = None
    return_interval: tuple[float, float] | None = None
    std_return: float | None = None
    package_versions: dict[str, str] = Field(default_factory=dict[str, str])
    verifier_breakdown: JsonObject = Field(default_factory=dict[str, object])
    rollout_ids: list[str] = Field(default_factory=list[str])
    scenario_results: list[JsonObject] = Field(default_factory=list[JsonObject])
