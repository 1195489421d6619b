"""Taking a backup up again: checked as a whole before anything of it is in its place."""

import secrets
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from alembic import command
from rlcore import ConfigurationError, RLEaaSError, Secret
from sqlalchemy import Connection, MetaData, inspect, make_url
from sqlalchemy.orm import Session

from rleaas.server.backup import files, rows
from rleaas.server.backup.archive import ArchiveReader, damaged
from rleaas.server.backup.exchange import REPLACED, Exchange
from rleaas.server.backup.files import PREFIX, SECRET
from rleaas.server.backup.making import TABLES, absent, heads
from rleaas.server.backup.rows import Content
from rleaas.server.backup.upgrading import require_nobody
from rleaas.server.data_lock import DataLock
from rleaas.server.keys import LENGTH, ServerKeys
from rleaas.server.store import audit, audit_chain, schema
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.audit_seal import KEY
from rleaas.server.store.database import Database
from rleaas.server.store.tables import FIRST_ORGANISATION, Base

ACTOR: Final = "rleaas db restore"
_STAGING: Final = ".restore-"
_BESIDE_A_DATABASE: Final = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was taken up.

    Attributes:
        revision: that of the tables, after the migrations that the backup had not seen.
        from_revision: that of the backup.
        rows: how many rows there were in it.
        files: how many files.
        missing: files that rows refer to, and that the server had lost before the backup.
        audit_problem: where the audit chain does not hold together; None: it does.
    """

    revision: str
    from_revision: str
    rows: int
    files: int
    missing: tuple[str, ...]
    audit_problem: str | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a manifest says, after it was checked."""

    revision: str
    contents: dict[str, Content]
    places: dict[str, Path]
    missing: frozenset[str]
    heads: object
    created_at: str


def restore(
    path: Path,
    data_dir: Path,
    place: Path | str,
    *,
    force: bool = False,
    allow_broken_audit: bool = False,
) -> Restored:
    """Take a backup up, all of it or nothing; no server may be using the place.

    Args:
        path: the archive.
        data_dir: the data directory that it is to fill.
        place: the database, as for `Database`.
        force: whether to replace what is there; otherwise the place must be empty.
        allow_broken_audit: whether to take up an audit chain that does not hold together.

    Raises:
        ConfigurationError: the place is not empty or in use, or a newer rleaas made the backup.
        RLEaaSError: the archive is damaged, or its audit chain broken.
    """
    try:
        return _restore(path, data_dir, place, force, allow_broken_audit)
    except OSError as error:
        raise RLEaaSError(
            f"the backup could not be restored to {str(data_dir)!r}: {error.strerror or error}",
            code="restore_not_written",
            hint="Make room, or choose another place with --data; nothing was changed",
        ) from error


def _restore(
    path: Path, data_dir: Path, place: Path | str, force: bool, allow_broken_audit: bool
) -> Restored:
    file = _file_of(place)
    with ExitStack() as stack:
        archive = stack.enter_context(ArchiveReader(path))
        plan = _plan(archive)
        lock = DataLock(data_dir)
        stack.callback(lock.release)
        _require_empty(data_dir, file, force=force)
        _require_room(archive, data_dir)
        staging = stack.enter_context(_staging(data_dir))
        for member, where in plan.places.items():
            files.put(staging / where, archive.read(member))
        fresh = stack.enter_context(_fresh_database(file))
        database = Database(place if fresh is None else fresh)
        stack.callback(database.close)
        exchange = stack.enter_context(Exchange(data_dir))
        with database.whole() as connection:
            if fresh is None:
                _make_empty(connection, force=force)
            secret = staging / SECRET
            restored = _fill(
                connection,
                archive,
                plan,
                audit_key=ServerKeys(secret).audit if secret.exists() else None,
                allow_broken_audit=allow_broken_audit,
            )
            if fresh is None:
                # Before the rows can be seen: without its files no row of theirs is.
                exchange.put_all(staging)
        if file is not None and fresh is not None:
            database.close()  # which leaves one file
            exchange.put_all(staging)
            for ending in _BESIDE_A_DATABASE:
                exchange.take_away(file.with_name(file.name + ending))
            exchange.put(fresh, file)
        return restored


def _plan(archive: ArchiveReader) -> _Plan:
    manifest = archive.manifest
    revision, tables, missing = (manifest.get(name) for name in ("revision", "tables", "missing"))
    if not isinstance(revision, str) or not isinstance(tables, dict):
        raise damaged("its manifest does not describe its tables")
    contents = {
        name: rows.content_of(name, said)
        for name, said in cast("dict[str, object]", tables).items()
    }
    of_tables = {f"{TABLES}{name}.jsonl" for name in contents}
    others = archive.members.keys() - of_tables
    if of_tables - archive.members.keys():
        raise damaged(f"it has no member {sorted(of_tables - archive.members.keys())[0]!r}")
    for member in others:
        if not member.startswith(PREFIX):
            raise damaged(f"member {member!r} is none that a backup has")
    if PREFIX + SECRET not in others:
        raise damaged(f"it has not the server's secret, {SECRET}")
    if archive.members[PREFIX + SECRET].size != LENGTH:
        raise damaged(f"its {SECRET} has not the {LENGTH} bytes of a server's secret")
    # Those of older tables could not be read when the backup was made.
    if not isinstance(manifest.get("audit"), dict) and not schema.compare(revision).pending:
        raise damaged("its manifest does not name the newest audit records")
    return _Plan(
        revision,
        contents,
        {member: files.place_of(member) for member in sorted(others)},
        frozenset(str(one) for one in cast("list[object]", missing))
        if isinstance(missing, list)
        else frozenset(),
        manifest.get("audit"),
        str(manifest.get("created_at")),
    )


def _fill(
    connection: Connection,
    archive: ArchiveReader,
    plan: _Plan,
    *,
    audit_key: Secret | None,
    allow_broken_audit: bool,
) -> Restored:
    newest = schema.compare(plan.revision).newest
    config = schema.migration_config(connection)
    command.upgrade(config, plan.revision)
    found = rows.tables(connection)
    if {table.name for table in found} != plan.contents.keys():
        odd = sorted({table.name for table in found} ^ plan.contents.keys())
        raise damaged(f"its tables are not those of revision {plan.revision}: {', '.join(odd)}")
    rows.clear(connection, found)
    for table in found:
        content = plan.contents[table.name]
        given = archive.lines(f"{TABLES}{table.name}.jsonl", rows.MOST_LINE)
        rows.take(connection, table, content, given)
        rows.go_on_after(connection, table, content.last)
    command.upgrade(config, "head")
    _require_references(connection)
    lost = absent(connection, archive.members, plan.missing)
    if lost:
        raise damaged(f"it has not the file {lost[0]!r} that its rows refer to")
    problem = _require_chain(
        connection, plan, audit_key=audit_key, allow_broken_audit=allow_broken_audit
    )
    return Restored(
        newest,
        plan.revision,
        sum(content.rows for content in plan.contents.values()),
        len(plan.places),
        tuple(sorted(plan.missing)),
        problem,
    )


def _require_references(connection: Connection) -> None:
    # PostgreSQL has looked at each row already.
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            raise damaged(f"table {broken[0][0]!r} has rows whose owners are not there")


def _require_chain(
    connection: Connection, plan: _Plan, *, audit_key: Secret | None, allow_broken_audit: bool
) -> str | None:
    with Session(connection, join_transaction_mode="rollback_only") as session:
        found = audit_chain.verify(session)
        problem = None if found is None else str(found)
        if problem is None and plan.heads is not None and heads(session) != plan.heads:
            problem = "its newest records are not those that the manifest names"
        if problem is not None and not allow_broken_audit:
            raise RLEaaSError(
                f"the audit chain in the backup does not hold together: {problem}",
                code="audit_broken",
                hint="Use another backup, or --allow-broken-audit to take it as it is",
            )
        # Not before: a chain without a seal, of an older server, is sealed when one is started.
        session.info[KEY] = audit_key
        audit.record(
            session,
            ServerItself(FIRST_ORGANISATION, actor=ACTOR),
            action="database.restored",
            subject="database",
            data={"backup_of": plan.created_at, "audit_problem": problem},
        )
        session.flush()
    return problem


def _file_of(place: Path | str) -> Path | None:
    """Return the file of a SQLite database; None: it is elsewhere."""
    if isinstance(place, Path):
        return place
    url = make_url(place)
    if url.get_backend_name() != "sqlite":
        return None
    if not url.database:
        raise ConfigurationError("a database in memory cannot be restored to", code="no_file")
    return Path(url.database)


def _require_empty(data_dir: Path, file: Path | None, *, force: bool) -> None:
    there = files.is_there(data_dir)
    if file is not None and file.exists() and file.name not in there:
        there.append(file.name)
    there += [path.name for path in data_dir.glob(f"{REPLACED}*")]
    if there and not force:
        raise ConfigurationError(
            f"{str(data_dir)!r} is not empty: {', '.join(there)}",
            code="not_empty",
            hint="Restore to an empty place, or replace what is there with --force",
        )


def _require_room(archive: ArchiveReader, data_dir: Path) -> None:
    free = shutil.disk_usage(data_dir).free
    if archive.size > free:
        raise RLEaaSError(
            f"the backup holds {archive.size} bytes, and {free} are free in {str(data_dir)!r}",
            code="no_room",
            hint="Choose another place with --data",
        )


def _make_empty(connection: Connection, *, force: bool) -> None:
    ours = {*Base.metadata.tables, "alembic_version"}
    there = ours & set(inspect(connection).get_table_names())
    if "leases" in there:
        require_nobody(connection)
    if there and not force:
        raise ConfigurationError(
            "the database is not empty",
            code="not_empty",
            hint="Restore to an empty one, or replace what is there with --force",
        )
    metadata = MetaData()
    metadata.reflect(connection, only=sorted(there))
    metadata.drop_all(connection)


@contextmanager
def _staging(data_dir: Path) -> Generator[Path]:
    for old in data_dir.glob(f"{_STAGING}*"):  # of a restore that was killed: the place is ours
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    place = data_dir / f"{_STAGING}{secrets.token_hex(6)}"
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _fresh_database(file: Path | None) -> Generator[Path | None]:
    """A new file beside a place, which is gone at the end unless it was put there."""
    if file is None:
        yield None
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{_STAGING}{secrets.token_hex(6)}.db")
    try:
        yield fresh
    finally:
        for ending in ("", *_BESIDE_A_DATABASE):
            fresh.with_name(fresh.name + ending).unlink(missing_ok=True)
