"""The event table: what happened, in order, never changed."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import EventRow, JsonObject


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
