from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Thread

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from rlcore import ConfigurationError, Secret
from rleaas.server.data_lock import DataLock
from rleaas.server.job_logs import JobLogs
from rleaas.server.keys import ServerKeys
from rleaas.server.outbound import is_public
from rleaas.server.store import environments, events, jobs
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import (
    FIRST_ORGANISATION,
    Base,
    EnvironmentRow,
    EventRow,
    OrganisationRow,
    VersionRow,
)
from sqlalchemy import delete, select, text, update


def test_the_migrations_make_exactly_the_tables(database_place: Path | str) -> None:
    database = Database(database_place)
    database.migrate()

    with database.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Base.metadata)

    assert differences == []
    database.close()


def test_migrating_again_changes_nothing_and_keeps_the_data(database: Database) -> None:
    with database.write(1) as session:
        environments.upsert(session, Registration("A"), None)

    database.migrate()

    with database.read() as session:
        assert session.scalars(select(EnvironmentRow.name)).all() == ["A"]


def test_sqlite_is_in_wal_mode_with_foreign_keys_and_waits_for_the_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "rleaas.db")
    database.migrate()
    with database.read() as session:
        assert session.scalar(text("PRAGMA journal_mode")) == "wal"
        assert session.scalar(text("PRAGMA foreign_keys")) == 1
        assert session.scalar(text("PRAGMA synchronous")) == 2
    database.close()


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def register_and_fail() -> None:
        with database.write(1) as session:
            environments.upsert(session, Registration("A"), None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        register_and_fail()

    with database.read() as session:
        assert session.scalars(select(EnvironmentRow)).all() == []


def test_deleting_an_environment_deletes_what_hangs_on_it_but_no_event(
    database: Database,
) -> None:
    with database.write(1) as session:
        version, _ = environments.upsert(session, Registration("A"), None)
        events.add(session, "environment_version:1", "ready", {})
    with database.write(1) as session:
        session.delete(environments.find(session, "A"))

    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM environment_versions")) == 0
        assert [row.kind for row in session.scalars(select(EventRow))] == ["ready"]
    assert version.version == 1


def test_the_first_contract_of_a_version_stays(database: Database) -> None:
    with database.write(1) as session:
        version, _ = environments.upsert(session, Registration("A"), None)
        first = environments.keep_contract(session, version.id, {"a": 1}, "sha256:1")
        second = environments.keep_contract(session, version.id, {"a": 2}, "sha256:2")

    assert first == second == ("sha256:1", {"a": 1})


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


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_secret_that_is_not_whole_is_refused_with_what_to_do(tmp_path: Path, size: int) -> None:
    path = tmp_path / "server.key"
    path.write_bytes(b"k" * size)

    with pytest.raises(ConfigurationError, match=f"it has {size} bytes") as caught:
        ServerKeys(path)

    assert (caught.value.code, path.stat().st_size) == ("secret_damaged", size)
    assert "backup" in str(caught.value.hint)


def test_of_servers_that_begin_at_once_all_have_the_same_whole_secret(tmp_path: Path) -> None:
    together = Barrier(8)

    def begin(_: int) -> Secret:
        together.wait()
        return ServerKeys(tmp_path / "server.key").workers

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(begin, range(8)))

    assert all(one == found[0] for one in found)
    assert [path.name for path in tmp_path.iterdir()] == ["server.key"]


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("64:ff9b::808:808", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b:1::808:808", False),
        ("2002:7f00:1::", False),
        ("2001:0:4136:e378::1", False),
        ("::127.0.0.1", False),
        ("::8.8.8.8", False),
        ("::ffff:8.8.8.8", True),
        ("::ffff:127.0.0.1", False),
        ("::ffff:0:127.0.0.1", False),
        ("fec0::1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_an_address_that_leads_elsewhere_by_way_of_ipv6_is_not_public(
    address: str, public: bool
) -> None:
    assert is_public(address) is public


FIRST_ENVIRONMENT = """
INSERT INTO environments (id, name, description, tags, details, created_at, updated_at)
VALUES (5, 'Old', 'from before', '["a"]', '{}', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)
"""
FIRST_VERSION = """
INSERT INTO environment_versions
    (id, environment_id, version, source, kwargs, config, status, created_at)
VALUES (7, 5, 1, 'gym://CartPole-v1', '{}', '{"size": 3}', 'ready', CURRENT_TIMESTAMP)
"""
FIRST_JOB = """
INSERT INTO jobs (id, kind, version_id, status, request, progress, results, last_seq, created_at)
VALUES ('job_1', 'training', 7, 'completed', '{}', 100, '{}', 4, CURRENT_TIMESTAMP)
"""
FIRST_CHECKPOINT = """
INSERT INTO checkpoints (id, job_id, episode, sha256, size_bytes, created_at)
VALUES ('ckpt_1', 'job_1', 10, 'abc', 12, CURRENT_TIMESTAMP)
"""
FIRST_EVENT = """
INSERT INTO events (at, kind, subject, data)
VALUES (CURRENT_TIMESTAMP, 'created', 'job:job_1', '{}')
"""


def test_data_of_the_first_revision_is_kept_and_belongs_to_the_first_organisation(
    database_place: Path | str,
) -> None:
    database = Database(database_place)
    database.migrate("0001")
    with database.write() as session:
        for statement in (
            FIRST_ENVIRONMENT,
            FIRST_VERSION,
            FIRST_JOB,
            FIRST_CHECKPOINT,
            FIRST_EVENT,
        ):
            session.execute(text(statement))
    database.migrate()

    with database.read(FIRST_ORGANISATION) as session:
        row = environments.find(session, "Old")
        assert (row.id, row.description, row.tags) == (5, "from before", ["a"])
        assert row.latest.config == {"size": 3}
        checkpoint = jobs.find_checkpoint(session, "ckpt_1")
        assert (checkpoint.job.status, checkpoint.job.attempts) == ("completed", 0)
        assert [event.kind for event in events.about(session, "job:job_1")] == ["created"]
    with database.write(FIRST_ORGANISATION) as session:
        events.add(session, "job:job_1", "seen", {})
        assert [event.kind for event in events.about(session, "job:job_1")] == ["created", "seen"]
    database.close()


def test_an_organisation_neither_sees_nor_changes_the_rows_of_another(database: Database) -> None:
    with database.write() as session:
        session.add(OrganisationRow(id=2, name="other", limits={}, created_at=datetime.now(UTC)))
    with database.write(1) as session:
        environments.upsert(session, Registration("Mine"), None)
    with database.write(2) as session:
        environments.upsert(session, Registration("Theirs"), None)
        environments.upsert(session, Registration("Mine"), None)

    with database.read(2) as session:
        assert session.scalars(select(EnvironmentRow.organisation_id)).all() == [2, 2]
        theirs = environments.find(session, "Mine").id
    with database.write(1) as session:
        assert session.get(EnvironmentRow, theirs) is None
        session.execute(update(EnvironmentRow).values(description="changed"))
        session.execute(delete(VersionRow).where(VersionRow.environment_id == theirs))
    with database.read() as session:
        told = session.execute(
            select(EnvironmentRow.organisation_id, EnvironmentRow.description).order_by(
                EnvironmentRow.id
            )
        ).all()
        assert [tuple(row) for row in told] == [(1, "changed"), (2, ""), (2, "")]
        assert len(session.scalars(select(VersionRow)).all()) == 3


def test_the_servers_own_sessions_see_all_but_add_nothing_that_belongs_to_nobody(
    database: Database,
) -> None:
    with database.write(1) as session:
        environments.upsert(session, Registration("A"), None)
    with database.read() as session:
        assert environments.find(session, "A").name == "A"

    with pytest.raises(RuntimeError, match="belongs to nobody"), database.write() as session:
        session.add(EventRow(at=datetime.now(UTC), kind="k", subject="s", data={}))


def test_numbers_of_events_follow_the_order_in_which_they_can_be_seen(database: Database) -> None:
    def write(name: str) -> None:
        for count in range(20):
            with database.write(1) as session:
                events.add(session, name, str(count), {})

    writers = [Thread(target=write, args=(name,)) for name in "abc"]
    seen: list[int] = []
    for writer in writers:
        writer.start()
    while len(seen) < 60:
        with database.read(1) as session:
            seen += session.scalars(
                select(EventRow.id).where(EventRow.id > max(seen, default=0)).order_by(EventRow.id)
            )
    for writer in writers:
        writer.join()

    assert len(seen) == len(set(seen)) == 60
    assert seen == sorted(seen)


@pytest.mark.parametrize("url", ["not a url", "mysql://root@localhost/x"])
def test_a_database_that_cannot_be_used_is_refused_by_name(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Database(url)
