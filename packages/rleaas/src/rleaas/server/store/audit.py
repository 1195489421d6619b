"""The audit chain: who did what, in an order that nobody can change unseen.

Each organisation has a chain of its own. A record holds the digest of the one before it and its
own, which covers everything in it. Records that a retention rule removes leave the digest of the
last of them in a record of the chain, which is what the rest is then attached to. `audit_seal.py`
signs the newest record.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, cast

from rlcore import NotFoundError
from sqlalchemy import ColumnElement, delete, func, or_, select
from sqlalchemy.orm import Session

from rleaas.server.store import audit_seal, events
from rleaas.server.store.audit_seal import Head
from rleaas.server.store.database import owner_of
from rleaas.server.store.storable import plain, storable
from rleaas.server.store.tables import AuditRow, JsonObject, OrganisationRow

PURGED: Final = "audit.purged"
SEALED: Final = "audit.sealed"
START: Final = "0" * 64
ALLOWED: Final = "allowed"
DENIED: Final = "denied"
_AT_A_TIME: Final = 500


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


@dataclass(frozen=True, slots=True)
class Problem:
    """Where a chain does not hold together."""

    organisation_id: int
    number: int
    what: str

    def __str__(self) -> str:
        return f"record {self.number} of organisation {self.organisation_id}: {self.what}"


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
    found = [row for row in heads(session) if _seal_of(session, row.organisation_id) is None]
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
    query = select(AuditRow).where(*_conditions(filters or Filters())).order_by(order)
    if after:
        query = query.where(AuditRow.number > after)
    if before:
        query = query.where(AuditRow.number < before)
    return session.scalars(query.limit(limit).offset(offset or None)).all()


def count(session: Session, filters: Filters | None = None) -> int:
    """How many records there are."""
    conditions = _conditions(filters or Filters())
    return session.scalar(select(func.count()).select_from(AuditRow).where(*conditions)) or 0


def verify(session: Session) -> Problem | None:
    """Check every chain that the session sees, with its seal if the session has the key.

    What was changed, removed or put in shows, also at the end. Not to be seen: what somebody did
    who has the key, too; an older state of the database, put back as a whole; and that all records
    of an organisation are gone together with their seal. These show only to whoever knows a digest
    from before, which is why the routes tell it.
    """
    owner = owner_of(session)
    owners = [owner] if owner is not None else session.scalars(select(OrganisationRow.id)).all()
    for organisation in owners:
        problem = _verify_one(session, organisation)
        if problem is not None:
            return problem
    return None


def head(session: Session) -> AuditRow | None:
    """The newest record of the session's organisation."""
    owner = owner_of(session)
    return None if owner is None else _last(session, owner)


def heads(session: Session) -> Sequence[AuditRow]:
    """The newest record of each organisation that the session sees."""
    newest = (
        select(AuditRow.organisation_id, func.max(AuditRow.number).label("number"))
        .group_by(AuditRow.organisation_id)
        .subquery()
    )
    return session.scalars(
        select(AuditRow)
        .join(
            newest,
            (AuditRow.organisation_id == newest.c.organisation_id)
            & (AuditRow.number == newest.c.number),
        )
        .order_by(AuditRow.organisation_id)
    ).all()


def purge(session: Session, organisation: int, before: datetime, limit: int) -> int:
    """Remove the oldest records from before a moment, and note up to where; returns how many.

    The newest record stays whatever its age: it is what the next one is attached to.
    """
    own = AuditRow.organisation_id == organisation
    last = _last(session, organisation)
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


def digest_of(row: AuditRow) -> str:
    """The SHA-256 of everything in a record but its digest."""
    said: JsonObject = {
        "organisation": row.organisation_id,
        "number": row.number,
        "event_id": row.event_id,
        "at": row.at.astimezone(UTC).isoformat(timespec="microseconds"),
        "actor": row.actor,
        "action": row.action,
        "outcome": row.outcome,
        "subject": row.subject,
        "environment_name": row.environment_name,
        "job_id": row.job_id,
        "agent_id": row.agent_id,
        "request_id": row.request_id,
        "data": row.data,
        "previous": row.previous,
    }
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _verify_one(session: Session, organisation: int) -> Problem | None:
    before: AuditRow | None = None
    missing: AuditRow | None = None
    anchored = False
    for row in _chain(session, organisation):
        if row.digest != digest_of(row):
            return Problem(organisation, row.number, "its content does not have its digest")
        if before is None:
            missing = None if row.number == 1 and row.previous == START else row
        elif row.number != before.number + 1:
            return Problem(organisation, row.number, f"it follows record {before.number}")
        elif row.previous != before.digest:
            return Problem(organisation, row.number, "it is not attached to the record before it")
        if missing is not None and row.action == PURGED:
            until = (row.data.get("number"), row.data.get("digest"))
            anchored = anchored or until == (missing.number - 1, missing.previous)
        before = row
    if missing is not None and not anchored:
        what = "the records before it are gone, and no record says that they were purged"
        return Problem(organisation, missing.number, what)
    return _verify_seal(session, organisation, before)


def _verify_seal(session: Session, organisation: int, newest: AuditRow | None) -> Problem | None:
    if not audit_seal.has_key(session):
        return None
    found = _seal_of(session, organisation)
    head = None if newest is None else Head(newest.number, newest.digest)
    if found == head:
        return None
    if found is None:
        what = "its seal was removed, or a server that seals has not started since"
    elif isinstance(found, audit_seal.NotOurs):
        what = "the seal is not of this server's key"
    else:
        what = f"record {found.number} was sealed as the newest, and is not there as it was"
    return Problem(organisation, 0 if head is None else head.number, what)


def _seal_of(session: Session, organisation: int) -> Head | audit_seal.NotOurs | None:
    try:
        return audit_seal.sealed(session, organisation)
    except audit_seal.NotOurs as error:
        return error


@dataclass(frozen=True, slots=True)
class _Place:
    number: int
    previous: str
    is_sealed: bool


def _next_place(session: Session, organisation: int) -> _Place:
    last = _last(session, organisation)
    number, previous = (0, START) if last is None else (last.number, last.digest)
    found = _seal_of(session, organisation)
    if isinstance(found, Head):
        # Attached to what was sealed: to seal what is there instead would hide a change.
        return _Place(max(number, found.number) + 1, found.digest, is_sealed=True)
    return _Place(number + 1, previous, is_sealed=found is None and last is None)


def _chain(session: Session, organisation: int) -> Iterator[AuditRow]:
    number = 0
    while True:
        rows = session.scalars(
            select(AuditRow)
            .where(AuditRow.organisation_id == organisation, AuditRow.number > number)
            .order_by(AuditRow.number)
            .limit(_AT_A_TIME)
        ).all()
        if not rows:
            return
        yield from rows
        number = rows[-1].number
        session.expunge_all()


def _last(session: Session, organisation: int) -> AuditRow | None:
    return session.scalar(
        select(AuditRow)
        .where(AuditRow.organisation_id == organisation)
        .order_by(AuditRow.number.desc())
        .limit(1)
    )


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
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
