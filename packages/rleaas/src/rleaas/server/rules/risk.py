"""How risky an environment's records are: its violations, counted by how severe they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rleaas.server.rules.json_values import fields, number

SEVERITIES: Final = ("critical", "error", "warning")
_DEFAULTS: Final[Mapping[str, float]] = {
    "max_risk_score": 0.8,
    "critical_threshold": 0.7,
    "warning_threshold": 0.5,
}
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that was refused, or that raised an alert."""

    at: str | None
    event_id: str
    action: str
    actor: str
    subject: str
    severity: str
    data: Mapping[str, object]


def severity_of(data: Mapping[str, object]) -> str:
    """What a record says of its severity; one that says nothing is a warning."""
    said = data.get("severity")
    return said if isinstance(said, str) and said in SEVERITIES else "warning"


def thresholds(*configs: Mapping[str, object]) -> dict[str, float]:
    """The thresholds of governance configurations, later ones over earlier ones and the defaults.

    `max_risk_threshold` is the published word for `max_risk_score`.
    """
    settled = dict(_DEFAULTS)
    for config in configs:
        alerts = fields(config.get("alert_thresholds"))
        published = number(config.get("max_risk_threshold"))
        if published is not None:
            settled["max_risk_score"] = published
        for name in _DEFAULTS:
            value = number(config.get(name, alerts.get(name)))
            if value is not None:
                settled[name] = value
    return settled


def report(
    name: str, limits: Mapping[str, float], violations: Sequence[Violation]
) -> dict[str, object]:
    """The published report; the newest violations stand first."""
    by_severity = {
        severity: sum(1 for violation in violations if violation.severity == severity)
        for severity in SEVERITIES
    }
    return {
        "environment_name": name,
        "risk_thresholds": dict(limits),
        "compliance_violations": {
            "total": len(violations),
            "by_severity": by_severity,
            "recent_violations": [
                {
                    "event_id": violation.event_id,
                    "timestamp": violation.at,
                    "action": violation.action,
                    "actor": violation.actor,
                    "subject": violation.subject,
                    "severity": violation.severity,
                    "data": dict(violation.data),
                }
                for violation in violations[:_MOST_SHOWN]
            ],
        },
    }
