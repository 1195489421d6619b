"""Serve an environment, and step it from somewhere else.

The two halves share nothing but an address: run them in two processes, or on two machines.
"""

import gymnasium
import rlmesh
from rlmesh.numpy import RemoteEnv

with rlmesh.EnvServer(lambda: gymnasium.make("CartPole-v1"), "tcp://127.0.0.1:0") as server:
    print("serving", server.env_contract.id, "at", server.address)

    with RemoteEnv(server.address) as env:
        observation, info = env.reset(seed=7)
        print("spaces:", env.observation_space, env.action_space)

        total, done = 0.0, False
        while not done:
            action = int(observation[2] > 0)  # push towards the side the pole falls to
            observation, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            done = terminated or truncated
        print("return:", total)
