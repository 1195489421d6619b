"""A request runs once, whenever its connection breaks, and its answer arrives all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from rlcore import EnvironmentException, SessionClosed
from rlmesh.numpy import RemoteEnv
from rlmesh.server.options import ServeOptions

Serve = Callable[..., Any]  # servers, looked into
LANES = ("grpc", "tcp")


@pytest.fixture
def cutting(counting: Any) -> Any:
    """A kind of environment whose action 7 breaks all connections while it is stepped."""
    ways: list[Any] = []

    def step(self: Any, action: Any) -> Any:
        if action in (7, 8, 9):
            for way in ways:
                way.cut()
        answer = counting.step(self, action)
        if action == 8:
            raise ZeroDivisionError("the wheel came off")
        if action == 9:
            threading.Event().wait(0.5)
        return answer

    kind = type("Cutting", (counting,), {"step": step})
    return kind, ways


@pytest.fixture
def reached(serve: Serve, making: Any, cutting: Any, proxy: Any) -> Callable[..., Any]:
    """Return a client that reaches its server through proxies, and what the server has made."""

    def reach(lane: Any, **options: Any) -> tuple[Any, Any, Any]:
        kind, ways = cutting
        made = making(kind)
        server = serve(made, options=ServeOptions(lease_seconds=4.0))
        port = int(server.address.rpartition(":")[2])
        ways += [proxy(port), proxy(server._service.offer.port)]
        return RemoteEnv(f"tcp://127.0.0.2:{port}", lane=lane, **options), made, server

    return reach


@pytest.mark.parametrize("lane", LANES)
def test_a_step_whose_answer_was_lost_is_answered_again_and_not_run_again(
    reached: Any, lane: Any
) -> None:
    env, made, server = reached(lane)
    with env:
        env.reset(seed=4)
        outcomes = [env.step(action) for action in (1, 7, 7, 2)]
        assert [outcome[0][0] for outcome in outcomes] == [1, 2, 3, 4]
        statistics = server._service.registry.statistics()
        assert min(statistics.repeated, statistics.resumed) >= 2
        assert statistics.by_kind["step"].count == 4
    assert made.made[1].steps == 4


@pytest.mark.parametrize("lane", LANES)
def test_a_step_sent_ahead_runs_once_also_where_its_way_breaks(
    reached: Any, cutting: Any, lane: Any
) -> None:
    env, made, server = reached(lane)
    with env:
        env.reset(seed=4)
        for action in (1, 7, 7):
            env.begin_step(action)
            outcome = env.step(action)
        assert outcome[0][0] == 3
        # Here it cannot even be sent.
        for way in cutting[1]:
            way.cut()
        env.begin_step(2)
        assert env.step(2)[0][0] == 4
        assert server._service.registry.statistics().by_kind["step"].count == 4
    assert made.made[1].steps == 4


@pytest.mark.parametrize("lane", LANES)
def test_who_asks_again_while_the_step_still_runs_waits_for_it(reached: Any, lane: Any) -> None:
    env, made, _ = reached(lane)
    with env:
        env.reset()
        started = time.monotonic()
        assert env.step(9)[0][0] == 1
        assert 0.4 < time.monotonic() - started < 3
    assert made.made[1].steps == 1


@pytest.mark.parametrize("lane", LANES)
def test_an_exception_whose_answer_was_lost_arrives_all_the_same(reached: Any, lane: Any) -> None:
    env, made, _ = reached(lane)
    with env:
        env.reset(seed=4)
        env.step(1)
        with pytest.raises(EnvironmentException, match="the wheel came off") as caught:
            env.step(8)
        assert (caught.value.step, caught.value.seed, caught.value.action) == (2, 4, "8")
        assert env.reset()[0][0] == 0
    assert [one.steps for one in made.made] == [0, 2, 0]
    assert [one.closed for one in made.made] == [1, 1, 1]


def test_a_session_is_not_resumed_where_that_is_not_wanted(reached: Any) -> None:
    env, made, _ = reached("grpc", resume_timeout_seconds=0)
    with env:
        env.reset()
        with pytest.raises(SessionClosed, match="the connection was lost"):
            env.step(7)
        assert env.reset()[0][0] == 0
    assert len(made.made) == 3


@pytest.mark.parametrize("lane", LANES)
def test_sessions_are_opened_and_closed_over_a_way_that_breaks(
    serve: Serve, making: Any, proxy: Any, eventually: Any, lane: Any
) -> None:
    made = making()
    server = serve(made, options=ServeOptions(lease_seconds=8.0))
    port = int(server.address.rpartition(":")[2])
    ways = [proxy(port, seed=3), proxy(server._service.offer.port, seed=4)]
    for way in ways:
        way.misbehave(5, 25)
    for number in range(25):
        env: Any = RemoteEnv(
            f"tcp://127.0.0.2:{port}",
            lane=lane,
            wait_for_server_seconds=10,
            queue_timeout_seconds=5,
        )
        env.reset(seed=number)
        assert [env.step(1)[0][0] for _ in range(3)] == [1, 2, 3]
        started = time.monotonic()
        env.close()
        assert time.monotonic() - started < 6
    assert sum(way.cuts for way in ways) > 10
    for way in ways:
        way.between = None
    eventually(lambda: server._service.registry.places.taken == 0, 20)
    assert all(one.closed == 1 for one in made.made)
