"""The event table: what happened, in order, never changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, func, literal, or_, select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import EventRow, JobRow, JsonObject, VersionRow

# The nouns of actions that everybody who watches hears of.
CATALOGUE: Final = frozenset(
    ("environment", "tool", "agent", "verifier", "scenario", "suite", "data_asset", "deployment")
)
GRANTS: Final = frozenset(("environment.endpoint_granted", "deployment.secret_shown"))


def add(
    session: Session,
    subject: str,
    kind: str,
    data: JsonObject,
    at: datetime | None = None,
    *,
    organisation: int | None = None,
) -> None:
    """Append one event about a subject such as `job:job_1a2b`.

    It belongs to the session's organisation, or in the server's own sessions to the one named.
    """
    row = EventRow(at=at or datetime.now(UTC), kind=kind, subject=subject, data=data)
    if organisation is not None:
        row.organisation_id = organisation
    session.add(row)


def tell_of_change(
    session: Session,
    action: str,
    subject: str,
    *,
    by: str,
    environment: str | None,
    organisation: int,
) -> None:
    """Append the event of a change that was recorded, where it is one of the catalogue's.

    What jobs do has events of its own; who may do what is for the audit alone.
    """
    if action.partition(".")[0] in CATALOGUE and action not in GRANTS:
        data: JsonObject = {"by": by}
        if environment is not None:
            data["environment"] = environment
        add(session, subject, action, data, organisation=organisation)


def about(
    session: Session,
    subject: str,
    kinds: Iterable[str] | None = None,
    *,
    after: int = 0,
    limit: int | None = None,
) -> Sequence[EventRow]:
    """Events of one subject after the event with the id `after`, oldest first."""
    query = select(EventRow).where(EventRow.subject == subject, EventRow.id > after)
    if kinds is not None:
        query = query.where(EventRow.kind.in_(tuple(kinds)))
    return session.scalars(query.order_by(EventRow.id).limit(limit)).all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events somebody wants; what is None narrows nothing.

    Attributes:
        subject: those about this subject, such as `tool:tool_1`.
        kinds: those of these kinds.
        environment_id: those about this environment, its versions and their jobs.
        job_id: those about this job.
    """

    subject: str | None = None
    kinds: tuple[str, ...] | None = None
    environment_id: int | None = None
    job_id: str | None = None


def following(session: Session, wanted: Wanted, after: int, limit: int) -> Sequence[EventRow]:
    """The next events after the one with the id `after`, oldest first."""
    query = select(EventRow).where(EventRow.id > after, *_conditions(session, wanted))
    return session.scalars(query.order_by(EventRow.id).limit(limit)).all()


def newest(session: Session) -> int:
    """The id of the newest event that the session sees; 0 where there is none."""
    return session.scalar(select(func.max(EventRow.id))) or 0


def _conditions(session: Session, wanted: Wanted) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.subject is not None:
        conditions.append(EventRow.subject == wanted.subject)
    if wanted.kinds is not None:
        conditions.append(EventRow.kind.in_(wanted.kinds))
    if wanted.job_id is not None:
        conditions.append(EventRow.subject == f"job:{wanted.job_id}")
    if wanted.environment_id is not None:
        number = wanted.environment_id
        versions = session.scalars(select(VersionRow.id).where(VersionRow.environment_id == number))
        own = [f"environment:{number}", *(f"environment_version:{one}" for one in versions)]
        jobs = (
            select(literal("job:") + JobRow.id)
            .join(VersionRow)
            .where(VersionRow.environment_id == number)
        )
        conditions.append(or_(EventRow.subject.in_(own), EventRow.subject.in_(jobs)))
    return conditions
