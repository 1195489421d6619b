"""Backups of a server, also while it runs: its rows and its files as they were at one moment."""

import sqlite3
from collections.abc import Collection, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection
from typing import Final

from rlcore import ConfigurationError, RLEaaSError
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from rleaas.server.artifacts.places import Place, place_of
from rleaas.server.artifacts.store import ARTIFACTS
from rleaas.server.backup import files, rows
from rleaas.server.backup.archive import ArchiveWriter, Facts, Member, chunks_of
from rleaas.server.backup.files import PREFIX, Held
from rleaas.server.backup.references import needed
from rleaas.server.keys import ServerKeys
from rleaas.server.store import audit, audit_chain, schema
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.database import Database
from rleaas.server.store.tables import FIRST_ORGANISATION

TABLES: Final = "tables/"
ACTOR: Final = "rleaas db backup"


@dataclass(frozen=True, slots=True)
class Backup:
    """What was written.

    Attributes:
        path: the archive.
        size_bytes: its size.
        revision: that of the tables.
        rows: how many rows there are in all tables together.
        files: how many files of the data directory are in it.
        missing: files that rows refer to, and that are gone or not what the rows say.
        audit_problem: where the audit chain does not hold together; None: it does.
    """

    path: Path
    size_bytes: int
    revision: str
    rows: int
    files: int
    missing: tuple[str, ...]
    audit_problem: str | None


def default_name(now: datetime) -> str:
    """What a backup of this moment is called."""
    return f"rleaas-backup-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.zip"


def backup(
    data_dir: Path, place: Path | str, target: Path, *, artifacts_url: str | None = None
) -> Backup:
    """Write everything that a server keeps to one archive; the server may go on meanwhile.

    One format serves every database, so that what was kept in one can be restored to another. It
    needs no program of the database's own, and holds rows and not statements.

    Args:
        data_dir: the server's data directory.
        place: its database, as for `Database`.
        target: where the archive is to be.
        artifacts_url: where the files of checkpoints lie, when that is not in the data directory;
            they are in the archive all the same.

    Raises:
        ConfigurationError: there is no server's data, or the archive cannot be written there.
        RLEaaSError: the database is damaged.
    """
    if not data_dir.is_dir() or (isinstance(place, Path) and not place.is_file()):
        raise _no_data(data_dir)
    database = Database(place)
    try:
        secret = data_dir / files.SECRET
        if secret.exists():
            database.seal_audit(ServerKeys(secret).audit)
        with (
            ArchiveWriter(target) as archive,
            files.staging(data_dir) as staging,
            _one_moment(database, data_dir, staging) as moment,
        ):
            elsewhere = None if artifacts_url is None else place_of(artifacts_url, data_dir)
            made = _write(archive, moment, elsewhere)
    except OSError as error:
        raise RLEaaSError(
            f"the backup {str(target)!r} could not be written: {error.strerror or error}",
            code="backup_not_written",
            hint="Make room, or choose another place with --to",
        ) from error
    finally:
        database.close()
    return Backup(target, target.stat().st_size, *made)


@dataclass(frozen=True, slots=True)
class _Moment:
    connection: Connection
    revision: str
    is_newest: bool
    held: list[Held]


@contextmanager
def _one_moment(database: Database, data_dir: Path, staging: Path) -> Generator[_Moment]:
    with database.read() as view:
        reader = view.connection()
        # Nobody writes until both are held. Files are put in place and replaced in the transaction
        # of their rows, and deleted after it: all that the rows need is there now.
        with database.write() as gate:
            gate.connection()
            found = schema.look(reader)
            if found.current is None:
                raise _no_data(data_dir)
            if not found.pending:
                audit.record(
                    gate,
                    ServerItself(FIRST_ORGANISATION, actor=ACTOR),
                    action="database.backup",
                    subject="database",
                )
            held = files.hold(data_dir, staging)
        driven = reader.connection.driver_connection
        if isinstance(driven, SQLiteConnection):
            # A copy, so that the server's log of writes does not grow while rows are packed.
            with _copy(driven, staging / "copy.db") as connection:
                yield _Moment(connection, found.current, not found.pending, held)
        else:
            yield _Moment(reader, found.current, not found.pending, held)


@contextmanager
def _copy(driven: SQLiteConnection, place: Path) -> Generator[Connection]:
    with closing(sqlite3.connect(place)) as target:
        driven.backup(target)
        try:
            found = [str(row[0]) for row in target.execute("PRAGMA integrity_check(5)")]
        except sqlite3.DatabaseError as error:
            found = [str(error)]
    if found != ["ok"]:
        raise RLEaaSError(
            f"the database is damaged: {'; '.join(found)}",
            code="database_damaged",
            hint="Stop the server, and restore the last good backup",
        )
    copy = Database(place)
    try:
        with copy.engine.connect() as connection:
            yield connection
    finally:
        copy.close()


def _write(
    archive: ArchiveWriter, moment: _Moment, elsewhere: Place | None
) -> tuple[str, int, int, tuple[str, ...], str | None]:
    connection = moment.connection
    found = rows.tables(connection)
    contents: dict[str, rows.Content] = {}
    for table in found:
        counted: list[int] = []
        archive.add(f"{TABLES}{table.name}.jsonl", rows.lines(connection, table, counted))
        contents[table.name] = rows.Content(
            [column.name for column in table.columns],
            sum(counted),
            rows.last_number(connection, table),
        )
    for one in moment.held:
        with one.path.open("rb") as file:
            packed = one.name.endswith(".zip") or one.name.startswith(ARTIFACTS)
            archive.add(PREFIX + one.name, chunks_of(file, one.size), pack=not packed)
    count = len(moment.held)
    if elsewhere is not None:
        count += _fetch(archive, connection, elsewhere)
    missing = absent(connection, archive.members)
    problem = None
    facts: Facts = {
        "rleaas": version("rleaas"),
        "created_at": datetime.now(UTC).isoformat(),
        "database": connection.dialect.name,
        "revision": moment.revision,
        "tables": {name: asdict(content) for name, content in contents.items()},
        "missing": missing,
    }
    if moment.is_newest:
        with Session(connection) as session:
            found_problem = audit_chain.verify(session)
            problem = None if found_problem is None else str(found_problem)
            facts["audit"] = heads(session)
    archive.finish(facts)
    total = sum(content.rows for content in contents.values())
    return moment.revision, total, count, tuple(missing), problem


def _fetch(archive: ArchiveWriter, connection: Connection, place: Place) -> int:
    """Add the files of checkpoints that lie elsewhere; returns how many."""
    folder = f"{PREFIX}{ARTIFACTS}"
    count = 0
    for (member, *_), _ in list(needed(connection, rows.tables(connection))):
        if member.startswith(folder) and member not in archive.members:
            name = member.removeprefix(folder)
            if place.size(name) is not None:
                archive.add(member, place.chunks(name), pack=False)
                count += 1
    return count


def absent(
    connection: Connection, members: Mapping[str, Member], excused: Collection[str] = ()
) -> list[str]:
    """The members that rows refer to, and that are not there with the digest that they need."""
    return sorted(
        places[0]
        for places, sha256 in needed(connection, rows.tables(connection))
        if not any(_is(members.get(place), sha256) or place in excused for place in places)
    )


def _is(found: Member | None, sha256: str) -> bool:
    return found is not None and found.sha256 == sha256


def heads(session: Session) -> dict[str, object]:
    """The number and digest of the newest audit record of each organisation."""
    return {
        str(row.organisation_id): {"number": row.number, "digest": row.digest}
        for row in audit_chain.heads(session)
    }


def _no_data(data_dir: Path) -> ConfigurationError:
    return ConfigurationError(
        f"there is no server's data in {str(data_dir)!r}",
        code="no_data",
        hint="Say where it is with --data, and --database-url where the database is elsewhere",
    )
