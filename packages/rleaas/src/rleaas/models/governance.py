"""How data is governed, in the published form."""

from __future__ import annotations

from pydantic import Field

from rleaas.models.shape import JsonObject, Shape


class GovernanceConfigRequest(Shape):
    """What governance is asked to be; without an environment, the platform's own.

    Every field stands for an argument of `client.AuditLog.configure_governance`; None leaves what
    is there as it is.
    """

    environment_name: str | None = None
    data_retention_days: int | None = None
    pii_fields: list[str] | None = None
    alert_thresholds: dict[str, float] | None = None
    compliance_tags: list[str] | None = None
    max_risk_threshold: float | None = None
    compliance_hard_stop: bool | None = None
    human_in_the_loop: bool | None = None
    override_actions: dict[str, str] | None = None


class GovernanceConfig(Shape):
    """What holds for an environment, or for the platform."""

    environment_name: str | None = None
    data_retention_days: int | None = None
    pii_fields: list[str] = Field(default_factory=list[str])
    alert_thresholds: dict[str, float] = Field(default_factory=dict[str, float])
    compliance_tags: list[str] = Field(default_factory=list[str])
    max_risk_threshold: float | None = None
    compliance_hard_stop: bool = False
    human_in_the_loop: bool = False
    safety_config: JsonObject | None = None
