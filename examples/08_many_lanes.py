"""Step eight environments with one message a step, as a vector environment of gymnasium.

Each client gets lanes of its own. `--num-envs 8 --autoreset-mode next_step` does the same from a
shell, with `rlmesh serve CartPole-v1`.
"""

import gymnasium
import numpy as np
import rlmesh
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from rlmesh.numpy import RemoteVectorEnv

LANES = 8


def make() -> gymnasium.Env[np.ndarray, int]:
    """Return one of the environments."""
    return gymnasium.make("CartPole-v1")


with rlmesh.EnvServer(make, num_envs=LANES, autoreset_mode="next_step") as server:
    env = RecordEpisodeStatistics(RemoteVectorEnv(server.address))
    print(env.num_envs, "lanes that reset by themselves:", env.metadata["autoreset_mode"])

    observations, infos = env.reset(seed=7)  # lane i is seeded with 7 + i
    for _ in range(520):
        actions = (observations[:, 2] + 0.5 * observations[:, 3] > 0).astype(np.int64)
        observations, rewards, terminated, truncated, infos = env.step(actions)
    print("episodes that ended:", len(env.return_queue))
    print("their mean return:", float(np.mean(env.return_queue)))
    env.close()
