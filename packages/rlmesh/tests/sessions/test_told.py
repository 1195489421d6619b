"""What a server tells of sessions that lost their client, or wait for a place."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from rlmesh.cli.inspect import shown
from rlmesh.client.visit import Visit
from rlmesh.numpy import RemoteEnv
from rlmesh.server.options import ServeOptions

Serve = Callable[..., Any]  # servers, looked into
DRIVER = """
import sys
from rlmesh.numpy import RemoteEnv
env = RemoteEnv(sys.argv[1], lane="tcp")
env.reset()
env.step(1)
print(env.env_id, flush=True)
sys.stdin.read()
"""


def port_of(server: Any) -> int:
    return int(server.address.rpartition(":")[2])


def test_a_session_whose_client_was_killed_is_detached_until_its_lease_ends(
    serve: Serve, making: Any, eventually: Any
) -> None:
    server = serve(making(), options=ServeOptions(lease_seconds=4.0))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, server.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        session_id = driver.stdout.readline().strip()
        driver.kill()

    def sessions() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = server.inspect()["sessions"]
        return found

    eventually(lambda: [one["state"] for one in sessions()] == ["detached"])
    with Visit(server.address) as visit:
        status = visit.status(timeout=10)
    (session,) = status["sessions"]
    assert session["id"] == session_id
    assert session["steps"] == 1
    # One half of the lease was for noticing; what is left is at most the other.
    assert 0 <= session["lease_left_seconds"] <= 2.0
    assert status["places_taken"] == 1
    (line,) = (line for line in shown(status).splitlines() if line.startswith(session_id))
    assert line.split()[2:4] == ["tcp", "detached"]

    eventually(lambda: not sessions())
    assert server.inspect()["total"]["steps"] == 1


def test_a_session_that_was_taken_up_again_says_so(
    serve: Serve, making: Any, proxy: Any, eventually: Any
) -> None:
    server = serve(making(), options=ServeOptions(lanes=False))
    way = proxy(port_of(server))
    with RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane="grpc") as env:
        env.reset()
        env.step(1)
        way.cut()
        env.step(1)
        (session,) = server.inspect()["sessions"]

    assert session["resumed"] == 1
    assert session["steps"] == 2
    assert session["bytes"]["grpc"]["received"] > 0


def test_whoever_waits_for_a_place_is_counted(serve: Serve, making: Any) -> None:
    server = serve(making(), options=ServeOptions(max_sessions=1))
    waiting = threading.Event()
    with RemoteEnv(server.address) as first:
        first.reset()
        second = RemoteEnv(server.address, on_queue_position=lambda _: waiting.set())
        thread = threading.Thread(target=second.reset, daemon=True)
        thread.start()
        assert waiting.wait(10)
        status = server.inspect()
    thread.join(10)
    second.close()

    assert (status["places"], status["places_taken"], status["waiting"]) == (1, 1, 1)
    assert "1 of 1 places taken (each with its own environment), 1 waiting" in shown(status)


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_sessions_are_told_wherever_their_environments_live(serve: Serve, kind: Any) -> None:
    from rlmesh.bench.reference import noop

    server = serve(noop, options=ServeOptions(isolation=kind))
    with RemoteEnv(server.address) as env:
        env.reset()
        env.step(1)
        (session,) = server.inspect()["sessions"]

    assert (session["steps"], session["episodes"], session["state"]) == (1, 1, "attached")
