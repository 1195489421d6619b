"""Which records are of which kind, so that one is never taken for another by its name or id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from rleaas.models import (
    Agent,
    AuditEvent,
    Checkpoint,
    Environment,
    EnvironmentVersion,
    Evaluation,
    Rollout,
    Scenario,
    ScenarioSuite,
    Shape,
    Tool,
    TrainingJob,
    Verifier,
    Webhook,
)
from rleaas.models.access import ApiKey, Organisation
from rleaas.models.deployment import Deployment
from rleaas.models.environment_parts import DataAsset
from rleaas.resources.handle import Handle

KINDS: Mapping[str, tuple[type[Shape], ...]] = {
    "agent": (Agent,),
    "API key": (ApiKey,),
    "audit event": (AuditEvent,),
    "checkpoint": (Checkpoint,),
    "data asset": (DataAsset,),
    "deployment": (Deployment,),
    "environment": (Environment,),
    "environment version": (EnvironmentVersion,),
    "evaluation": (Evaluation,),
    "job": (TrainingJob,),
    "organisation": (Organisation,),
    "rollout": (Rollout,),
    "rollout or evaluation": (Rollout, Evaluation),
    "scenario": (Scenario,),
    "suite": (ScenarioSuite,),
    "tool": (Tool,),
    "training job": (TrainingJob,),
    "verifier": (Verifier,),
    "webhook": (Webhook,),
}

V = TypeVar("V")


def field_of(thing: object, what: str, field: str, kind: type[V]) -> V | None:
    """Return a field of a record or handle of a kind; None: the thing is of no such kind."""
    record = cast("Handle[Any, Shape]", thing).record if isinstance(thing, Handle) else thing
    if not isinstance(record, KINDS[what]):
        return None
    value = cast("object", getattr(record, field, None))
    return value if isinstance(value, kind) else None
