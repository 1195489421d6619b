"""Many lanes survive the connection as one does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from rlmesh.numpy import RemoteVectorEnv

LANES = 3
CUTS = 10
Serve = Callable[..., Any]  # servers, looked into


def played(env: Any, steps: int, settled: Callable[[], None] = lambda: None) -> list[Any]:
    """Return everything that some steps of all lanes show."""
    observations, info = env.reset(seed=7)
    seen: list[Any] = [observations, info]
    actions = np.random.default_rng(3)
    for _ in range(steps):
        settled()
        seen += env.step(actions.integers(2, size=LANES))
    return seen


@pytest.mark.parametrize("lane", ["grpc", "tcp"])
def test_cuts_between_the_steps_of_many_lanes_change_nothing(
    serve: Serve, proxy: Any, lane: Any
) -> None:
    make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=12)
    kept = {"num_envs": LANES, "autoreset_mode": "same_step"}
    with RemoteVectorEnv(serve(make, **kept).address, lane="grpc") as env:
        expected = played(env, 120)
    server = serve(make, **kept)
    port = int(server.address.rpartition(":")[2])
    front, behind = proxy(port, seed=1), proxy(server._service.offer.port, seed=2)
    broken = behind if lane == "tcp" else front

    def settled() -> None:
        if broken.cuts >= CUTS:
            broken.between = None

    with RemoteVectorEnv(f"tcp://127.0.0.2:{port}", lane=lane) as env:
        env.reset()
        session = env.env_id
        broken.misbehave(4, 14)
        found = played(env, 120, settled)
        broken.between = None
        assert env.env_id == session
    assert broken.cuts >= CUTS
    assert data_equivalence(found, expected)
