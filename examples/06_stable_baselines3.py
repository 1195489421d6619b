"""Train with stable-baselines3 on an environment that lives in another process.

`rlmesh.numpy.RemoteEnv` is a gymnasium.Env: wrappers and trainers take it as it is.
"""

# stable-baselines3 leaves its type arguments open.
# pyright: reportUnknownMemberType=false

import gymnasium
import rlmesh
from gymnasium.wrappers import RecordEpisodeStatistics
from rlmesh.numpy import RemoteEnv
from stable_baselines3 import PPO

with (
    rlmesh.EnvServer(lambda: gymnasium.make("CartPole-v1"), "tcp://127.0.0.1:0") as server,
    RemoteEnv(server.address) as remote,
):
    env = RecordEpisodeStatistics(remote)
    model = PPO("MlpPolicy", env, n_steps=256, seed=1, device="cpu")
    model.learn(total_timesteps=1024)
    print(
        "episodes:",
        len(env.return_queue),
        "mean return:",
        sum(env.return_queue) / env.episode_count,
    )
