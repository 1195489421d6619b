"""Evaluations and their reports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from rlcore import EnvironmentIdentity

from rleaas.models.shape import JsonObject, Moment, Shape, Status
from rleaas.reports import as_csv, fragment, page

FINISHED_EVALUATION = frozenset({"completed", "failed", "cancelled", "done", "error"})
"""Statuses that an evaluation does not leave; `done` and `error` are older words."""
EVALUATION_FAILURES = frozenset({"failed", "error"})


class EpisodeRecord(Shape):
    """One episode of an evaluation; without a score (`reward` is None) where it failed.

    `score` is what its verifiers gave it, or whether it was a success; it is None, and the outcome
    `grader_error`, where a verifier could not judge. `actions_digest` is the same for episodes in
    which the agent did the same, to the letter: of one scenario, they are one piece of evidence.
    """

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
    scenario_id: str | None = None
    scenario_version: int | None = None
    tier: int | None = None
    repetition: int = 0
    score: float | None = None
    passed: bool | None = None
    actions_digest: str | None = None
    verifier_results: list[JsonObject] = Field(default_factory=list[JsonObject])


class Evaluation(Shape):
    """An evaluation of a checkpoint or an agent: scenarios x seeds x repetitions.

    `agent` is a word (`random`, `expert`, `llm`); which language model it is, where and how it is
    asked, is in `agent_settings`. Without scenarios it is one episode for each seed and repetition.
    A worker that died was started again: `attempt` counts its starts, `restarts` those after a
    death, and `attempts` says of each how it ended.
    """

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
    agent: str | None = None
    agent_settings: JsonObject | None = None
    source_evaluation_id: str | None = None
    scenario_suite_id: str | None = None
    scenario_suite_version: int | None = None
    scenario_ids: list[str] = Field(default_factory=list[str])
    verifier_ids: list[str] = Field(default_factory=list[str])
    seeds: list[int] = Field(default_factory=list[int])
    repetitions: int = 1
    asked: int = 0
    num_workers: int = 1
    pass_threshold: float | None = None
    max_episode_steps: int | None = None
    success_threshold: float | None = None
    progress: int = 0
    episodes_done: int = 0
    attempt: int = 0
    restarts: int = 0
    attempts: list[JsonObject] = Field(default_factory=list[JsonObject])
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

    Intervals are of 95 %, over scored episodes. Where several scenarios are played, or seeds more
    than once, they are those of clusters (`intervals` says which, how many, and how many episodes
    are no copy of another one): a Wilson interval of as many trials as they are worth for rates,
    a cluster-robust one for returns and scores. Else they are Wilson and bootstrap intervals. None
    where nothing differs, which does not tell how much it might. `score_kind` says what a score is:
    what `verifiers` gave, `success`, or the `return`. `partial` says how much there is of one that
    is not complete; `left_out`, how many episodes have no score, by their outcome.
    """

    episodes: list[EpisodeRecord] = Field(default_factory=list[EpisodeRecord])
    scored: int = 0
    failed: int = 0
    coverage: float | None = None
    score_kind: str | None = None
    score_interval: tuple[float, float] | None = None
    pass_interval: tuple[float, float] | None = None
    pass_at_k: dict[str, float] = Field(default_factory=dict[str, float])
    success_rate: float | None = None
    success_interval: tuple[float, float] | None = None
    mean_return: float | None = None
    return_interval: tuple[float, float] | None = None
    std_return: float | None = None
    intervals: JsonObject | None = None
    package_versions: dict[str, str] = Field(default_factory=dict[str, str])
    verifier_breakdown: JsonObject = Field(default_factory=dict[str, object])
    rollout_ids: list[str] = Field(default_factory=list[str])
    scenario_results: list[JsonObject] = Field(default_factory=list[JsonObject])
    tier_results: list[JsonObject] = Field(default_factory=list[JsonObject])
    partial: str | None = None
    left_out: dict[str, int] = Field(default_factory=dict[str, int])
    costs: JsonObject = Field(default_factory=dict[str, object])
    provenance: JsonObject = Field(default_factory=dict[str, object])
    warnings: list[str] = Field(default_factory=list[str])

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as a page of HTML with its plots, that needs nothing else.

        Args:
            path: where to write it, too.
        """
        told = page([self.to_dict()], made=datetime.now(UTC).isoformat(timespec="seconds"))
        if path is not None:
            Path(path).write_text(told, "utf-8")
        return told

    def to_csv(self, path: str | Path | None = None) -> str:
        """A line for each episode as comma-separated values; written to `path`, if there is one."""
        told = as_csv([self.to_dict()])
        if path is not None:
            Path(path).write_text(told, "utf-8", newline="")
        return told

    def _repr_html_(self) -> str:
        return fragment(self.to_dict())
