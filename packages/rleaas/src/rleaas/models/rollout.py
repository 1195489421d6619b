"""Episodes that are stored, how they compare, and figures over them."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rleaas.models.human import HumanEvalRequest as HumanEvalRequest
from rleaas.models.human import HumanEvalStepScore as HumanEvalStepScore
from rleaas.models.shape import JsonObject, Moment, Shape, Status
from rleaas.models.verifier import VerifierResult as VerifierResult

ReportFormat = Literal["json", "csv", "pdf", "html"]


class Rollout(Shape):
    """An episode; lists of rollouts leave out `steps`."""

    other_names: ClassVar = {
        "environment_name": ("environment",),
        "total_reward": ("score",),
        "score": ("total_reward",),
    }

    id: str
    status: Status = "completed"
    environment_name: str | None = None
    episode_number: int | None = None
    score: float | None = None
    total_reward: float | None = None
    total_steps: int = 0
    success: bool | None = None
    scenario_id: str | None = None
    job_id: str | None = None
    source: str | None = None
    steps: list[JsonObject] = Field(default_factory=list[JsonObject])
    verifier_results: list[JsonObject] = Field(default_factory=list[JsonObject])
    created_at: Moment | None = None


class RolloutComparison(Shape):
    """How two rollouts or evaluations differ; `delta` is the second's score less the first's.

    `paired` is about the seeds that both played: `pairs` in so many `clusters` (scenarios, where
    there are several), `mean_difference`, its `interval`, `p` and a `verdict` on the second:
    `better`, `worse` or `inconclusive`.
    """

    environment_name: str
    delta: float | None = None
    improvement: float | None = None
    winner: str | None = None
    winner_id: str | None = None
    baseline: JsonObject = Field(default_factory=dict[str, object])
    trained: JsonObject = Field(default_factory=dict[str, object])
    per_scenario_diff: list[JsonObject] = Field(default_factory=list[JsonObject])
    paired: JsonObject = Field(default_factory=dict[str, object])


class AuditReport(Shape):
    """A report that was written: where it is, and the digest of exactly its bytes."""

    report_url: str
    format: str
    sha256: str
    signature: str | None = None
    key_id: str | None = None
    size_bytes: int | None = None


class Kpis(Shape):
    """Figures over rollouts; None where nothing is known.

    `metrics` are the rates of the domain, each over the episodes whose task its rule is about;
    `applied` says how many those are. `rates` are those of verifiers' tags; `intervals` has the
    95 % interval of each figure by its name. Each episode counts once, where it was played first:
    neither again when it is judged anew nor in a reproduction. `agents` has the same figures for
    each `agent` (with its `model`) or `checkpoint_id` that played; those of unknown ones, which no
    evaluation played, have neither.
    """

    avg_reward: float | None = None
    pass_rate: float | None = None
    avg_completion_steps: float | None = None
    aml_compliance_rate: float | None = None
    kyc_check_rate: float | None = None
    rates: dict[str, float] = Field(default_factory=dict[str, float])
    metrics: dict[str, float] = Field(default_factory=dict[str, float])
    applied: dict[str, int] = Field(default_factory=dict[str, int])
    intervals: dict[str, tuple[float, float] | None] = Field(
        default_factory=dict[str, tuple[float, float] | None]
    )
    episodes: int = 0
    failed_episodes: int = 0
    agents: list[JsonObject] = Field(default_factory=list[JsonObject])
    environment_name: str | None = None
    checkpoint: str | None = None
    evaluation_id: str | None = None
    timestamp: Moment | None = None


class TimelineEvent(Shape):
    """Something that happened within a step: a thought, a tool's call, a tool's result."""

    timestamp_ms: int | None = None
    event_type: str | None = None
    content: str | None = None
    tool_name: str | None = None
    tool_args: JsonObject | None = None


class RolloutStep(Shape):
    """A step of a rollout."""

    step: int
    action: object = None
    tool: str | None = None
    reward: float | None = 0.0
    state_summary: JsonObject | None = None
    reward_breakdown: dict[str, float] | None = None
    timeline_events: list[TimelineEvent] = Field(default_factory=list[TimelineEvent])


class KPI(Shape):
    """One figure of `Kpis`, by its name."""

    name: str
    value: float | None = None
    unit: str | None = None
    description: str | None = None
