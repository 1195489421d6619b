"""What a server answers while its database is busy, full or away, and that it recovers."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection as SQLiteConnection

import httpx
import pytest
from rleaas.server.store import outages
from rleaas.server.store.database import Database
from sqlalchemy import create_engine, event, make_url, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionInTime

from .conftest import MakeDatabase, Running, Start

BODY = {"name": "careful"}


@pytest.fixture
def engine() -> None:
    """Each outage is one of an engine, which its test names; where it does not, of SQLite."""


def create(platform: Running, key: str = "once") -> httpx.Response:
    return platform.http.post("/api/agents", json=BODY, headers={"idempotency-key": key})


def refused(reply: httpx.Response) -> tuple[int, str, bool]:
    return reply.status_code, str(reply.json()["code"]), int(reply.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NoConnectionInTime("no connection"), "database_busy"),
        (OperationalError("", {}, Exception("database is locked")), "database_busy"),
        (OperationalError("", {}, Exception("canceling: lock timeout")), "database_busy"),
        (OperationalError("", {}, Exception("database or disk is full")), "storage_full"),
        (OperationalError("", {}, Exception("server closed it")), "database_unreachable"),
        (OSError(errno.ENOSPC, "No space left on device"), "storage_full"),
    ],
)
def test_an_outage_is_named_and_to_be_asked_again(error: Exception, code: str) -> None:
    outage = outages.outage_of(error)

    assert outage is not None
    assert (outage.status_code, outage.code, outage.retryable) == (503, code, True)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), FileNotFoundError("x"), IntegrityError("", {}, Exception("UNIQUE failed"))],
)
def test_what_is_a_fault_is_no_outage(error: Exception) -> None:
    assert outages.outage_of(error) is None


def test_a_request_that_gets_no_turn_to_write_is_told_to_ask_again(
    platform: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rleaas.server.store.database.WAIT_SECONDS", 0.05)

    with platform.server.state.database.write():
        assert refused(create(platform)) == (503, "database_busy", True)
        assert platform.http.get("/api/agents").json() == []

    platform.ok(create(platform))


def test_with_a_full_disk_one_can_read_and_afterwards_write(platform: Running) -> None:
    with full(platform.server.state.database):
        large = {**BODY, "description": "x" * 200_000}
        reply = platform.http.post("/api/agents", json=large)
        assert refused(reply) == (503, "storage_full", True)
        assert platform.http.get("/api/agents").json() == []

    made = platform.ok(create(platform))
    assert [one["id"] for one in platform.http.get("/api/agents").json()] == [made["id"]]
    assert platform.http.get("/api/audit/verify").json()["valid"]


def test_a_key_opens_though_its_use_cannot_be_noted(start: Start, tmp_path: Path) -> None:
    platform = start(api_key="operator")
    made = platform.ok(platform.http.post("/api/keys", json={"name": "reader"}))
    reader = {"Authorization": f"Bearer {made['key']}"}

    with read_only(platform.server.state.database):
        assert refused(create(platform))[0] == 503
        assert platform.http.get("/api/agents", headers=reader).status_code == 200


def test_lost_connections_of_a_postgresql_are_made_anew(
    start: Start, postgresql: MakeDatabase
) -> None:
    url = postgresql()
    platform = start(database_url=url)
    made = platform.ok(create(platform))

    drop_connections(url)

    # The answer of one that was in use when it was lost is a 503; there was none here.
    assert platform.ok(create(platform)) == made
    assert len(platform.http.get("/api/agents").json()) == 1


def test_while_a_postgresql_lets_nobody_in_requests_are_to_be_asked_again(
    start: Start, postgresql: MakeDatabase
) -> None:
    url = postgresql()
    platform = start(database_url=url)

    with closed(url):
        assert refused(create(platform)) == (503, "database_unreachable", True)
        assert refused(platform.http.get("/api/agents")) == (503, "database_unreachable", True)
        assert platform.http.get("/healthz").status_code == 200
        assert platform.http.get("/readyz").status_code == 503

    platform.ok(create(platform))
    assert platform.http.get("/readyz").status_code == 200
    job = platform.train(str(platform.ready()["name"]))
    assert platform.finished("training", job) == "completed"


@contextmanager
def full(database: Database) -> Generator[None]:
    """A database that may not grow by a page, which is how SQLite hears of a full disk."""

    def limit(connection: SQLiteConnection, _: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count={pages}")

    with told_to_all(database, limit):
        yield


@contextmanager
def read_only(database: Database) -> Generator[None]:
    """A database of which no page can be written."""

    def limit(connection: SQLiteConnection, _: object) -> None:
        connection.execute("PRAGMA query_only=ON")

    with told_to_all(database, limit):
        yield


@contextmanager
def told_to_all(
    database: Database, limit: Callable[[SQLiteConnection, object], None]
) -> Generator[None]:
    event.listen(database.engine, "connect", limit)
    database.engine.dispose()
    try:
        yield
    finally:
        event.remove(database.engine, "connect", limit)
        database.engine.dispose()


@contextmanager
def closed(url: str) -> Generator[None]:
    name = make_url(url).database
    command(url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    drop_connections(url)
    try:
        yield
    finally:
        command(url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def drop_connections(url: str) -> None:
    name = make_url(url).database
    ask = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
    command(url, f"{ask}'{name}'")


def command(url: str, statement: str) -> None:
    engine = create_engine(make_url(url).set(database="postgres"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()
