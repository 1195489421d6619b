"""The event table: what happened, in order, never changed."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import EventRow, JsonObject


def add(
    session: Session, subject: str, kind: str, data: JsonObject, at: datetime | None = None
) -> None:
    """Append one event about a subject such as `job:job_1a2b`."""
    session.add(EventRow(at=at or datetime.now(UTC), kind=kind, subject=subject, data=data))


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
