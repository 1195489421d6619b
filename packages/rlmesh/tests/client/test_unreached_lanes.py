"""A lane that cannot be had is told of, and one that is in trouble leaves the others alone."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from rlcore import Secret
from rlmesh.client import lanes
from rlmesh.numpy import RemoteEnv
from rlmesh.protocol.offers import LaneOffer
from rlmesh.server.env_server import EnvServer
from rlmesh.transport.frame_host import MOST_STRANGERS

Serve = Callable[..., EnvServer]


@pytest.fixture(autouse=True)
def no_memory_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_avoided", {})
    monkeypatch.setattr(lanes, "_warned", set[str]())
    monkeypatch.delenv(lanes.LANE_VARIABLE, raising=False)


def test_strangers_at_the_second_port_leave_the_local_lane_alone(
    serve: Serve, scripted: Any
) -> None:
    server: Any = serve(scripted())
    place = ("127.0.0.1", server._service.offer.port)
    with ExitStack() as crowd:
        for _ in range(MOST_STRANGERS + 26):
            crowd.enter_context(socket.create_connection(place, timeout=5))
        for _ in range(3):
            with RemoteEnv(server, lane="local") as env:
                env.reset()


def test_a_lost_local_lane_of_a_unix_server_is_told_of(
    serve: Serve,
    scripted: Any,
    either_address: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = serve(scripted(), either_address)
    offer = LaneOffer(Secret("secret"), "/nowhere/lane", None, None)

    def read(_: object) -> LaneOffer:
        return offer

    monkeypatch.setattr(lanes, "read_offer", read)
    with caplog.at_level(logging.WARNING, logger="rlmesh"), RemoteEnv(server) as env:
        env.reset()
    told = [record.getMessage() for record in caplog.records if "fast lane" in record.getMessage()]
    # By TCP, a server names its local socket to clients on other machines too.
    assert len(told) == (1 if either_address.startswith("unix") else 0)


@pytest.mark.parametrize("lane", ["grpc", "local", "tcp"])
@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_a_time_limit_of_ages_is_one_on_every_way(
    serve: Serve, scripted: Any, lane: Any, seconds: float
) -> None:
    with RemoteEnv(serve(scripted()), lane=lane, request_timeout_seconds=seconds) as env:
        env.reset()
        with env.with_timeout(seconds):
            assert env.step(0)[0].tolist() == [1, 1]
