"""The database: one SQLite file in WAL mode, brought up to date when it is opened."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

MIGRATIONS = Path(__file__).parent / "migrations"


class Database:
    """Sessions on one SQLite file.

    A write session takes the write lock when it begins: a transaction that reads first and then
    finds another writer in its way could only fail.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._engine = create_engine(f"sqlite:///{path}")
        event.listen(self._engine, "connect", _prepare)
        event.listen(self._engine, "begin", _begin)
        self._writing = self._engine.execution_options(write=True)

    @property
    def engine(self) -> Engine:
        """The engine, for migrations and tests."""
        return self._engine

    def migrate(self) -> None:
        """Bring the tables to the newest revision."""
        with self._writing.connect() as connection, connection.begin():
            command.upgrade(migration_config(connection), "head")

    @contextmanager
    def read(self) -> Generator[Session]:
        """A consistent view; nothing done in it is kept."""
        with Session(self._engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Generator[Session]:
        """A transaction: kept when the block ends, undone when it raises."""
        with Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def migration_config(connection: Connection) -> Config:
    """Alembic's settings for the migrations that ship inside the package."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _prepare(connection: SQLiteConnection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA busy_timeout=10000")


def _begin(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
