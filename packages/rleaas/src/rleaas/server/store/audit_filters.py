"""Which audit records to read."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, or_

from rleaas.server.store.tables import AuditRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which records to read; what is None narrows nothing.

    Attributes:
        environment_name: those about this environment.
        event_types: actions such as `tool.registered`, or what comes before their dot.
        start: from this moment on.
        end: up to this moment.
        job_id: those about this job.
        agent_id: those about this agent.
        actor: what this one did.
        outcome: `allowed` or `denied`.
        subject: those about this subject, such as `tool:tool_1`.
    """

    environment_name: str | None = None
    event_types: tuple[str, ...] | None = None
    start: datetime | None = None
    end: datetime | None = None
    job_id: str | None = None
    agent_id: str | None = None
    actor: str | None = None
    outcome: str | None = None
    subject: str | None = None


def conditions_of(filters: Filters) -> list[ColumnElement[bool]]:
    """What the database is asked for."""
    exact = (
        (AuditRow.environment_name, filters.environment_name),
        (AuditRow.job_id, filters.job_id),
        (AuditRow.agent_id, filters.agent_id),
        (AuditRow.actor, filters.actor),
        (AuditRow.outcome, filters.outcome),
        (AuditRow.subject, filters.subject),
    )
    conditions: list[ColumnElement[bool]] = [
        column == value for column, value in exact if value is not None
    ]
    if filters.start is not None:
        conditions.append(AuditRow.at >= filters.start)
    if filters.end is not None:
        conditions.append(AuditRow.at <= filters.end)
    if filters.event_types is not None:
        conditions.append(_is_one_of(filters.event_types))
    return conditions


def _is_one_of(event_types: Iterable[str]) -> ColumnElement[bool]:
    wanted = list(event_types)
    return or_(
        AuditRow.action.in_(wanted),
        *(AuditRow.action.startswith(f"{one}.", autoescape=True) for one in wanted),
    )
