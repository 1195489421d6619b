"""Environments that end by themselves, and those that nobody needs."""

from __future__ import annotations

import asyncio
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rlcore import contract_digest
from rleaas.server.envhost.connections import has_connections
from rleaas.server.envhost.crashes import CALM_SECONDS, MOST_IN_A_ROW, Crashes
from rleaas.server.envhost.host import WATCH, EnvironmentHost
from rleaas.server.envhost.idle import IdleWatch
from rleaas.server.keys import ServerKeys
from rleaas.server.rules import lifecycle
from rleaas.server.store import environments
from rleaas.server.store.database import Database
from rleaas.server.store.environments import Registration
from rleaas.server.store.tables import FIRST_ORGANISATION, JobRow, VersionRow

from .conftest import FakeMesh, Running

IDLE = 60.0


@dataclass
class Hosting:
    """A host whose clock and timers are the test's."""

    mesh: FakeMesh
    database: Database
    host: EnvironmentHost
    idle: IdleWatch
    version: int
    now: list[float]
    timers: queue.Queue[tuple[float, Callable[[], None]]]
    # Other servers of this process have environments that live.
    others: set[threading.Thread] = field(default_factory=lambda: set(threading.enumerate()))

    def up(self) -> None:
        asyncio.run(self.host.ensure(self.version))

    def row(self) -> VersionRow:
        with self.database.read() as session:
            return session.get_one(VersionRow, self.version)

    def crash(self, how: str = "Segmentation fault") -> None:
        self.mesh.served[-1].die(how)
        for thread in set(threading.enumerate()) - self.others:
            if thread.name == WATCH:
                thread.join(20)


@pytest.fixture
def hosting(mesh: FakeMesh, tmp_path: Path) -> Iterator[Hosting]:
    database = Database(tmp_path / "rleaas.db")
    database.migrate()
    with database.write(FIRST_ORGANISATION) as session:
        asked = Registration("E", serves=True, source="gym://CartPole-v1")
        version, _ = environments.upsert(session, asked, None)
    now = [1000.0]
    timers: queue.Queue[tuple[float, Callable[[], None]]] = queue.Queue()
    host = EnvironmentHost(
        database,
        mesh,
        mesh.inspect,
        contract_digest,
        ServerKeys(tmp_path / "key"),
        tmp_path / "logs",
        clock=lambda: now[0],
        later=lambda seconds, call: timers.put((seconds, call)),
    )
    idle = IdleWatch(database, host, IDLE, later=lambda seconds, call: timers.put((seconds, call)))
    yield Hosting(mesh, database, host, idle, version.id, now, timers)
    host.close()
    database.close()


def test_an_environment_that_crashed_says_so_and_is_started_again_after_a_while(
    hosting: Hosting,
) -> None:
    hosting.up()
    hosting.crash()
    seconds, restart = hosting.timers.get(timeout=20)
    waiting = hosting.row()
    restart()
    hosting.up()

    assert waiting.status == lifecycle.PROVISIONING
    assert "Segmentation fault" in (waiting.status_reason or "")
    assert 0.5 < seconds <= 1.0
    assert (hosting.row().status, hosting.row().status_reason) == (lifecycle.READY, None)
    assert len(hosting.mesh.served) == 2


def test_an_environment_that_crashes_again_and_again_has_failed(hosting: Hosting) -> None:
    waits: list[float] = []
    for _ in range(MOST_IN_A_ROW - 1):
        hosting.up()
        hosting.crash()
        waits.append(hosting.timers.get(timeout=20)[0])
    hosting.up()
    hosting.crash("out of memory")

    assert hosting.timers.empty()
    assert waits == sorted(waits)
    assert hosting.row().status == lifecycle.FAILED
    assert "out of memory" in (hosting.row().status_reason or "")


def test_whoever_needs_a_crashed_environment_does_not_wait_for_its_turn(hosting: Hosting) -> None:
    hosting.up()
    hosting.crash()
    _, restart = hosting.timers.get(timeout=20)
    hosting.up()
    restart()  # its turn comes later: it is up already

    assert len(hosting.mesh.served) == 2
    assert hosting.row().status == lifecycle.READY


def test_a_stopped_environment_is_not_started_again(hosting: Hosting) -> None:
    hosting.up()
    hosting.crash()
    _, restart = hosting.timers.get(timeout=20)
    hosting.host.stop(hosting.version)
    restart()

    assert len(hosting.mesh.served) == 1


def test_a_crash_after_a_calm_while_is_the_first_again() -> None:
    now = [0.0]
    crashes = Crashes(lambda: now[0])
    crashes.started(1)
    crashes.ended(1)
    crashes.started(1)
    assert crashes.ended(1)[0] == 2
    crashes.started(1)
    now[0] += CALM_SECONDS

    assert crashes.ended(1)[0] == 1


def test_an_idle_environment_is_stopped_and_starts_again_on_demand(hosting: Hosting) -> None:
    hosting.up()
    hosting.now[0] += IDLE - 1
    early = hosting.idle.stop_idle()
    hosting.now[0] += 1
    stopped = hosting.idle.stop_idle()
    said = hosting.row()
    hosting.up()

    assert (early, stopped) == ([], [hosting.version])
    assert said.status == lifecycle.READY
    assert "starts again on demand" in (said.status_reason or "")
    assert len(hosting.mesh.served) == 2
    assert hosting.row().status_reason is None


def test_an_environment_that_was_stopped_is_ready_and_says_that_it_does_not_run(
    platform: Running,
) -> None:
    up = platform.ready()
    platform.ok(platform.http.post("/api/environments/CartPole/stop"))
    stopped = platform.ok(platform.http.get("/api/environments/CartPole"))
    platform.ok(platform.http.get("/api/environments/CartPole/endpoint"))
    again = platform.ok(platform.http.get("/api/environments/CartPole"))

    assert [one["status"] for one in (up, stopped, again)] == ["ready"] * 3
    assert [one["is_running"] for one in (up, stopped, again)] == [True, False, True]
    assert "starts again on demand" in str(stopped["status_reason"])


@pytest.mark.parametrize("how", ["deleted", "deprovisioned"])
def test_an_environment_that_another_server_has_given_up_is_ended_here_too(
    hosting: Hosting, how: str
) -> None:
    hosting.up()
    before = hosting.idle.stop_idle()
    with hosting.database.write() as session:
        if how == "deleted":
            session.delete(session.get_one(VersionRow, hosting.version).environment)
        else:
            environments.set_status(session, hosting.version, lifecycle.DEPROVISIONED)

    assert (before, hosting.idle.stop_idle()) == ([], [hosting.version])
    assert hosting.mesh.served[0].stopped.is_set()


def test_idle_environments_are_looked_for_again_and_again_until_the_end(hosting: Hosting) -> None:
    hosting.up()
    hosting.now[0] += IDLE
    hosting.idle.start()
    _, look = hosting.timers.get(timeout=20)
    look()
    _, again = hosting.timers.get(timeout=20)
    hosting.idle.close()
    again()

    assert hosting.mesh.served[0].stopped.is_set()
    assert hosting.timers.empty()


def test_an_environment_with_a_connection_is_not_idle_until_it_is_closed(hosting: Hosting) -> None:
    hosting.up()
    hosting.mesh.served[0].connected = True
    hosting.now[0] += 10 * IDLE
    connected = hosting.idle.stop_idle()
    hosting.mesh.served[0].connected = False
    hosting.now[0] += IDLE

    assert connected == []
    assert hosting.idle.stop_idle() == [hosting.version]


def test_an_environment_that_a_job_uses_is_not_idle(hosting: Hosting) -> None:
    hosting.up()
    with hosting.database.write(FIRST_ORGANISATION) as session:
        session.add(
            JobRow(
                id="train_1",
                kind="training",
                version_id=hosting.version,
                status=lifecycle.RUNNING,
                request={},
                progress=0,
                results={},
                priority=0,
                attempts=1,
                restarts=0,
                last_seq=0,
                created_at=datetime.now(UTC),
            )
        )
    hosting.now[0] += 10 * IDLE

    assert hosting.idle.stop_idle() == []


def test_the_kernel_tells_whether_somebody_is_connected() -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); c, _ = s.accept(); print('in', flush=True); "
        "c.recv(1); c.close(); print('out', flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    port = int(child.stdout.readline())
    alone = has_connections(child.pid)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        child.stdout.readline()
        connected = has_connections(child.pid)
        connection.sendall(b"x")
        child.stdout.readline()
    left = has_connections(child.pid)
    child.communicate("\n", timeout=20)

    assert (alone, connected, left) == (False, True, False)


def test_where_the_kernel_does_not_tell_nothing_is_known(tmp_path: Path) -> None:
    assert has_connections(1, tmp_path) is None
