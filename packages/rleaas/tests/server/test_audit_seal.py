"""What a seal shows of a chain that was changed by somebody without the key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from rlcore import ConfigurationError, Secret
from rleaas.server.store import audit, audit_chain
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.database import Database
from rleaas.server.store.tables import AuditRow, SettingRow
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

US = ServerItself(1, "me")


def tell(database: Database, count: int = 1) -> None:
    for number in range(count):
        with database.write(1) as session:
            audit.record(session, US, action="tool.registered", subject=f"tool:{number}")


def problem(database: Database) -> str | None:
    with database.read(1) as session:
        found = audit_chain.verify(session)
    return None if found is None else found.what


@pytest.fixture
def sealed(database: Database) -> Database:
    database.seal_audit(Secret("the key"))
    tell(database, 12)
    assert problem(database) is None
    return database


def rehash(session: Session) -> None:
    """Change the fifth record, and give it and all after it new digests."""
    previous = ""
    for row in audit.page(session, limit=None, oldest_first=True):
        if row.number == 5:
            row.actor = "somebody else"
        if row.number > 5:
            row.previous = previous
        row.digest = previous = audit_chain.digest_of(row)


def cut_off_the_beginning(session: Session) -> None:
    """Remove ten records, and append a record that claims a purge."""
    tenth, newest = (
        session.scalars(select(AuditRow).where(AuditRow.number == number)).one()
        for number in (10, 12)
    )
    forged = AuditRow(
        event_id="evt_x",
        number=13,
        at=datetime.now(UTC),
        actor="server",
        action=audit_chain.PURGED,
        outcome=audit.ALLOWED,
        subject="audit",
        data={"number": 10, "digest": tenth.digest, "records": 10},
        previous=newest.digest,
        organisation_id=1,
    )
    forged.digest = audit_chain.digest_of(forged)
    session.add(forged)
    session.execute(delete(AuditRow).where(AuditRow.number <= 10))


def cut_off_the_end(session: Session) -> None:
    session.execute(delete(AuditRow).where(AuditRow.number > 10))


def remove_all(session: Session) -> None:
    session.execute(delete(AuditRow))


def remove_the_seal(session: Session) -> None:
    session.execute(delete(SettingRow).where(SettingRow.name == "audit_seal"))


def forge_the_seal(session: Session) -> None:
    cut_off_the_end(session)
    row = session.scalars(select(SettingRow).where(SettingRow.name == "audit_seal")).one()
    newest = audit.page(session)[0]
    row.value = {**row.value, "number": newest.number, "digest": newest.digest}


CHANGES = [
    rehash,
    cut_off_the_beginning,
    cut_off_the_end,
    remove_all,
    remove_the_seal,
    forge_the_seal,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("later", [0, 2])
def test_what_was_done_without_the_key_is_found_also_when_more_is_recorded(
    sealed: Database, change: Callable[[Session], None], later: int
) -> None:
    with sealed.write(1) as session:
        change(session)
    tell(sealed, later)

    assert problem(sealed) is not None


def test_a_purge_keeps_the_chain_sealed(sealed: Database) -> None:
    with sealed.write() as session:
        audit.purge(session, 1, datetime.now(UTC), 4)
    tell(sealed)

    assert problem(sealed) is None


def test_a_chain_of_an_older_server_is_sealed_once_and_says_so(database: Database) -> None:
    tell(database, 3)
    database.seal_audit(Secret("the key"))
    before = problem(database)
    with database.write() as session:
        first, again = audit.seal_found(session), audit.seal_found(session)
    tell(database)

    assert "its seal was removed" in str(before)
    assert (first, again) == ([1], [])
    assert problem(database) is None
    with database.read(1) as session:
        noted = session.scalar(select(func.count()).where(AuditRow.action == audit.SEALED))
    assert noted == 1


def test_without_the_key_nothing_is_added_to_a_sealed_chain(sealed: Database) -> None:
    other = Database(sealed.engine.url.render_as_string(hide_password=False))
    with pytest.raises(ConfigurationError, match=r"server\.key"):
        tell(other)
    other.close()

    assert problem(sealed) is None
