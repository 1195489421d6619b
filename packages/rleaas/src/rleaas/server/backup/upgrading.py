"""Migrations run by hand, where nobody uses the database."""

from pathlib import Path

from rlcore import ConfigurationError
from sqlalchemy import Connection, inspect
from sqlalchemy.orm import Session

from rleaas.server.data_lock import DataLock
from rleaas.server.store import leases
from rleaas.server.store.database import Database
from rleaas.server.store.schema import Schema


def existing(place: Path | str) -> Database:
    """Open a database that is there.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(place, Path) and not place.is_file():
        raise ConfigurationError(
            f"there is no database {str(place)!r}",
            code="no_data",
            hint="Say where it is with --data, or --database-url",
        )
    return Database(place)


def upgrade(data_dir: Path, place: Path | str, *, dry_run: bool = False) -> Schema:
    """Bring the tables to the newest revision; returns where they were, and what was run.

    Args:
        data_dir: the server's data directory.
        place: its database, as for `Database`.
        dry_run: whether only to look.

    Raises:
        ConfigurationError: there is no database, a server uses it, or a newer rleaas made it.
    """
    database = existing(place)
    try:
        found = database.schema()
        if dry_run or not found.pending:
            return found
        lock = DataLock(data_dir)
        try:
            _require_unused(database)
            database.migrate()
        finally:
            lock.release()
        return found
    finally:
        database.close()


def require_nobody(connection: Connection) -> None:
    """Refuse where a server says that it is alive.

    Raises:
        ConfigurationError: one does.
    """
    with Session(connection, join_transaction_mode="rollback_only") as session:
        alive = leases.alive(session)
    if alive:
        raise ConfigurationError(
            f"a server is using the database: {', '.join(sorted(alive))}",
            code="database_in_use",
            hint=f"Stop it; one that was killed counts for {leases.LEASE_SECONDS:g} s more",
        )


def _require_unused(database: Database) -> None:
    if database.is_sqlite:
        return  # whoever has the data directory's lock is alone at a file in it
    with database.engine.connect() as connection:
        if inspect(connection).has_table("leases"):
            require_nobody(connection)
