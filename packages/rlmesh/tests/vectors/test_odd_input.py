"""What a server of lanes and its client make of things that are nearly right."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from rlcore import ConfigurationError, EnvironmentException, InvalidActionError
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]


def test_actions_come_from_whatever_can_be_gone_through(wanderer: Any, serve: Serve) -> None:
    lanes = [wanderer("discrete"), wanderer("discrete")]
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=0)
        env.step(action for action in [-2, 2])
        env.reset(seed=0)
        env.step(deque([1, 0]))
        env.reset(seed=0)
        env.step({"a": -1, "b": 1}.values())
    assert [lane.actions for lane in lanes] == [[-2, 1, -1], [2, 0, 1]]


def test_a_mapping_is_no_batch_of_actions(wanderer: Any, serve: Serve) -> None:
    lanes = [wanderer("discrete"), wanderer("discrete")]
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=0)
        with pytest.raises(InvalidActionError, match="mapping"):
            env.step({0: 1, 1: 1})
    assert lanes[0].actions == []


def test_one_environment_cannot_be_two_lanes(wanderer: Any) -> None:
    one = wanderer()
    with pytest.raises(ConfigurationError, match="same environment"):
        EnvServer([one, one])


@pytest.mark.parametrize("count", [True, "3", 2.0, 0])
def test_a_number_of_lanes_is_a_whole_number(count: Any, wanderer: Any) -> None:
    with pytest.raises(ConfigurationError, match="num_envs is"):
        EnvServer(wanderer, num_envs=count)


class Vector:
    single_observation_space = single_action_space = spaces.Discrete(2)
    num_envs: Any = 2

    def reset(self, **_: object) -> Any:
        return np.zeros(2, np.int64), {}

    def step(self, actions: object) -> Any:
        none = np.zeros(2, np.bool_)
        return np.zeros(2, np.int64), np.array(["1", "2"]), none, none, {}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("count", [2.5, "2", True])
def test_an_environment_of_a_broken_number_of_lanes_is_none(count: Any) -> None:
    env = Vector()
    env.num_envs = count
    with pytest.raises(ConfigurationError, match="its num_envs is"):
        EnvServer(env)


class Wordy:
    observation_space = action_space = spaces.Discrete(2)

    def reset(self, **_: object) -> Any:
        return 0, {}

    def step(self, action: object) -> Any:
        return 0, "1.5", False, False, {}

    def close(self) -> None:
        pass


def test_a_text_is_no_reward(serve: Serve) -> None:
    with RemoteVectorEnv(serve(Vector()).address) as lanes:
        lanes.reset()
        with pytest.raises(EnvironmentException, match="not numbers"):
            lanes.step([0, 1])
    with RemoteEnv(serve(Wordy()).address) as env:
        env.reset()
        with pytest.raises(EnvironmentException, match=r"reward is the text '1\.5'"):
            env.step(1)
