"""The database: SQLite in a file, or PostgreSQL; brought up to date when it is opened."""

import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

from alembic import command
from rlcore import ConfigurationError, Secret
from sqlalchemy import Connection, Engine, create_engine, event, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.orm.util import LoaderCriteriaOption
from sqlalchemy.pool import ConnectionPoolEntry

from rleaas.server.store import schema
from rleaas.server.store.audit_seal import KEY
from rleaas.server.store.outages import WAIT_SECONDS, busy
from rleaas.server.store.quotas import KEY_LIMITS, require_room
from rleaas.server.store.tables import Owned

DIALECTS = ("sqlite", "postgresql")
_OWNER = "organisation"
# Any number will do that nobody else locks in the same database.
_WRITE_LOCK = 0x726C6561
# A server that is stopped in the middle of a write must not hold the lock for ever.
_STALLED_SECONDS = 30
# Each request that is being answered may need one; a PostgreSQL shares its own with other servers.
_CONNECTIONS = {"sqlite": (16, 48), "postgresql": (8, 16)}


class Database:
    """Sessions on one database.

    There is one writer at a time: a write session takes the lock when it begins. A transaction that
    reads first and then finds another writer in its way could only fail, and rows get their numbers
    in the order in which they can be seen, so that a reader that goes on after the last number it
    saw misses nothing. Within a process they take turns before they ask the database: SQLite only
    lets the next one look again from time to time.

    A session of an organisation sees the rows of that organisation only, whatever it asks for, and
    what it adds belongs to it; without one, as for the server's own work, a session sees all.

    Args:
        place: the file of a SQLite database, or a URL such as `postgresql://user@host/name`.

    Raises:
        ConfigurationError: the URL is not one of a database that this server can use.
    """

    def __init__(self, place: Path | str) -> None:
        if isinstance(place, Path):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _keep_private(place)
        self._engine = _engine_of(f"sqlite:///{place}" if isinstance(place, Path) else place)
        self.is_sqlite = self._engine.dialect.name == "sqlite"
        if self.is_sqlite:
            event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin_sqlite if self.is_sqlite else _begin_postgresql)
        self._writing = self._engine.execution_options(write=True)
        self._reading = self._engine
        if not self.is_sqlite:
            # Said with the BEGIN, and not by one more question.
            self._reading = self._engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        self._turn = threading.Lock()
        self._audit_key: Secret | None = None

    @property
    def engine(self) -> Engine:
        """The engine, for migrations and tests."""
        return self._engine

    def seal_audit(self, key: Secret) -> None:
        """Let sessions seal audit chains, and check their seals, with this key."""
        self._audit_key = key

    def migrate(self, revision: str = "head") -> None:
        """Bring the tables to the newest revision, or to this one.

        Raises:
            ConfigurationError: they have a revision that this code does not know.
        """
        with self.whole() as connection:
            found = schema.look(connection)
            if found.pending or revision != "head":
                command.upgrade(schema.migration_config(connection), revision)

    def schema(self) -> schema.Schema:
        """Which revision the tables have, and which migrations are still to be run.

        Raises:
            ConfigurationError: it is a revision that this code does not know.
        """
        with self._reading.connect() as connection:
            return schema.look(connection)

    @contextmanager
    def whole(self) -> Generator[Connection]:
        """A transaction for work on all tables; at its end every row must have its owners."""
        patient = self._writing.execution_options(patient=True)
        with patient.connect() as connection:
            # SQLite changes a table by making it anew: its rows must not take others along.
            self._guard_references(connection, guarded=False)
            try:
                with connection.begin():
                    yield connection
                    self._require_whole(connection)
            finally:
                self._guard_references(connection, guarded=True)

    def _guard_references(self, connection: Connection, *, guarded: bool) -> None:
        driven = connection.connection.driver_connection
        if isinstance(driven, SQLiteConnection):
            driven.execute(f"PRAGMA foreign_keys={'ON' if guarded else 'OFF'}")

    def _require_whole(self, connection: Connection) -> None:
        if self.is_sqlite:
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            if broken:
                raise RuntimeError(f"the migration left rows without their owners: {broken[:5]}")

    @contextmanager
    def read(self, organisation: int | None = None) -> Generator[Session]:
        """A consistent view; nothing done in it is kept."""
        info = {_OWNER: organisation, KEY: self._audit_key}
        with Session(self._reading, expire_on_commit=False, info=info) as session:
            yield session

    @contextmanager
    def write(
        self, organisation: int | None = None, *, limits: Mapping[str, float] | None = None
    ) -> Generator[Session]:
        """A transaction: kept when the block ends, undone when it raises.

        What is added must find room in the quotas of its organisation, and in these `limits`.

        Raises:
            ServerFailure: others wrote all the time; nothing was done.
        """
        info = {_OWNER: organisation, KEY_LIMITS: limits, KEY: self._audit_key}
        with (
            self._turn_to_write(),
            Session(self._writing, expire_on_commit=False, info=info) as session,
            session.begin(),
        ):
            yield session

    @contextmanager
    def _turn_to_write(self) -> Generator[None]:
        if not self._turn.acquire(timeout=WAIT_SECONDS):
            raise busy()
        try:
            yield
        finally:
            self._turn.release()

    def problem(self) -> str | None:
        """Return why the database does not answer; None: it does."""
        try:
            with self.read() as session:
                session.execute(select(1))
        except SQLAlchemyError as error:
            return f"{type(error).__name__}"
        return None

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def owner_of(session: Session) -> int | None:
    """Return the organisation whose session this is; None: it is the server's own."""
    owner: int | None = session.info.get(_OWNER)
    return owner


@event.listens_for(Session, "do_orm_execute")
def _only_its_own(state: ORMExecuteState) -> None:
    owner = owner_of(state.session)
    if owner is None or state.is_column_load:
        return
    if state.is_select or state.is_update or state.is_delete:
        state.statement = state.statement.options(_rows_of(owner))


@lru_cache(maxsize=1024)
def _rows_of(owner: int) -> LoaderCriteriaOption:
    return with_loader_criteria(
        Owned, lambda row: row.organisation_id == owner, include_aliases=True
    )


@event.listens_for(Session, "before_flush")
def _give_to_its_owner(session: Session, *_: object) -> None:
    owner = owner_of(session)
    for row in session.new:
        if isinstance(row, Owned) and getattr(row, "organisation_id", None) is None:
            if owner is None:
                raise RuntimeError(f"a new row of {type(row).__name__} belongs to nobody")
            row.organisation_id = owner
    require_room(session)


def _keep_private(file: Path) -> None:
    """Let only this user read a SQLite file; those that SQLite puts beside it are like it."""
    # By its path: closing a file that SQLite has open in this process would give up its locks.
    if not file.exists():
        with suppress(FileExistsError):
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    for suffix in ("", "-wal", "-shm"):
        one = file.with_name(f"{file.name}{suffix}")
        with suppress(FileNotFoundError):  # another process ended and took its own along
            if one.stat().st_uid == os.geteuid():
                one.chmod(0o600)


def _engine_of(url: str) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "the database URL cannot be read", hint="Write postgresql://USER@HOST/NAME"
        ) from error
    name = parsed.get_backend_name()
    if name not in DIALECTS:
        raise ConfigurationError(
            f"{name!r} is not a database that this server can use",
            hint=f"Use one of {', '.join(DIALECTS)}",
        )
    kept, more = _CONNECTIONS[name]
    if name == "sqlite":
        return create_engine(
            parsed,
            hide_parameters=True,
            pool_size=kept,
            max_overflow=more,
            pool_timeout=WAIT_SECONDS,
        )
    return create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        hide_parameters=True,  # what was to be stored is nothing for a log
        pool_pre_ping=True,
        pool_size=kept,
        max_overflow=more,
        pool_timeout=WAIT_SECONDS,
        connect_args={"connect_timeout": WAIT_SECONDS},
    )


def _prepare(connection: SQLiteConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA busy_timeout=10000")


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("write", False):
        return
    patience, stalled = (0, 0) if options.get("patient") else (WAIT_SECONDS, _STALLED_SECONDS)
    connection.exec_driver_sql(
        f"SET LOCAL lock_timeout = '{patience}s';"
        f"SET LOCAL idle_in_transaction_session_timeout = '{stalled}s';"
        f"SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
    )
