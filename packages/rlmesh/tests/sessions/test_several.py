"""A session with several environments survives a way that breaks, and runs no step twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rlcore import SessionClosed, UnsupportedError
from rlmesh.numpy import RemoteEnvs
from rlmesh.server.options import ServeOptions
from rlmesh.server.places import Places, Ticket
from rlmesh.server.sources import load_factory

Serve = Callable[..., Any]  # servers, looked into
LANES = ("grpc", "tcp")


@pytest.mark.parametrize("lane", LANES)
def test_a_step_of_several_whose_answer_was_lost_runs_once(
    serve: Serve, making: Any, counting: Any, proxy: Any, lane: Any
) -> None:
    ways: list[Any] = []

    def step(self: Any, action: Any) -> Any:
        if action == 7:
            for way in ways:
                way.cut()
        return counting.step(self, action)

    made = making(type("Cutting", (counting,), {"step": step}))
    server = serve(made, options=ServeOptions(lease_seconds=4.0))
    port = int(server.address.rpartition(":")[2])
    ways += [proxy(port), proxy(server._service.offer.port)]
    with RemoteEnvs(f"tcp://127.0.0.2:{port}", 3, lane=lane) as several:
        for seed, env in enumerate(several.envs):
            env.reset(seed=seed)
        for actions in ((1, 1, 1), (2, 7, 3), (7, 4, 7), (5, 5, 5)):
            for env, action in zip(several.envs, actions, strict=True):
                env.begin_step(action)
            outcomes = [env.step(action) for env, action in zip(several.envs, actions, strict=True)]
        assert [outcome[0][0] for outcome in outcomes] == [4, 4, 4]
        statistics = server._service.registry.statistics()
        assert min(statistics.repeated, statistics.resumed) >= 2
        assert statistics.by_kind["step"].count == 4
    assert [env.steps for env in made.made[1:]] == [4, 4, 4]


def test_a_session_that_ends_with_its_lease_ends_the_episodes_of_all(
    serve: Serve, making: Any, proxy: Any
) -> None:
    server = serve(making(), options=ServeOptions(lease_seconds=0.4))
    port = int(server.address.rpartition(":")[2])
    way = proxy(port)
    with RemoteEnvs(f"tcp://127.0.0.2:{port}", 2, lane="grpc", resume_timeout_seconds=0) as several:
        for env in several.envs:
            env.reset()
        way.cut()
        for env in several.envs:
            with pytest.raises(SessionClosed):
                env.step(1)
        assert several.envs[1].reset()[0][0] == 0
        assert several.envs[1].step(1)[0][0] == 1


def test_environments_with_a_process_each_are_not_put_together(serve: Serve) -> None:
    server = serve(load_factory("CartPole-v1"), options=ServeOptions(isolation="process"))
    with pytest.raises(UnsupportedError, match="isolation='process'"):
        RemoteEnvs(server, 2)


def test_who_asks_for_several_places_waits_in_turn_for_all_of_them() -> None:
    places = Places(4)
    first, second, several, last = _tickets(places, 3, 1, 3, 1)
    assert (places.taken, places.waiting) == (4, 2)
    second.leave()
    # Nobody passes by whoever came before, though there is room.
    assert (several.granted, last.granted, last.position()) == (False, False, 2)
    first.leave()
    assert (several.granted, last.granted, places.taken) == (True, True, 4)
    several.leave()
    several.leave()
    assert places.taken == 1


def test_who_leaves_the_queue_lets_the_smaller_behind_in() -> None:
    places = Places(2)
    _, several, last = _tickets(places, 1, 2, 1)
    several.leave()
    assert (last.granted, places.taken, places.waiting) == (True, 2, 0)


def _tickets(places: Places, *sizes: int) -> list[Ticket]:
    entered = [places.enter(size) for size in sizes]
    return [ticket for ticket in entered if ticket is not None]
