"""How long a session outlives its client, and that it lives as long as its client does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rlcore import CallTimeout, EnvironmentException, ServerUnreachable, SessionClosed
from rlmesh.client.lanes import LaneChoice
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
from rlmesh.transport import frame_host
from rlmesh.transport.pulse import PulsingLane

Serve = Callable[..., Any]  # servers, looked into
LANES: tuple[LaneChoice, ...] = ("grpc", "tcp", "local")
DRIVER = """
import sys
from rlmesh.numpy import RemoteEnv
env = RemoteEnv(sys.argv[1], lane=sys.argv[2])
env.reset()
env.step(1)
print("ready", flush=True)
sys.stdin.read()
"""


def port_of(server: Any) -> int:
    return int(server.address.rpartition(":")[2])


def lane_port_of(server: Any) -> int:
    port: int = server._service.offer.port
    return port


@pytest.mark.parametrize("lane", LANES)
def test_a_client_that_is_killed_loses_its_environment_within_the_lease(
    serve: Serve, making: Any, eventually: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=2.0))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, server.address, lane],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        inner = made.made[1]
        driver.kill()
        killed = time.monotonic()
    eventually(lambda: inner.closed == 1, 3.0)
    assert time.monotonic() - killed < 2.5
    if lane == "local":
        assert time.monotonic() - killed < 1.0  # the system tells that its process has ended
    eventually(lambda: server._service.registry.places.taken == 0)
    assert len(inner.threads) == 1


@pytest.mark.parametrize("lane", ["grpc", "tcp"])
def test_a_client_behind_a_way_that_fell_silent_is_reaped_within_the_lease(
    serve: Serve, making: Any, proxy: Any, eventually: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=3.0))
    ways = [proxy(port_of(server)), proxy(lane_port_of(server))]
    env: Any = RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane=lane, resume_timeout_seconds=0)
    env.reset()
    inner = made.made[1]
    for way in ways:
        way.fall_silent()
    silent = time.monotonic()
    eventually(lambda: inner.closed == 1, 5.0)
    assert time.monotonic() - silent < 3.5
    for way in ways:
        way.cut()
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("lane", LANES)
def test_an_idle_client_keeps_its_session_far_beyond_the_lease(
    serve: Serve, making: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=0.5))
    env: Any = RemoteEnv(server, lane=lane)
    with env:
        env.reset()
        session = env.env_id
        threading.Event().wait(3.0)
        assert env.step(1)[0][0] == 1
        assert env.env_id == session
        assert server._service.registry.statistics().resumed == 0
    assert [one.closed for one in made.made] == [1, 1]


@pytest.mark.parametrize("lane", ["grpc", "tcp"])
def test_an_environment_stays_in_the_thread_that_made_it_when_its_client_comes_back(
    serve: Serve, making: Any, proxy: Any, lane: Any
) -> None:
    made = making()
    server = serve(made)
    ways = [proxy(port_of(server)), proxy(lane_port_of(server))]
    env: Any = RemoteEnv(
        f"tcp://127.0.0.2:{port_of(server)}", lane="tcp" if lane != "grpc" else lane
    )
    with env:
        env.reset()
        for count in range(1, 6):
            for way in ways:
                way.cut()
            assert env.step(1)[0][0] == count
        assert server._service.registry.statistics().resumed == 5
    probe, inner = made.made
    assert (probe.closed, inner.closed, len(inner.threads)) == (1, 1, 1)


def test_a_client_that_was_away_for_longer_than_the_lease_is_told_that_its_session_ended(
    serve: Serve, making: Any, proxy: Any, eventually: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=0.4))
    way = proxy(port_of(server))
    with RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane="grpc") as env:
        env.reset()
        way.cut()
        eventually(lambda: made.made[1].closed == 1)
        with pytest.raises(SessionClosed, match="is not here") as caught:
            env.step(1)
        assert caught.value.code == "session_unknown"
        with pytest.raises(EnvironmentException, match="Call reset"):
            env.step(1)
        assert env.reset()[0][0] == 0


def test_nobody_takes_over_a_session_without_its_secret(
    serve: Serve, making: Any, proxy: Any
) -> None:
    server = serve(making())
    env: Any = RemoteEnv(server, lane="grpc")
    thief: Any = RemoteEnv(server, lane="grpc")
    with env, thief:
        env.reset()
        thief.reset()
        own, wanted = thief._link.wires.opening, env._link.wires.opening
        assert own is not None
        assert wanted is not None
        forged = type(own)(wanted.session_id, own.secret, True, own.capabilities)
        lane = thief._link.wires.dialled.connection.join(timeout=5, opening=forged)
        with pytest.raises(SessionClosed, match="is not here"):
            lane.configure(1, "2026.06")
        assert env.step(1)[0][0] == 1


def test_a_server_that_is_killed_is_a_typed_error_at_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rlmesh.serve", "CartPole-v1", "--address", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        address = serving.stdout.readline().split()[-1]
        envs: list[Any] = [RemoteEnv(address, lane=lane) for lane in ("grpc", "tcp", "local")]
        stubborn: Any = RemoteEnv(address, reconnect=False)
        for env in (*envs, stubborn):
            env.reset()
        serving.kill()
        serving.wait()
        for env in (*envs, stubborn):
            started = time.monotonic()
            with pytest.raises(SessionClosed) as caught:
                env.step(0)
            assert time.monotonic() - started < 1.0
            assert ("reset() dials it again" in str(caught.value)) == (env is not stubborn)
        with pytest.raises(SessionClosed, match="was told not to open another"):
            stubborn.reset()
        with pytest.raises(ServerUnreachable):
            envs[0].reset()
        for env in (*envs, stubborn):
            started = time.monotonic()
            env.close()
            assert time.monotonic() - started < 1.0


def test_a_client_of_a_server_that_is_frozen_is_closed_within_two_seconds() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rlmesh.serve", "CartPole-v1", "--address", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        address = serving.stdout.readline().split()[-1]
        envs: list[Any] = [RemoteEnv(address, lane=lane) for lane in LANES]
        for env in envs:
            env.reset()
        os.kill(serving.pid, signal.SIGSTOP)
        try:
            for env in envs:
                started = time.monotonic()
                env.close()
                assert time.monotonic() - started < 2.0
        finally:
            serving.kill()


class Stubborn:
    """Waits in its step until it is let go."""

    def __init__(self, counting: Any) -> None:
        self.gate = threading.Event()
        gate = self.gate

        def step(inner: Any, action: Any) -> Any:
            if action == 7:
                gate.wait(30)
            return counting.step(inner, action)

        self.kind = type("Waiting", (counting,), {"step": step})


@pytest.mark.parametrize("lane", LANES)
def test_after_a_timeout_the_client_is_usable_again(
    serve: Serve, making: Any, counting: Any, eventually: Any, lane: Any
) -> None:
    stubborn = Stubborn(counting)
    made = making(stubborn.kind)
    server = serve(made)
    env: Any = RemoteEnv(server, lane=lane)
    with env:
        env.reset()
        with env.with_timeout(0.3):
            started = time.monotonic()
            with pytest.raises(CallTimeout, match=r"within 0\.3 s"):
                env.step(7)
            assert time.monotonic() - started < 1.5
        with pytest.raises(EnvironmentException, match="Call reset"):
            env.step(1)
        assert env.reset()[0].tolist()[:2] == [0, 1]
        assert env.step(1)[0][0] == 1
        assert server._service.registry.places.taken == 2
        stubborn.gate.set()
        # The step that was given up on has returned, and nobody holds its session any more.
        eventually(lambda: server._service.registry.places.taken == 1, 3.0)
        assert made.made[1].closed == 1
        env.step(7)


def test_a_shared_environment_waits_for_a_client_that_lost_its_connection(
    serve: Serve, counting: Any, proxy: Any, eventually: Any
) -> None:
    inner = counting()
    server = serve(inner, options=ServeOptions(lease_seconds=2.0))
    way = proxy(port_of(server))
    lost: Any = RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane="grpc")
    lost.reset()
    way.cut()
    eventually(lambda: server._service.sessions()[0].parked)
    with RemoteEnv(server) as newcomer:
        started = time.monotonic()
        newcomer.reset()
        assert 0.3 < time.monotonic() - started < 2.0
    lost.close()


def test_shutdown_does_not_wait_for_a_client_that_is_away(
    making: Any, proxy: Any, eventually: Any
) -> None:
    made = making()
    server: Any = EnvServer(made)
    server.start()
    way = proxy(port_of(server))
    env: Any = RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane="grpc")
    env.reset()
    way.cut()
    eventually(lambda: server._service.sessions()[0].parked)
    started = time.monotonic()
    server.shutdown()
    assert time.monotonic() - started < 1.5
    assert made.made[1].closed == 1
    env.close()


def test_a_process_that_exits_without_a_goodbye_gives_its_session_back(
    serve: Serve, making: Any, eventually: Any
) -> None:
    made = making()
    server = serve(made)
    leaving = DRIVER.replace("sys.stdin.read()", "")
    subprocess.run([sys.executable, "-c", leaving, server.address, "grpc"], check=True, timeout=30)
    eventually(lambda: made.made[1].closed == 1, 2.0)


@pytest.mark.parametrize("lane", LANES)
def test_a_client_whose_process_is_stopped_is_reaped_within_the_lease(
    serve: Serve, making: Any, eventually: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=2.0))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, server.address, lane],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        os.kill(driver.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            eventually(lambda: made.made[1].closed == 1, 4.0)
        finally:
            driver.kill()
        assert time.monotonic() - stopped < 2.5


FORKED = DRIVER.replace(
    'print("ready", flush=True)',
    """
import os, time
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("ready", flush=True)""",
)


@pytest.mark.parametrize("lane", LANES)
def test_a_killed_client_whose_child_has_its_socket_is_reaped_within_the_lease(
    serve: Serve, making: Any, eventually: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=2.0))
    with subprocess.Popen(
        [sys.executable, "-c", FORKED, server.address, lane],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        driver.kill()
        killed = time.monotonic()
        # The child lives on until its standard input is closed, at the end of this block.
        eventually(lambda: made.made[1].closed == 1, 4.0)
        assert time.monotonic() - killed < 2.5


@pytest.mark.parametrize("lane", ["tcp", "local"])
def test_a_waiter_that_is_stopped_does_not_keep_the_queue_for_longer_than_the_lease(
    serve: Serve, making: Any, eventually: Any, lane: Any
) -> None:
    server = serve(making(), options=ServeOptions(lease_seconds=2.0, max_sessions=1))
    first: Any = RemoteEnv(server)
    first.reset()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, server.address, lane], stdin=subprocess.PIPE
    ) as driver:
        eventually(lambda: server._service.registry.places.waiting == 1)
        os.kill(driver.pid, signal.SIGSTOP)
        first.close()
        try:
            with RemoteEnv(server, queue_timeout_seconds=4.0) as next_one:
                next_one.reset()
        finally:
            driver.kill()


def test_where_the_system_does_not_tell_of_a_local_client_it_shows_life_itself(
    serve: Serve, making: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: object) -> None:
        """Know no process."""

    monkeypatch.setattr(frame_host, "client_process", unknown)
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=0.5))
    env: Any = RemoteEnv(server, lane="local")
    with env:
        env.reset()
        in_use = env._link.wires.lane._in_use
        assert type(env._link.wires.lane) is PulsingLane
        threading.Event().wait(1.5)
        assert env.step(1)[0][0] == 1
        assert server._service.registry.statistics().resumed == 0
        with in_use:  # so that it falls silent
            eventually(lambda: made.made[1].closed == 1, 1.0)
