"""Decide whether one policy is better than another: the same seeds, an interval, and a verdict."""

import tempfile
from pathlib import Path

import gymnasium
import numpy as np
import rlmesh
from numpy.typing import NDArray
from rlmesh.numpy import Model


def upright(observation: NDArray[np.float32]) -> int:
    """Push towards the side the pole leans to."""
    return int(observation[2] > 0)


def ahead(observation: NDArray[np.float32]) -> int:
    """Look at where the pole falls to as well."""
    return int(observation[2] + 0.5 * observation[3] > 0)


env = gymnasium.make("CartPole-v1")
seeds = range(40)
folder = Path(tempfile.mkdtemp())

# Every finished episode is in the journal at once: a run that was killed goes on from there.
before = rlmesh.run(Model(upright), env, seeds=seeds, journal=folder / "upright.jsonl")
after = rlmesh.run(Model(ahead), env, seeds=seeds, journal=folder / "ahead.jsonl")
env.close()

print(before.summary())
print()

# Episodes are paired by seed, so that easy and hard starts do not hide the difference.
print(rlmesh.compare(before, after))
print(rlmesh.compare(before, before).headline)

# The same on a command line, for CI: `rlmesh compare before.json after.json`.
before.save(folder / "before.json")
after.save(folder / "after.json")
again = rlmesh.compare(
    rlmesh.RunResult.load(folder / "before.json"), rlmesh.RunResult.load(folder / "after.json")
)
print("from files:", again.verdict)
