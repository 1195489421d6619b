"""Evaluate a policy on fixed seeds: typed outcomes, and intervals instead of bare averages."""

import gymnasium
import numpy as np
import rlmesh
from numpy.typing import NDArray
from rlmesh.numpy import Model


def balance(observation: NDArray[np.float32]) -> int:
    """Push towards the side the pole falls to, looking a little ahead."""
    return int(observation[2] + 0.5 * observation[3] > 0)


seeds = range(20)
env = gymnasium.make("CartPole-v1")
for name, model in (("balance", Model(balance)), ("random", rlmesh.RANDOM_SAMPLE)):
    result = rlmesh.run(model, env, seeds=seeds, success_threshold=475)
    print(f"{name:8}", result)

worst = min(result.episodes, key=lambda episode: episode.reward or 0.0)
print("the random policy's worst seed:", worst.seed, "with outcome", worst.outcome)
env.close()
