"""Whoever came first is served first, and knows when."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from rlcore import SessionBusy
from rlmesh.numpy import RemoteEnv
from rlmesh.server.options import ServeOptions
from rlmesh.server.places import Places

Serve = Callable[..., Any]  # servers, looked into
LANES = ("grpc", "tcp", "local")
ONE = ServeOptions(max_sessions=1)


@pytest.fixture
def clients() -> Iterator[Callable[..., Any]]:
    """Make clients that are closed at the end."""
    made: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        made.append(RemoteEnv(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def in_background(act: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Return a thread that acts, and where its result or its failure will be."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(act())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, found


def test_a_place_goes_to_the_one_that_waits_longest() -> None:
    places = Places(2)
    first, second = places.enter(), places.enter()
    waiting = [places.enter() for _ in range(3)]
    assert first is not None
    assert second is not None
    tickets = [ticket for ticket in waiting if ticket is not None]
    assert [ticket.position() for ticket in (first, second, *tickets)] == [0, 0, 1, 2, 3]
    tickets[0].leave()
    tickets[0].leave()
    assert [ticket.position() for ticket in tickets] == [0, 1, 2]
    second.leave()
    assert tickets[1].wait(0)
    assert not tickets[2].wait(0)
    assert (places.taken, places.waiting) == (2, 1)
    for ticket in (first, tickets[1], tickets[2]):
        ticket.leave()
    assert (places.taken, places.waiting) == (0, 0)


def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    places = Places(1)
    holder, waiter = places.enter(), places.enter()
    assert holder is not None
    assert waiter is not None
    holder.leave()
    newcomer = places.enter()
    assert newcomer is not None
    assert (waiter.granted, newcomer.granted) == (True, False)


def test_a_queue_has_an_end() -> None:
    places = Places(1, longest_queue=2)
    assert all(places.enter() is not None for _ in range(3))
    assert places.enter() is None


@pytest.mark.parametrize("lane", LANES)
def test_waiting_clients_are_told_their_position_and_served_in_turn(
    serve: Serve, making: Any, clients: Any, eventually: Any, lane: Any
) -> None:
    server = serve(making(), options=ONE)
    holder = clients(server, lane=lane)
    holder.reset()
    places = server._service.registry.places
    heard: dict[str, list[int]] = {"first": [], "second": []}
    served: list[str] = []
    waiting: dict[str, Any] = {}
    for number, (name, positions) in enumerate(heard.items(), 1):
        env = waiting[name] = clients(server, lane=lane, on_queue_position=positions.append)

        def play(env: Any = env, name: str = name) -> None:
            env.reset()
            served.append(name)
            env.step(1)
            env.close()

        waiting[name] = in_background(play)
        eventually(lambda count=number: places.waiting == count)
    eventually(lambda: heard == {"first": [1], "second": [2]})
    holder.close()
    for thread, found in waiting.values():
        thread.join(10)
        assert found == [None]
    assert served == ["first", "second"]
    assert heard["first"] == [1]
    assert heard["second"] in ([2], [2, 1])


@pytest.mark.parametrize("lane", LANES)
def test_a_client_waits_no_longer_than_it_said(
    serve: Serve, making: Any, clients: Any, lane: Any
) -> None:
    server = serve(making(), options=ONE)
    clients(server, lane=lane).reset()
    started = time.monotonic()
    with pytest.raises(SessionBusy, match="position 1 in the queue after") as caught:
        clients(server, lane=lane, queue_timeout_seconds=0.7).reset()
    assert 0.6 < time.monotonic() - started < 1.5
    assert caught.value.position == 1
    assert caught.value.retryable


@pytest.mark.parametrize("lane", LANES)
def test_a_waiting_client_that_dies_leaves_the_queue(
    serve: Serve, making: Any, clients: Any, eventually: Any, lane: Any
) -> None:
    server = serve(making(), options=ONE)
    holder = clients(server, lane=lane)
    holder.reset()
    places = server._service.registry.places
    script = (
        "import sys; from rlmesh.numpy import RemoteEnv; "
        "RemoteEnv(sys.argv[1], lane=sys.argv[2], queue_timeout_seconds=60).reset()"
    )
    with subprocess.Popen([sys.executable, "-c", script, server.address, lane]) as doomed:
        eventually(lambda: places.waiting == 1, 20)
        heir = clients(server, lane=lane)
        thread, found = in_background(lambda: heir.reset()[0][0])
        eventually(lambda: places.waiting == 2)
        doomed.kill()
    eventually(lambda: places.waiting == 1, 5)
    holder.close()
    thread.join(10)
    assert found == [0]


def test_a_published_client_waits_for_a_moment_only(serve: Serve, making: Any) -> None:
    server = serve(making(), options=ONE)
    plain: Any = RemoteEnv(server)
    with RemoteEnv(server) as holder, plain:
        holder.reset()
        lane = plain._link.wires.dialled.connection.join(timeout=5)
        started = time.monotonic()
        with pytest.raises(SessionBusy, match="all 1 sessions"):
            lane.configure(1, "2026.06")
        assert time.monotonic() - started < 1.5


def test_a_shared_environment_that_is_driven_says_so_at_connect_and_at_once(
    serve: Serve, counting: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(counting())
    with RemoteEnv(server) as driver:
        assert not driver.is_taken
        driver.reset()
        with RemoteEnv(server) as other:
            assert other.is_taken
            assert "is being driven by another client" in caplog.text
            started = time.monotonic()
            with pytest.raises(SessionBusy, match="another client"):
                other.reset()
            assert time.monotonic() - started < 1.0
            driver.close()
            other.reset()


def test_a_client_may_decide_to_wait_for_a_shared_environment(
    serve: Serve, counting: Any, clients: Any, eventually: Any
) -> None:
    server = serve(counting())
    driver, other = clients(server), clients(server, queue_timeout_seconds=20)
    driver.reset()
    thread, found = in_background(lambda: other.reset()[0][1])
    eventually(lambda: server._service.registry.places.waiting == 1)
    driver.close()
    thread.join(10)
    assert found == [2]


@pytest.mark.slow
def test_hundreds_may_wait_and_each_gets_its_turn(
    serve: Serve, making: Any, clients: Any, eventually: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(max_sessions=4))
    holders = [clients(server, lane="local") for _ in range(4)]
    for holder in holders:
        holder.reset()
    places = server._service.registry.places
    envs = [clients(server, lane="local", queue_timeout_seconds=50) for _ in range(300)]

    def play(env: Any) -> float:
        env.reset()
        count = float(env.step(3)[0][0])
        env.close()
        return count

    running = [in_background(partial(play, env)) for env in envs]
    eventually(lambda: places.waiting == 300, 30)
    for holder in holders:
        holder.close()
    for thread, found in running:
        thread.join(30)
        assert found == [1.0]
    eventually(lambda: (places.waiting, places.taken) == (0, 0))
    assert len(made.made) == 305
    assert all(one.closed == 1 for one in made.made)


def test_a_server_that_stops_sends_those_who_wait_away(
    making: Any, clients: Any, serve: Serve, eventually: Any
) -> None:
    server = serve(making(), options=ONE)
    clients(server).reset()
    waiting = clients(server, queue_timeout_seconds=30)
    thread, found = in_background(waiting.reset)
    eventually(lambda: server._service.registry.places.waiting == 1)
    started = time.monotonic()
    server.shutdown()
    thread.join(5)
    assert time.monotonic() - started < 2.5
    assert isinstance(found[0], ConnectionError)
