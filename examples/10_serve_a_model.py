"""Serve a model, and evaluate it from somewhere else.

The model runs where its hardware is, in one thread and for many clients at once; environments run
wherever they are. Both halves share nothing but an address.
"""

import gymnasium
import numpy as np
import numpy.typing as npt
from rlmesh import EnvServer, ServeOptions, run
from rlmesh.numpy import Model, RemoteModel


def push_towards_the_fall(observation: npt.NDArray[np.float32]) -> int:
    return int(observation[2] > 0)


model = Model(push_towards_the_fall, name="lean")
# From a shell: rlmesh serve my_module:push_towards_the_fall, or rlmesh serve policy.zip
address = model.start("tcp://127.0.0.1:0", options=ServeOptions(max_sessions=8))
print("serving", model.name, "at", address)

served = RemoteModel(address)  # nothing is dialled until something is asked

# An environment in this process.
here = run(served, gymnasium.make("CartPole-v1"), seeds=[1, 2, 3])
print("in this process:", here)

# One that is served as well: the model and the environment may be two machines away from here.
with EnvServer(lambda: gymnasium.make("CartPole-v1")) as env:
    there = run(served, env.address, seeds=[1, 2, 3])
print("served as well: ", there)

# Lanes go to the model as the rows of one request.
lanes = run(served, gymnasium.make_vec("CartPole-v1", 4, vectorization_mode="sync"), episodes=8)
print("four lanes:     ", lanes)

same = [one.reward for one in here.episodes] == [one.reward for one in there.episodes]
print("the same episodes either way:", same)
model.shutdown()
