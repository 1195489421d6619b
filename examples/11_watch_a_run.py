"""Watch a run in a browser while it goes on, and pause, step, skip or end it from there."""

import gymnasium
import numpy as np
import rlmesh
from numpy.typing import NDArray
from rlmesh.numpy import Model


def balance(observation: NDArray[np.float32]) -> int:
    """Push towards the side the pole falls to."""
    return int(observation[2] + 0.5 * observation[3] > 0)


# Frames come from `render()`, so the environment has to draw arrays; images in observations are
# shown as well. `view=True` draws into the terminal instead.
env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
view = rlmesh.View("http", port=0, fps=20)

# The address is printed when the run starts, and is `view.address` as long as it goes on.
result = rlmesh.run(Model(balance), env, seeds=range(5), max_episode_steps=200, view=view)
env.close()
print(result)
