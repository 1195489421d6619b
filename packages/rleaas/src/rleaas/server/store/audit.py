"""The audit log: who did what, in an order that nobody can change unseen.

A record is written in the transaction of the change that it is about, at the end of its
organisation's chain: `audit_chain.py` says what holds it together, and checks it.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, cast

from rlcore import NotFoundError
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from rleaas.server.store import audit_seal, events
from rleaas.server.store.audit_chain import PURGED, START, digest_of, heads, last_of, seal_of
from rleaas.server.store.audit_filters import Filters, conditions_of
from rleaas.server.store.audit_seal import Head
from rleaas.server.store.storable import plain, storable
from rleaas.server.store.tables import AuditRow, JsonObject

SEALED: Final = "audit.sealed"
ALLOWED: Final = "allowed"
DENIED: Final = "denied"


class Principal(Protocol):
    """Who acts, and for whom."""

    @property
    def organisation_id(self) -> int:
        """Whose chain it is."""
        ...

    @property
    def actor(self) -> str:
        """How records name them."""
        ...


class Asker(Protocol):
    """Somebody with a request; the `Caller` of a route is one."""

    @property
    def principal(self) -> Principal:
        """Who acts."""
        ...

    @property
    def request_id(self) -> str | None:
        """The request, where it was one."""
        ...


@dataclass(frozen=True, slots=True)
class ServerItself:
    """The server, when it acts for an organisation without being asked."""

    organisation_id: int
    actor: str = "server"
    request_id: str | None = None

    @property
    def principal(self) -> "ServerItself":
        """Itself."""
        return self


def record(
    session: Session,
    caller: Asker,
    *,
    action: str,
    subject: str,
    environment_name: str | None = None,
    job_id: str | None = None,
    agent_id: str | None = None,
    outcome: str = ALLOWED,
    data: Mapping[str, object] | None = None,
) -> AuditRow:
    """Append a record in the transaction of the change that it is about.

    Args:
        session: a write session; its lock gives the records their order.
        caller: who did it.
        action: what was done, such as `tool.registered`.
        subject: to what, such as `tool:tool_1`.
        environment_name: the environment that it concerns.
        job_id: the job that it concerns.
        agent_id: the agent that it concerns.
        outcome: `allowed`, or `denied` where it was refused.
        data: what else is worth knowing; no secrets.
    """
    organisation = caller.principal.organisation_id
    place = _next_place(session, organisation)
    row = AuditRow(
        organisation_id=organisation,
        event_id=f"evt_{secrets.token_hex(8)}",
        number=place.number,
        at=datetime.now(UTC),
        actor=storable(caller.principal.actor),
        action=action,
        outcome=outcome,
        subject=storable(subject),
        environment_name=storable(environment_name),
        job_id=storable(job_id),
        agent_id=storable(agent_id),
        request_id=caller.request_id,
        # Never masked: whoever may say what is masked could hide what was done.
        data=cast("JsonObject", plain(data or {})),
        previous=place.previous,
    )
    row.digest = digest_of(row)
    session.add(row)
    if place.is_sealed:
        audit_seal.put(session, organisation, Head(row.number, row.digest))
    if outcome == ALLOWED:
        events.tell_of_change(
            session,
            action,
            row.subject,
            by=row.actor,
            environment=row.environment_name,
            organisation=organisation,
        )
    session.flush()
    return row


def seal_found(session: Session) -> Sequence[int]:
    """Seal each chain that has no seal, as those of older servers, with a record that says so.

    Returns:
        The organisations whose chains were sealed.
    """
    found = [row for row in heads(session) if seal_of(session, row.organisation_id) is None]
    for row in found:
        audit_seal.put(session, row.organisation_id, Head(row.number, row.digest))
        record(
            session,
            ServerItself(row.organisation_id),
            action=SEALED,
            subject="audit",
            data={"number": row.number, "digest": row.digest},
        )
    return [row.organisation_id for row in found]


def find(session: Session, event_id: str) -> AuditRow:
    """The record with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(AuditRow).where(AuditRow.event_id == event_id))
    if row is None:
        raise NotFoundError(kind="audit_event", ref=event_id, code="audit_event_not_found")
    return row


def page(
    session: Session,
    filters: Filters | None = None,
    *,
    limit: int | None = 100,
    offset: int = 0,
    after: int = 0,
    before: int = 0,
    oldest_first: bool = False,
) -> Sequence[AuditRow]:
    """Records, newest first unless told otherwise; `limit` None is all of them.

    Args:
        session: of the organisation whose records they are.
        filters: which of them.
        limit: how many at most.
        offset: how many to skip.
        after: only those with a higher number.
        before: where it is not 0, only those with a lower number.
        oldest_first: the order of the chain.
    """
    order = AuditRow.number.asc() if oldest_first else AuditRow.number.desc()
    query = select(AuditRow).where(*conditions_of(filters or Filters())).order_by(order)
    if after:
        query = query.where(AuditRow.number > after)
    if before:
        query = query.where(AuditRow.number < before)
    return session.scalars(query.limit(limit).offset(offset or None)).all()


def count(session: Session, filters: Filters | None = None) -> int:
    """How many records there are."""
    conditions = conditions_of(filters or Filters())
    return session.scalar(select(func.count()).select_from(AuditRow).where(*conditions)) or 0


def purge(session: Session, organisation: int, before: datetime, limit: int) -> int:
    """Remove the oldest records from before a moment, and note up to where; returns how many.

    The newest record stays whatever its age: it is what the next one is attached to.
    """
    own = AuditRow.organisation_id == organisation
    last = last_of(session, organisation)
    oldest = session.scalars(
        select(AuditRow).where(own).order_by(AuditRow.number).limit(limit + 1)
    ).all()
    gone: list[AuditRow] = []
    for row in oldest[:limit]:
        if row.at >= before or row is last:
            break
        gone.append(row)
    # A lone note about an earlier purge would be removed and replaced for ever.
    if not any(row.action != PURGED for row in gone):
        return 0
    newest = gone[-1]
    record(
        session,
        ServerItself(organisation),
        action=PURGED,
        subject="audit",
        data={"number": newest.number, "digest": newest.digest, "records": len(gone)},
    )
    session.execute(delete(AuditRow).where(own, AuditRow.number <= newest.number))
    return len(gone)


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    previous: str
    is_sealed: bool


def _next_place(session: Session, organisation: int) -> _Place:
    last = last_of(session, organisation)
    number, previous = (0, START) if last is None else (last.number, last.digest)
    found = seal_of(session, organisation)
    if isinstance(found, Head):
        # Attached to what was sealed: to seal what is there instead would hide a change.
        return _Place(max(number, found.number) + 1, found.digest, is_sealed=True)
    return _Place(number + 1, previous, is_sealed=found is None and last is None)
