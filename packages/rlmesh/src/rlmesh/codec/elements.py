"""How much a value holds, told without converting it: writing millions of numbers takes minutes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from typing import Final, cast

from rlmesh.codec.tensors import tensor_of

LIMIT: Final = 1_000_000  # elements of one info
BYTES_AS_ONE: Final = 64  # of an array that travels as it is, which costs no work for each element
DEEPEST: Final = 50  # beyond what can be written; also what ends a value within itself

_SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes})
_CONTAINERS: Final = frozenset({dict, list, tuple})


def elements_of(value: object, tensors: bool = False) -> int:
    """Return how many elements an array or a container has; anything else has none.

    With `tensors`, an array that travels as it is counts by its bytes.
    """
    if type(value) in _SCALARS:
        return 0
    if type(value) in _CONTAINERS:  # most infos hold nothing else; the tests below cost more
        return len(cast("list[object]", value))
    try:
        if tensors and (array := tensor_of(value)) is not None:
            return array.nbytes // BYTES_AS_ONE
        if isinstance(value, Mapping | list | tuple | Set):
            return len(cast("list[object]", value))
        if isinstance(value, memoryview):
            return value.nbytes
        shape = _shape_of(value)
        return math.prod(shape) if shape else 0
    except Exception:  # a foreign container may raise anything; whoever writes it refuses it
        return 0


def is_too_large(value: object, tensors: bool = False) -> bool:
    """Tell whether a value has more than `LIMIT` elements, those inside it included."""
    left = LIMIT
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        outer, depth = waiting.pop()
        left -= elements_of(outer, tensors)
        if left < 0:
            return True
        if depth < DEEPEST:
            inside = _inside(outer)
            waiting += [(inner, depth + 1) for inner in inside if type(inner) not in _SCALARS]
    return False


def described(value: object) -> str:
    """Return the text that stands for a value that is too large."""
    name = type(value).__name__
    if isinstance(value, memoryview):
        return f"<{name} of {value.nbytes} bytes: too large>"
    if shape := _shape_of(value):
        return f"<{name} of shape {shape} and type {getattr(value, 'dtype', None)}: too large>"
    return f"<{name} of {elements_of(value)} elements: too large>"


def _shape_of(value: object) -> list[int]:
    shape: object = getattr(value, "shape", None)
    return list(cast("list[int]", shape)) if isinstance(shape, tuple | list) else []


def _inside(value: object) -> Iterable[object]:
    if type(value) is dict:
        return cast("dict[object, object]", value).values()
    try:
        if isinstance(value, Mapping):
            return list(cast("Mapping[object, object]", value).values())
        if isinstance(value, list | tuple):
            return cast("list[object]", value)
    except Exception:  # as above
        return ()
    return ()
