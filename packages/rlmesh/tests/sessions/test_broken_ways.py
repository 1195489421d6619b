"""A session survives its connections: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rlmesh.numpy import RemoteEnv

Serve = Callable[..., Any]  # servers, looked into
CUTS = 100


def port_of(server: Any) -> int:
    return int(server.address.rpartition(":")[2])


def lane_port_of(server: Any) -> int:
    port: int = server._service.offer.port
    return port


def hash_of(env: Any, steps: int, on_step: Callable[[int], None] = lambda _: None) -> str:
    """Return the hash of everything that an episode shows."""
    track = hashlib.sha256()
    observation, _ = env.reset(seed=7)
    track.update(observation.tobytes())
    actions = np.random.default_rng(3)
    for number in range(steps):
        on_step(number)
        outcome = env.step(int(actions.integers(1000)))
        track.update(outcome[0].tobytes())
        track.update(repr(outcome[1:4]).encode())
        track.update(repr(outcome[4]["steps"]).encode())
    return track.hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["grpc", "tcp"])
def test_a_hundred_cuts_in_one_episode_change_nothing(
    serve: Serve, making: Any, proxy: Any, lane: Any
) -> None:
    undisturbed, disturbed = making(), making()
    with RemoteEnv(serve(undisturbed), lane="grpc") as env:
        env.reset()
        expected = hash_of(env, 700)
    server = serve(disturbed)
    front = proxy(port_of(server), seed=1)
    behind = proxy(lane_port_of(server), seed=2)
    broken = behind if lane == "tcp" else front
    steps = 0

    def on_step(number: int) -> None:
        nonlocal steps
        steps = number
        if broken.cuts >= CUTS:
            broken.between = None

    with RemoteEnv(f"tcp://127.0.0.2:{port_of(server)}", lane=lane) as env:
        env.reset()
        session = env.env_id
        broken.misbehave(4, 14)
        found = hash_of(env, 700, on_step)
        broken.between = None
        assert env.env_id == session
    assert broken.cuts >= CUTS
    assert set(broken.acts) == {*broken.ACTS, "delay"}
    assert found == expected
    probe, inner = disturbed.made
    assert (probe.steps, probe.closed) == (0, 1)
    assert (inner.steps, inner.resets, len(inner.threads)) == (700, 2, 1)
