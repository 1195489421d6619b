"""Verifiers: what judges an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from pydantic import Field, model_validator

from rleaas.models.shape import JsonObject, Moment, Shape, Status

VerifierType = Literal[
    "rule_based", "trajectory_based", "llm_judge", "composite", "python", "human_evaluation"
]


class FailurePolicy(Shape):
    """What follows when a verifier fails an episode."""

    hard_fail: bool = False
    penalty: float = 0.0
    log_failure: bool = True


class Verifier(Shape):
    """A verifier at its newest version."""

    id: str
    name: str = ""
    type: str = ""
    system: str = "Custom"
    status: Status = "active"
    environment: str = ""
    environment_id: int | None = None
    description: str = ""
    logic: JsonObject = Field(default_factory=dict[str, object])
    failure_policy: FailurePolicy = Field(default_factory=FailurePolicy)
    metadata: JsonObject = Field(default_factory=dict[str, object])
    source: str | None = None
    version: int | None = None
    audited: bool | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None

    @model_validator(mode="before")
    @classmethod
    def _out_of_its_envelope(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, object]", value)
        inside = fields.get("verifier")
        return cast("object", inside) if isinstance(inside, Mapping) else fields


class VerifierVersion(Shape):
    """What a verifier judged by."""

    verifier_id: str | None = None
    version: int
    logic: JsonObject = Field(default_factory=dict[str, object])
    failure_policy: FailurePolicy = Field(default_factory=FailurePolicy)
    created_at: Moment | None = None


class AttachedVerifier(Verifier):
    """A verifier that judges an environment, with its share of the score."""

    weight: float = 1.0


class VerifierResult(Shape):
    """What a verifier says of an episode: a score from 0 to 1, and why.

    Where it could not judge, `outcome` is `grader_error`, there is neither a score nor a pass, and
    `error` has the `reason` and the `detail`.
    """

    outcome: Literal["scored", "grader_error"] = "scored"
    score: float | None = None
    passed: bool | None
    error: JsonObject | None = None
    reward: float | None = None
    hard_fail: bool = False
    breakdown: JsonObject = Field(default_factory=dict[str, object])
    explanation: str = ""
    verifier_id: str | None = None
    version: int | None = None


class ErrorRate(Shape):
    """So many wrong verdicts of so many, with the 95 % interval of the rate; without any: none."""

    value: float | None
    count: int
    of: int
    interval: tuple[float, float] | None = None


class AuditFinding(Shape):
    """Something that a verifier does wrong: in which test, with which episode, and what it said."""

    probe: str
    case: str
    detail: str


class VerifierAudit(Shape):
    """What a grader test found.

    `false_positive_rate` is of the bad episodes, `false_negative_rate` of the good ones; those that
    could not be judged are in `grader_errors` and in no rate. `evidence` says how many different
    `good` and `bad` episodes there were, how many are the `least`, and whether that is `enough`.
    `audited` says whether it counts for the verifier as it is now: it passed, with enough.
    """

    verifier_id: str
    version: int | None = None
    passed: bool
    audited: bool = False
    false_positive_rate: ErrorRate
    false_negative_rate: ErrorRate
    grader_errors: int = 0
    score_spread: float = 0.0
    probes: dict[str, dict[str, int]] = Field(default_factory=dict[str, dict[str, int]])
    findings: list[AuditFinding] = Field(default_factory=list[AuditFinding])
    evidence: JsonObject = Field(default_factory=dict[str, object])
    seconds: float | None = None
    created_at: Moment | None = None


class VerifierListResponse(Shape):
    """A list of verifiers."""

    verifiers: list[Verifier] = Field(default_factory=list[Verifier])
    count: int = 0


class VerifierConfigRequest(Shape):
    """How the verifiers of an environment count together, in the older form."""

    verifier_type: str
    environment_name: str
    weights: dict[str, float]
    thresholds: dict[str, float] | None = None
    enabled: bool = True
    metadata: JsonObject | None = None
