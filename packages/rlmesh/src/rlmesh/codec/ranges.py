"""Whether encoded values stay within what their space declares: bounds of Boxes, limits of Texts.

The form of a value is the codec's to refuse. Here it is about values of the right form that are out
of range, which environments and policies do give, and which can travel all the same.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, TypeAlias

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.bodies import compile_body
from rlmesh.codec.slabs import read_one, read_slab
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
)
from rlmesh.spaces.coerce import integer_range
from rlmesh.values import DTYPES, NUMPY, Array, Buffer

_FORMATS: Final = {
    "bool": "?",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
FEW: Final = 16  # numbers; below it, Python compares them faster than NumPy is called


@dataclass(frozen=True, slots=True)
class RangeFault:
    """A leaf that is out of range.

    Attributes:
        path: where in the value, such as `$.camera`.
        detail: what it holds and what it may hold.
    """

    path: str
    detail: str


RangeCheck: TypeAlias = Callable[[SequenceOf[Buffer], int], list[RangeFault]]
"""Takes the leaves of a value, and how many lanes lie in each; returns what is out of range."""

LeafCheck: TypeAlias = Callable[[Buffer, int], RangeFault | None]


def compile_range_check(space: Space) -> RangeCheck | None:
    """Return what checks encoded values of a space, or None where none can be out of range.

    The check takes the leaves of an encoded value. Those of a wrong form have no faults: they are
    the codec's to refuse. NaN is out of every range, but an element without bounds has none. At
    most one fault is returned for each leaf.
    """
    checks = [
        (index, check)
        for index, (leaf, path) in enumerate(_leaves(space, "$"))
        if (check := _leaf_check(leaf, path)) is not None
    ]
    if not checks:
        return None
    count = len(_leaves(space, "$"))
    if len(checks) == 1:
        (only, check_only) = checks[0]

        def check_one(leaves: SequenceOf[Buffer], lanes: int) -> list[RangeFault]:
            fault = check_only(leaves[only], lanes) if len(leaves) == count else None
            return [] if fault is None else [fault]

        return check_one

    def check_all(leaves: SequenceOf[Buffer], lanes: int) -> list[RangeFault]:
        if len(leaves) != count:
            return []
        found = [check(leaves[index], lanes) for index, check in checks]
        return [fault for fault in found if fault is not None]

    return check_all


def _leaves(space: Space, path: str) -> list[tuple[Space, str]]:
    match space:
        case Dict():
            children = [(child, f"{path}.{key}") for key, child in space.items()]
        case Tuple():
            children = [(child, f"{path}[{index}]") for index, child in enumerate(space)]
        case _:
            return [(space, path)]
    return [leaf for child, at in children for leaf in _leaves(child, at)]


@singledispatch
def _leaf_check(space: Space, path: str) -> LeafCheck | None:
    """Return the check of a space whose values have no fixed size."""
    if not _is_limited(space):
        return None
    read = compile_body(space, path, NUMPY, False).read

    def check(content: Buffer, lanes: int) -> RangeFault | None:
        try:
            values = [read(body) for body in read_slab(content, lanes, path)]
        except InvalidValueError:
            return None
        for value in values:
            try:
                space.check(value, path)
            except InvalidValueError as error:
                return RangeFault(path, error.message)
        return None

    return check


def _is_limited(space: Space | None) -> bool:
    match space:
        case Box():
            return not _is_full(space)
        case Text():
            return True
        case Dict():
            return any(map(_is_limited, space.values()))
        case Tuple() | OneOf():
            return any(map(_is_limited, space))
        case Sequence():
            return _is_limited(space.feature_space)
        case Graph():
            return _is_limited(space.node_space) or _is_limited(space.edge_space)
        case _:
            return False


@_leaf_check.register(Discrete)
@_leaf_check.register(MultiBinary)
@_leaf_check.register(MultiDiscrete)
def _(space: Space, path: str) -> LeafCheck | None:
    return None  # the codec itself refuses what they do not have


@_leaf_check.register
def _(space: Text, path: str) -> LeafCheck | None:
    least, most = space.min_length, space.max_length
    allowed = frozenset(space.charset)

    def check(content: Buffer, lanes: int) -> RangeFault | None:
        try:
            bodies = (read_one(content, path),) if lanes == 1 else read_slab(content, lanes, path)
            texts = [str(body, "utf-8") for body in bodies]
        except (InvalidValueError, UnicodeDecodeError):
            return None
        for text in texts:
            if not least <= len(text) <= most:
                said = f"has {len(text)} characters; it must have {least} to {most}"
                return RangeFault(path, said)
            if allowed and not allowed.issuperset(text):
                strange = min(set(text) - allowed)
                return RangeFault(path, f"holds {strange!r}, which is not in its charset")
        return None

    return check


@_leaf_check.register
def _(space: Box, path: str) -> LeafCheck | None:
    dtype, size = DTYPES[space.dtype], math.prod(space.shape)
    if size == 0 or _is_full(space):
        return None
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    limited, shape = _limited_elements(space).reshape(-1), tuple(space.shape)

    def explain(content: Buffer) -> RangeFault | None:
        numbers = np.frombuffer(content, dtype).reshape(-1, size)
        outside = limited & ~((numbers >= low) & (numbers <= high))
        if not outside.any():
            return None
        lane, at = (int(i) for i in np.argwhere(outside)[0])
        where = f" at {list(map(int, np.unravel_index(at, shape)))}" if shape else ""
        whose = f" in lane {lane}" if len(numbers) > 1 else ""
        # As text, since formatting would widen a float32 to digits that it does not have.
        said = f"holds {numbers[lane, at]!s}{where}{whose}, outside {low[at]!s} to {high[at]!s}"
        return RangeFault(path, said)

    uniform = space.uniform_bounds
    if uniform is not None:
        is_within = _within_two(dtype, uniform[0], uniform[1])
    else:
        is_within = _within_each(dtype, low, high)
    lane_bytes = size * dtype.itemsize
    if size > FEW:

        def check_many(content: Buffer, lanes: int) -> RangeFault | None:
            if len(content) != lanes * lane_bytes or is_within(content):
                return None
            return explain(content)

        return check_many
    unpack = struct.Struct(f"<{size}{_FORMATS[space.dtype]}").unpack
    are_within = _few_within(uniform, low, high, limited)

    def check(content: Buffer, lanes: int) -> RangeFault | None:
        if len(content) != lanes * lane_bytes:
            return None
        inside = are_within(unpack(content)) if lanes == 1 else is_within(content)
        return None if inside else explain(content)

    return check


def _is_full(space: Box) -> bool:
    return not _limited_elements(space).any()


def _limited_elements(space: Box) -> Array:
    """Return which elements cannot have every number of their type."""
    dtype = DTYPES[space.dtype]
    lowest, highest = (-np.inf, np.inf) if dtype.kind == "f" else integer_range(dtype)
    return np.asarray((space.low != lowest) | (space.high != highest))


def _within_two(dtype: np.dtype[Any], low: Array, high: Array) -> Callable[[Buffer], bool]:
    least, greatest = np.minimum.reduce, np.maximum.reduce

    def is_within(content: Buffer) -> bool:
        numbers = np.frombuffer(content, dtype)
        # NaN goes through both reductions, and no comparison with it holds.
        return bool(least(numbers) >= low and greatest(numbers) <= high)

    return is_within


def _within_each(dtype: np.dtype[Any], low: Array, high: Array) -> Callable[[Buffer], bool]:
    size = low.size

    def is_within(content: Buffer) -> bool:
        numbers = np.frombuffer(content, dtype).reshape(-1, size)
        return bool(((numbers >= low) & (numbers <= high)).all())

    return is_within


def _few_within(
    uniform: tuple[Array, Array] | None, low: Array, high: Array, limited: Array
) -> Callable[[SequenceOf[float]], bool]:
    if uniform is not None:
        least, greatest = uniform[0].item(), uniform[1].item()

        def all_between(numbers: SequenceOf[float]) -> bool:
            for number in numbers:  # noqa: SIM110  # a generator takes twice as long
                if not least <= number <= greatest:
                    return False
            return True

        return all_between
    bounds = [(at, low[at].item(), high[at].item()) for at in np.flatnonzero(limited).tolist()]

    def each_between(numbers: SequenceOf[float]) -> bool:
        for at, lowest, highest in bounds:  # noqa: SIM110  # as above
            if not lowest <= numbers[at] <= highest:
                return False
        return True

    return each_between
