"""Microseconds to encode and decode one value, and the values of many lanes, per space and backend.

Run with `python packages/rlmesh/benchmarks/codec.py`. `owned` decodes over memory that is the
value's from then on; `lanes` takes a list of one value for each lane, `batch` the same as arrays.
"""

import sys
from collections.abc import Callable
from functools import partial
from timeit import repeat

from rlmesh.codec import NATIVE, NUMPY, compile_batch_codec, compile_codec
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    Sequence,
    Space,
    Text,
    Tuple,
)

CALLS, TRIES = 2_000, 7
LANES = 16

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
    "Sequence of 4 float32": Sequence(Box(-1, 1, (4,))),
    "Graph of 3 float32": Graph(Box(-1, 1, (3,)), Discrete(4)),
}


def main() -> None:
    """Print the tables."""
    sys.stdout.write(f"{'space':26}{'backend':12}{'encode':>10}{'decode':>10}{'owned':>10}\n")
    for name, space in SPACES.items():
        for backend, strict_nan in ((NUMPY, False), (NUMPY, True), (NATIVE, False)):
            codec = compile_codec(space, backend=backend, strict_nan=strict_nan)
            example = space.using(backend)
            example.seed(7)
            value = example.sample()
            leaves = [bytes(leaf) for leaf in codec.encode(value)]
            owned = [memoryview(bytearray(leaf)) for leaf in leaves]
            label = backend.name + (", NaN" if strict_nan else "")
            _print(
                f"{name:26}{label:12}",
                partial(codec.encode, value),
                partial(codec.decode, leaves),
                partial(codec.decode_owned, owned),
            )
    sys.stdout.write(f"\n{f'space, {LANES} lanes':26}{'':12}{'lanes':>10}{'batch':>10}")
    sys.stdout.write(f"{'decode':>10}{'owned':>10}\n")
    for name, space in SPACES.items():
        batch = compile_batch_codec(space, backend=NUMPY)
        example = space.using(NUMPY)
        example.seed(7)
        values = [example.sample() for _ in range(LANES)]
        together = batch.join(values)
        leaves = [bytes(leaf) for leaf in batch.encode(together, LANES)]
        owned = [memoryview(bytearray(leaf)) for leaf in leaves]
        _print(
            f"{name:26}{'numpy':12}",
            partial(batch.encode, values, LANES),
            partial(batch.encode, together, LANES),
            partial(batch.decode, leaves, LANES),
            partial(batch.decode_owned, owned, LANES),
        )


def _print(label: str, *calls: Callable[[], object]) -> None:
    times = [min(repeat(call, number=CALLS, repeat=TRIES)) / CALLS * 1e6 for call in calls]
    sys.stdout.write(label + "".join(f"{time:10.2f}" for time in times) + "\n")


if __name__ == "__main__":
    main()
