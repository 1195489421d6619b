"""Sessions in Ray actors step the same endpoint, on any node, and outlive the loss of one."""

# ray leaves most of its types open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
import ray
from rlcore import ConfigurationError, SessionClosed
from rleaas.training.rollout_workers import RolloutWorkers
from rlmesh import EnvServer

from .conftest import RayNodes

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


TOKEN = "of the endpoint, which no answer of an actor may carry"


@dataclass(frozen=True)
class Dial:
    """What a worker of the platform does, without the platform."""

    address: str

    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        from rlmesh.numpy import RemoteEnv

        return RemoteEnv(self.address, token=TOKEN)


def step_on(env: gymnasium.Env[Any, Any]) -> None:
    while True:
        _, _, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            env.reset()


@pytest.fixture
def served() -> Generator[str]:
    with EnvServer(
        lambda: gymnasium.make("CartPole-v1"), "tcp://127.0.0.1:0", token=TOKEN
    ) as server:
        yield server.address


@pytest.fixture
def connected(nodes: RayNodes) -> Generator[None]:
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.mark.usefixtures("connected")
def test_two_workers_play_what_a_local_environment_plays(served: str) -> None:
    workers = RolloutWorkers(2, Dial(served), cpus=0.5)
    sessions = [workers(session) for session in range(3)]
    locals_ = [gymnasium.make("CartPole-v1") for _ in range(3)]

    for seed, (far, near) in enumerate(zip(sessions, locals_, strict=True)):
        assert far.observation_space == near.observation_space
        assert far.action_space == near.action_space
        assert far.spec is not None
        assert far.spec.id == "CartPole-v1"
        np.testing.assert_array_equal(far.reset(seed=seed)[0], near.reset(seed=seed)[0])
    for step in range(5):
        for far in sessions:
            far.begin_step(step % 2)
        for far, near in zip(sessions, locals_, strict=True):
            ours, theirs = far.step(step % 2), near.step(step % 2)
            np.testing.assert_array_equal(ours[0], theirs[0])
            assert ours[1:4] == theirs[1:4]

    assert len(set(workers.nodes())) == 2
    workers.close()


@pytest.mark.usefixtures("connected")
def test_what_the_environment_refuses_arrives_as_its_own_error(served: str) -> None:
    workers = RolloutWorkers(1, Dial(served), cpus=0.5)
    session = workers(0)
    session.reset(seed=0)
    with pytest.raises(Exception, match="must be 0 to 1") as told:
        session.step(7)
    assert "Ray" not in type(told.value).__name__
    workers.close()


@pytest.mark.usefixtures("connected")
def test_a_cluster_without_room_says_how_much_there_is(
    served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rleaas.training.rollout_workers.START_SECONDS", 3.0)
    with pytest.raises(ConfigurationError, match=r"no room for 2 rollout workers of 50 processors"):
        RolloutWorkers(2, Dial(served), cpus=50)


@pytest.mark.usefixtures("connected")
def test_a_session_whose_node_is_lost_is_opened_again_elsewhere(
    served: str, nodes: RayNodes
) -> None:
    workers = RolloutWorkers(2, Dial(served), cpus=0.5)
    sessions = [workers(session) for session in range(2)]
    for session in sessions:
        session.reset(seed=1)
    lost = workers.nodes().index(nodes.second.node_id)

    nodes.lose_second()
    try:
        with pytest.raises(SessionClosed, match="rollout worker is gone"):
            step_on(sessions[lost])
        again = workers(lost)
        observation, _ = again.reset(seed=1)
        local, _ = gymnasium.make("CartPole-v1").reset(seed=1)
        np.testing.assert_array_equal(observation, local)
        assert len(set(workers.nodes())) == 1
    finally:
        workers.close()
        nodes.add_second()
