"""Microseconds to encode and decode one value, per space and backend.

Run with `python packages/rlmesh/benchmarks/codec.py`.
"""

import sys
from functools import partial
from timeit import repeat

from rlmesh.codec import NATIVE, NUMPY, compile_codec
from rlmesh.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space, Text, Tuple

CALLS, TRIES = 5_000, 7

SPACES: dict[str, Space] = {
    "Discrete(4)": Discrete(4),
    "4 float32": Box(-1, 1, (4,)),
    "210x160x3 uint8": Box(0, 255, (210, 160, 3), "uint8"),
    "MultiBinary(8)": MultiBinary(8),
    "MultiDiscrete([3, 300])": MultiDiscrete([3, 300]),
    "Text(32)": Text(32),
    "Dict of 5 leaves": Dict(
        {
            "camera": Box(0, 255, (64, 64, 3), "uint8"),
            "joints": Tuple([Box(-1, 1, (7,)), Box(-1, 1, (7,))]),
            "gripper": Discrete(2),
            "task": Text(64),
        }
    ),
}


def main() -> None:
    """Print the table."""
    sys.stdout.write(f"{'space':26}{'backend':12}{'encode':>10}{'decode':>10}\n")
    for name, space in SPACES.items():
        for backend, strict_nan in ((NUMPY, False), (NUMPY, True), (NATIVE, False)):
            codec = compile_codec(space, backend=backend, strict_nan=strict_nan)
            example = space.using(backend)
            example.seed(7)
            value = example.sample()
            leaves = codec.encode(value)
            calls = (partial(codec.encode, value), partial(codec.decode, leaves))
            times = [min(repeat(call, number=CALLS, repeat=TRIES)) / CALLS * 1e6 for call in calls]
            label = backend.name + (", NaN" if strict_nan else "")
            sys.stdout.write(f"{name:26}{label:12}{times[0]:10.2f}{times[1]:10.2f}\n")


if __name__ == "__main__":
    main()
