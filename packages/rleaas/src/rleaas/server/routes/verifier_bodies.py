"""What requests about verifiers may say."""

from typing import Annotated, cast

from pydantic import BeforeValidator, Field, model_validator

from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.catalogue_bodies import Id, Name, Record, Text, Word
from rleaas.server.rules.catalogue import VerifierStatus, VerifierType, verifier_type
from rleaas.server.rules.verifiers import WORST_PENALTY, require_policy


class Policy(Body):
    """What follows when a verifier fails an episode."""

    hard_fail: bool = Field(False, strict=True)
    penalty: float = Field(0.0, allow_inf_nan=False, ge=WORST_PENALTY, le=0, strict=True)
    log_failure: bool = Field(True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _as_the_engine_reads_it(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        fields = cast("JsonObject", given)
        require_policy(fields)
        return fields


class VerifierFields(Record):
    """A verifier, or what changes of one; `config` is another name of `logic`."""

    id: Id | None = None
    name: Name | None = None
    type: Annotated[VerifierType | None, BeforeValidator(verifier_type)] = None
    system: Word | None = None
    status: VerifierStatus | None = None
    description: Text | None = None
    logic: JsonObject | None = None
    config: JsonObject | None = None
    failure_policy: Policy | None = None
    source: Word | None = None
    metadata: JsonObject | None = None


class SetEnabled(Body):
    """Whether a verifier judges."""

    enabled: bool


class JudgeEpisode(Body):
    """An episode to judge: the state at its end, and its steps."""

    state: JsonObject = Field(default_factory=dict[str, object])
    trajectory: list[JsonObject] = Field(default_factory=list[JsonObject], max_length=10_000)


class KnownEpisode(Body):
    """An episode whose worth is known: the state at its end, and its steps."""

    state: JsonObject = Field(default_factory=dict[str, object])
    trajectory: list[JsonObject] = Field(default_factory=list[JsonObject], max_length=10_000)


class AuditVerifier(Body):
    """Episodes to test a verifier with.

    They are given, or they are the references and known-bad solutions of the scenarios of an
    environment's vertical: of all of them, or of those in `scenario_ids`.
    """

    good: list[KnownEpisode] = Field(default_factory=list[KnownEpisode], max_length=1_000)
    bad: list[KnownEpisode] = Field(default_factory=list[KnownEpisode], max_length=1_000)
    environment: str | None = None
    scenario_ids: list[str] | None = Field(None, max_length=1_000)
    repeats: int = Field(3, ge=1, le=20, strict=True)
    probed: int = Field(3, ge=0, le=20, strict=True)
    allow_empty: bool = False
    most_wrong: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)


class JudgeForWorker(Body):
    """An episode for a verifier of the worker's job."""

    verifier_id: Id
    steps: list[JsonObject] = Field(default_factory=list[JsonObject], max_length=100_000)
    state: JsonObject = Field(default_factory=dict[str, object])
    truncated: bool = False


class CompleteForWorker(Body):
    """What the language model that plays a worker's evaluation is asked next."""

    messages: list[JsonObject] = Field(min_length=1, max_length=10_000)
    tools: list[JsonObject] = Field(default_factory=list[JsonObject], max_length=1_000)


class AttachVerifier(Body):
    """A verifier for an environment, with its share of the score."""

    verifier_id: Id
    weight: float = Field(1.0, gt=0, le=1e6, allow_inf_nan=False)


class CloneFrom(Body):
    """The environment to clone from, by name or number."""

    source: Name | int
