"""A trainer of vector environments learns on served lanes as on local ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rlmesh.numpy import RemoteVectorEnv
from rlmesh.server.env_server import EnvServer
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv

pytestmark = pytest.mark.slow


class AsVecEnv(VecEnv):
    """A gymnasium vector environment with same-step autoreset, as Stable-Baselines3 wants one."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.answer: Any = None
        base: Any = super()
        base.__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        return self.env.reset(seed=self._seeds[0])[0]

    def step_async(self, actions: Any) -> None:
        self.answer = self.env.step(actions)

    def step_wait(self) -> Any:
        observations, rewards, terminated, truncated, info = self.answer
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for lane in np.flatnonzero(over):
            infos[lane]["terminal_observation"] = info["final_obs"][lane]
            infos[lane]["TimeLimit.truncated"] = bool(truncated[lane] and not terminated[lane])
        return observations, rewards, over, infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.env, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError(attr_name)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError(method_name)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def weights_after_learning(env: Any) -> Any:
    vec = AsVecEnv(env)
    vec.seed(5)
    model: Any = PPO("MlpPolicy", vec, n_steps=16, batch_size=16, n_epochs=2, seed=5, device="cpu")
    model.learn(64)
    vec.close()
    return model.policy.state_dict()


def test_a_trainer_learns_the_same_on_served_lanes(serve: Callable[..., EnvServer]) -> None:
    make = partial(gymnasium.make, "CartPole-v1", max_episode_steps=10)
    here = SyncVectorEnv([make] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    server = serve(make, num_envs=2, autoreset_mode="same_step")
    ours = weights_after_learning(RemoteVectorEnv(server.address))
    theirs = weights_after_learning(here)
    for name, weights in theirs.items():
        assert bool((ours[name] == weights).all()), name
