"""Which server processes of a database are alive: each keeps a lease that runs out without it."""

from collections.abc import Set
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import LeaseRow

# Renewed at a third of it. A server under full load may wait long for its turn to write, and must
# not be taken for dead: its jobs would end as failed.
LEASE_SECONDS: Final = 30.0
_SERVER: Final = "server:"


def renew(session: Session, holder: str) -> None:
    """Say that this process is alive."""
    now = datetime.now(UTC)
    expires = now + timedelta(seconds=LEASE_SECONDS)
    row = session.get(LeaseRow, _SERVER + holder)
    if row is None:
        session.add(LeaseRow(name=_SERVER + holder, holder=holder, expires_at=expires))
    else:
        row.expires_at = expires
    session.flush()


def alive(session: Session) -> Set[str]:
    """Return the processes whose leases have not run out."""
    found = session.scalars(
        select(LeaseRow.holder).where(
            LeaseRow.name.startswith(_SERVER), LeaseRow.expires_at > datetime.now(UTC)
        )
    )
    return set(found)


def release(session: Session, holder: str) -> None:
    """Say that this process has ended; leases that ran out long ago go too."""
    old = datetime.now(UTC) - timedelta(hours=1)
    session.execute(
        delete(LeaseRow).where(
            LeaseRow.name.startswith(_SERVER),
            (LeaseRow.holder == holder) | (LeaseRow.expires_at < old),
        )
    )


def release_all(session: Session) -> None:
    """Say that every process has ended, as only one can be at this database and it begins."""
    session.execute(delete(LeaseRow).where(LeaseRow.name.startswith(_SERVER)))
