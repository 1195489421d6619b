"""Tests with a real platform and a served environment: pytest finds the fixtures in rleaas.

This file runs pytest on itself, as `pytest 16_test_with_pytest.py` does. Nothing has to run before.
"""

import subprocess
import sys

import numpy as np
import rlmesh
from numpy.typing import NDArray
from rleaas import Client
from rleaas.pytest_plugin import ServeEnvironment
from rlmesh.numpy import Model, RemoteEnv


def balance(observation: NDArray[np.float32]) -> int:
    """Push towards the side the pole falls to, looking a little ahead."""
    return int(observation[2] + 0.5 * observation[3] > 0)


def test_the_policy_balances_on_the_platform(rleaas_client: Client) -> None:
    env = rleaas_client.Environment.create("Balance", source="gym://CartPole-v1")
    env.wait_until_ready()

    result = rlmesh.run(Model(balance), "rleaas://Balance", seeds=range(3))

    assert result.mean_reward > 100


def test_an_episode_ends_where_it_is_told_to(rlmesh_env_server: ServeEnvironment) -> None:
    server = rlmesh_env_server("CartPole-v1", kwargs={"max_episode_steps": 2})

    with RemoteEnv(server.address) as env:
        env.reset(seed=1)
        truncated = [env.step(0)[3] for _ in range(2)]

    assert truncated == [False, True]


if __name__ == "__main__":
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", "-q", __file__]))
