"""Verifiers: what judges an episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from pydantic import Field, model_validator

from rleaas.models.shape import JsonObject, Moment, Shape, Status

VerifierType = Literal["rule_based", "trajectory_based", "llm_judge", "composite"]


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
    """What a verifier says of an episode."""

    score: float | None = None
    passed: bool
    breakdown: JsonObject = Field(default_factory=dict[str, object])


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
