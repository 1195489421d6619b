"""Environments that hang while they are made, in real processes."""

import os
import select
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from .conftest import FakeMesh, FakeServed, Running, Start
from .test_real import processes_of
from .test_run import Process, all_ended, children_of

# Each tells that it hangs by connecting to the test, and holds the connection until it ends.
HANGS = """
import os, signal, socket, threading

def make():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    telling = socket.create_connection(("127.0.0.1", int(os.environ["TEST_HANGS_PORT"])))
    threading.Event().wait()
"""


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Accepts a connection of every factory that hangs."""
    (tmp_path / "hangs_of_test.py").write_text(HANGS)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.settimeout(60)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setenv("TEST_HANGS_PORT", str(listener.getsockname()[1]))
        yield listener


@pytest.fixture
def process(hanging: socket.socket, tmp_path: Path) -> Iterator[Process]:
    one = Process(tmp_path / "data")
    yield one
    one.end()


def register_hanging(http: httpx.Client, name: str) -> None:
    body = {"name": name, "source": "python://hangs_of_test:make"}
    assert http.post("/api/custom-environments", json=body).status_code == 200


def test_environments_that_hang_do_not_delay_another(start: Start, hanging: socket.socket) -> None:
    real = start(real=True)
    for name in ("A", "B", "C"):
        register_hanging(real.http, name)
    holds = [hanging.accept()[0] for _ in range(3)]

    assert real.ready()["status"] == "ready"

    real.server.stop()
    for hold in holds:
        hold.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/custom-environments/A"),
        ("POST", "/api/environments/A/stop"),
        ("POST", "/api/environments/A/deprovision"),
    ],
)
def test_an_environment_that_hangs_is_ended_at_once_with_its_process(
    start: Start, hanging: socket.socket, method: str, path: str
) -> None:
    others = processes_of("rlmesh.serve")
    real = start(real=True)
    register_hanging(real.http, "A")
    hold, _ = hanging.accept()

    reply = real.http.request(method, path, timeout=20)

    assert reply.status_code == 200, reply.text
    assert hold.recv(1) == b""
    assert set(processes_of("rlmesh.serve")) <= set(others)
    hold.close()


def test_an_environment_that_is_stopped_while_starting_has_failed_and_says_so(
    start: Start, hanging: socket.socket
) -> None:
    real = start(real=True)
    register_hanging(real.http, "A")
    hold, _ = hanging.accept()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(real.http.get, "/api/environments/A/endpoint")

        real.ok(real.http.post("/api/environments/A/stop"))

        # Whoever asks after the stop starts it anew; a second stop ends that too.
        while not waiting.done():
            real.ok(real.http.post("/api/environments/A/stop"))
        reply = waiting.result()
    assert (reply.status_code, reply.json()["code"]) == (409, "environment_failed")
    env = real.ok(real.http.get("/api/environments/A"))
    assert (env["status"], env["status_reason"]) == ("failed", "it was stopped while starting")
    hold.close()


def test_requests_that_wait_for_an_environment_leave_the_server_answering(
    start: Start, hanging: socket.socket
) -> None:
    real = start(real=True)
    register_hanging(real.http, "A")
    hold, _ = hanging.accept()
    count = 60
    address = (real.http.base_url.host, real.http.base_url.port or 0)
    clients = [socket.create_connection(address) for _ in range(count)]
    for client in clients:
        client.sendall(b"GET /api/environments/A/endpoint HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert real.http.get("/api/health", timeout=20).status_code == 200
    assert real.http.get("/api", timeout=20).status_code == 200
    assert real.http.get("/api/environments/A", timeout=20).status_code == 200

    real.http.delete("/api/custom-environments/A")
    assert all_ended([client.fileno() for client in clients], 20.0)
    for client in clients:
        client.close()
    hold.close()


def test_a_start_that_outlasts_the_patience_is_a_503_to_be_asked_again(
    mesh: FakeMesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait_for_stop(served: FakeServed, timeout: float) -> str:
        return served.wait()

    monkeypatch.setattr(FakeServed, "wait_ready", wait_for_stop)

    def make_state(settings: ServerSettings) -> ServerState:
        brief = ServerSettings(data_dir=settings.data_dir, ready_timeout=0.1)
        return ServerState(brief, launcher=mesh, inspect=mesh.inspect)

    with (
        LocalServer(tmp_path / "data", make_state=make_state) as server,
        httpx.Client(base_url=server.url, trust_env=False) as http,
    ):
        Running(server, http, mesh).register()

        reply = http.get("/api/environments/CartPole/endpoint")

    body = reply.json()
    assert (reply.status_code, body["code"]) == (503, "environment_starting")
    assert body["retryable"] is True
    assert reply.headers["retry-after"] == "5"


def test_a_signal_ends_a_server_whose_environment_hangs_without_a_traceback(
    process: Process, hanging: socket.socket
) -> None:
    register_hanging(process.http, "A")
    hold, _ = hanging.accept()
    descriptors = [os.pidfd_open(pid) for pid in children_of(process.popen.pid)]
    address = (process.http.base_url.host, process.http.base_url.port or 0)
    with socket.create_connection(address) as client:
        client.sendall(b"GET /api/environments/A/endpoint HTTP/1.1\r\nHost: localhost\r\n\r\n")
        process.http.get("/api/environments/A")

        process.popen.send_signal(signal.SIGTERM)
        ended = os.pidfd_open(process.popen.pid)
        assert select.select([ended], [], [], 20)[0]
        os.close(ended)

        with client.makefile("rb") as replies:
            answer = replies.read()
    _, errors = process.popen.communicate(timeout=30)
    assert process.popen.returncode == 0
    assert b"server_stopping" in answer
    assert "Traceback" not in errors
    assert descriptors
    assert all_ended(descriptors, 0.0)
    for descriptor in descriptors:
        os.close(descriptor)
    hold.close()


def test_a_request_that_outlasts_the_grace_period_is_told_that_the_server_stops(
    process: Process,
) -> None:
    address = (process.http.base_url.host, process.http.base_url.port or 0)
    with socket.create_connection(address) as client:
        # It announces more than it sends, so the server waits for the rest.
        client.sendall(
            b"POST /api/custom-environments HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert process.http.get("/api/health").status_code == 200

        process.popen.send_signal(signal.SIGTERM)

        with client.makefile("rb") as replies:
            answer = replies.read()
    _, errors = process.popen.communicate(timeout=30)
    assert b"server_stopping" in answer
    assert "Traceback" not in errors
