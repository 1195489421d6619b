"""One evaluation on several processes: the same episodes as on one, a journal, and an early end."""

import tempfile
from pathlib import Path

import numpy as np
import rlmesh
from numpy.typing import NDArray
from rlmesh.numpy import Model


def balance(observation: NDArray[np.float32]) -> int:
    """Push towards the side the pole falls to, looking a little ahead."""
    return int(observation[2] + 0.5 * observation[3] > 0)


def is_clear(result: rlmesh.RunResult) -> bool:
    """Enough is known when the interval of the success rate is narrow."""
    interval = result.success_interval
    return interval is not None and interval.high - interval.low < 0.3


model = Model(balance)
one = rlmesh.run(model, "CartPole-v1", seeds=range(8), success_threshold=475)
two = rlmesh.run(model, "CartPole-v1", seeds=range(8), success_threshold=475, num_workers=2)
print("one environment:", one)
print("two processes:  ", two)
print("the same, episode by episode:", one.agrees_with(two) == ())

with tempfile.TemporaryDirectory() as folder:
    for rule in (is_clear, None):
        result = rlmesh.run(
            model,
            "CartPole-v1",
            seeds=range(40),
            success_threshold=475,
            num_workers=2,
            retries=1,
            journal=Path(folder, "run.jsonl"),
            stop_when=rule,
        )
        print(f"{result.num_episodes} of 40 episodes are in the journal:", result.stopped or "done")
