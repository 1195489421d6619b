"""Audit records, the state of their chain, and how data is governed."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from rleaas.models.shape import JsonObject, Moment, Shape


class AuditEvent(Shape):
    """Who did what to what, and whether they could.

    `chain_hash` covers the record and `prev_hash`, the hash of the record before it.
    """

    other_names: ClassVar = {
        "environment": ("environment_name",),
        "environment_name": ("environment",),
        "type": ("event_type", "action"),
    }

    id: str
    type: str
    timestamp: Moment | None = None
    number: int | None = None
    outcome: str | None = None
    actor: str | None = None
    subject: str | None = None
    environment: str | None = None
    environment_name: str | None = None
    job_id: str | None = None
    agent_id: str | None = None
    request_id: str | None = None
    details: JsonObject = Field(default_factory=dict[str, object])
    score: float | None = None
    passed: bool | None = None
    prev_hash: str | None = None
    chain_hash: str | None = None


class ChainState(Shape):
    """Whether the audit chain holds together.

    `head` is the hash of the newest of `records`: who keeps it can see later that nothing was cut
    off the chain's end.
    """

    valid: bool
    problem: str | None = None
    number: int | None = None
    records: int = 0
    head: str = ""


class Governance(Shape):
    """How data is treated, on the platform or for one environment; further settings are kept.

    `configs` is what was set for each environment, where the platform's settings were asked for.
    """

    environment_name: str | None = None
    data_retention_days: int | None = None
    pii_fields: list[str] = Field(default_factory=list[str])
    alert_thresholds: dict[str, float] = Field(default_factory=dict[str, float])
    compliance_tags: list[str] = Field(default_factory=list[str])
    config: JsonObject = Field(default_factory=dict[str, object])
    configs: dict[str, JsonObject] = Field(default_factory=dict[str, JsonObject])
