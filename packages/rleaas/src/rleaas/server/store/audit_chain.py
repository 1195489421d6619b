"""The chain of audit records: what makes a change show.

Each organisation has a chain of its own. A record holds the digest of the one before it and its
own, which covers everything in it. Records that a retention rule removes leave the digest of the
last of them in a record of the chain, which is what the rest is then attached to. `audit_seal.py`
signs the newest record, `audit.py` writes them.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from rleaas.server.store import audit_seal
from rleaas.server.store.audit_seal import Head
from rleaas.server.store.database import owner_of
from rleaas.server.store.tables import AuditRow, JsonObject, OrganisationRow

PURGED: Final = "audit.purged"
START: Final = "0" * 64
_AT_A_TIME: Final = 500


@dataclass(frozen=True, slots=True)
class Problem:
    """Where a chain does not hold together."""

    organisation_id: int
    number: int
    what: str

    def __str__(self) -> str:
        return f"record {self.number} of organisation {self.organisation_id}: {self.what}"


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
    return None if owner is None else last_of(session, owner)


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


def last_of(session: Session, organisation: int) -> AuditRow | None:
    """The newest record of this organisation."""
    return session.scalar(
        select(AuditRow)
        .where(AuditRow.organisation_id == organisation)
        .order_by(AuditRow.number.desc())
        .limit(1)
    )


def seal_of(session: Session, organisation: int) -> Head | audit_seal.NotOurs | None:
    """What an organisation's chain was sealed at, or why its seal cannot be trusted."""
    try:
        return audit_seal.sealed(session, organisation)
    except audit_seal.NotOurs as error:
        return error


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
    found = seal_of(session, organisation)
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
