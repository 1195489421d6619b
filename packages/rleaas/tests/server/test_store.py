from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from rlcore import ConfigurationError
from rleaas.server.data_lock import DataLock
from rleaas.server.job_logs import JobLogs
from rleaas.server.keys import ServerKeys
from rleaas.server.store import environments, events
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import Base, EnvironmentRow, EventRow
from sqlalchemy import select, text


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "x.db")
    database.migrate()
    return database


def test_the_migrations_make_exactly_the_tables(database: Database) -> None:
    with database.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)

    assert differences == []
    database.close()


def test_migrating_again_changes_nothing_and_keeps_the_data(database: Database) -> None:
    with database.write() as session:
        environments.upsert(session, Registration("A"), None)

    database.migrate()

    with database.read() as session:
        assert session.scalars(select(EnvironmentRow.name)).all() == ["A"]
    database.close()


def test_the_database_is_in_wal_mode_with_foreign_keys(database: Database) -> None:
    with database.read() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert session.scalar(text("PRAGMA foreign_keys")) == 1
    database.close()


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def register_and_fail() -> None:
        with database.write() as session:
            environments.upsert(session, Registration("A"), None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        register_and_fail()

    with database.read() as session:
        assert session.scalars(select(EnvironmentRow)).all() == []
    database.close()


def test_deleting_an_environment_deletes_what_hangs_on_it_but_no_event(
    database: Database,
) -> None:
    with database.write() as session:
        version, _ = environments.upsert(session, Registration("A"), None)
        events.add(session, "environment_version:1", "ready", {})
    with database.write() as session:
        session.delete(environments.find(session, "A"))

    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM environment_versions")) == 0
        assert [row.kind for row in session.scalars(select(EventRow))] == ["ready"]
    assert version.version == 1
    database.close()


def test_the_first_contract_of_a_version_stays(database: Database) -> None:
    with database.write() as session:
        version, _ = environments.upsert(session, Registration("A"), None)
        first = environments.keep_contract(session, version.id, {"a": 1}, "sha256:1")
        second = environments.keep_contract(session, version.id, {"a": 2}, "sha256:2")

    assert first == second == ("sha256:1", {"a": 1})
    database.close()


def test_logs_are_read_line_by_line_from_a_cursor(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    logs.append("j", ["one", "two\nthree"])
    with logs.open("j") as file:
        file.write(b"10%\r20%\r\nunfinished")

    part = logs.after("j", 0, finished=False)
    rest = logs.after("j", part.cursor, finished=False)
    end = logs.after("j", part.cursor, finished=True)

    assert part.lines == ["one", "two", "three", "20%"]
    assert (rest.lines, end.lines) == ([], ["unfinished"])
    assert logs.tail("j", 2) == ["20%", "unfinished"]
    assert logs.tail("none") == []


def test_a_long_log_is_read_in_parts_without_losing_a_line(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    lines = [f"{number:06d} {'x' * 90}" for number in range(6000)]
    logs.append("j", lines)

    read: list[str] = []
    cursor = 0
    while part := logs.after("j", cursor, finished=True).lines:
        cursor = logs.after("j", cursor, finished=True).cursor
        read += part

    assert read == lines


def test_one_data_directory_has_one_server(tmp_path: Path) -> None:
    lock = DataLock(tmp_path)

    with pytest.raises(ConfigurationError, match="in use by the server with pid"):
        DataLock(tmp_path)

    lock.release()
    DataLock(tmp_path).release()


def test_a_directory_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(ConfigurationError, match="cannot be used"):
        DataLock(tmp_path / "file")


def test_the_servers_key_is_private_and_survives(tmp_path: Path) -> None:
    path = tmp_path / "server.key"
    first, second = ServerKeys(path), ServerKeys(path)

    assert path.stat().st_mode & 0o077 == 0
    assert first.environment(1) == second.environment(1)
    assert first.environment(1) != first.environment(2)
    assert first.workers != first.environment(1)
