"""Foreign scalars and containers as Python's own: the first step of writing metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, cast

import numpy as np

from rlmesh.values import Tensor


class _Refused:
    """The answer about a value that is none of Python's own."""


REFUSED: Final = _Refused()

_UNWRAPPERS: Final = ("_asdict", "tolist", "item")  # named tuples; arrays; scalars of frameworks


def plain(value: object) -> object:
    """Return an equal value of an exact builtin type, or `REFUSED`; children are left alone.

    Nothing is lost but the type: an array becomes nested lists, an enum member its value, or its
    name where the value cannot be written.
    """
    if isinstance(value, Enum):
        inner = plain(cast("object", value.value))
        return value.name if inner is REFUSED else inner
    if value is None:
        return None
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            try:
                return convert(value)
            except Exception:  # a foreign container may raise anything; it is refused by us
                return REFUSED
    return _unwrapped(value)


def _unwrapped(value: object) -> object:
    if isinstance(value, type):
        return REFUSED
    for name in _UNWRAPPERS:
        method = getattr(value, name, None)
        if callable(method):
            try:
                return _builtin(method())
            except Exception:  # a foreign method may raise anything; the value is refused by us
                return REFUSED
    return REFUSED


def _builtin(value: object) -> object:
    return value if value is None or type(value) in _BUILTIN else REFUSED


def _from_numpy(value: object) -> object:
    return _builtin(cast("np.generic", value).item())


def _from_tuple(value: object) -> object:
    unwrapped = _unwrapped(value) if hasattr(value, "_asdict") else REFUSED
    return list(cast("tuple[object, ...]", value)) if unwrapped is REFUSED else unwrapped


_BUILTIN: Final = frozenset({bool, int, float, str, bytes, list, dict})

# Annotated loosely on purpose: each conversion is only called with the kind beside it.
_CONVERSIONS: Final[tuple[tuple[type, Callable[[object], object]], ...]] = (
    (np.bool_, lambda value: bool(value)),
    (np.integer, lambda value: int(cast("int", value))),
    (np.floating, lambda value: float(cast("float", value))),
    (str, lambda value: str.__str__(cast("str", value))),
    (bytes, lambda value: bytes(cast("bytes", value))),
    (bytearray, lambda value: bytes(cast("bytearray", value))),
    (np.generic, _from_numpy),
    (np.ndarray, lambda value: cast("Tensor", value).tolist()),
    (Tensor, lambda value: cast("Tensor", value).tolist()),
    (bool, lambda value: value),
    (int, lambda value: int(cast("int", value))),
    (float, lambda value: float(cast("float", value))),
    (tuple, _from_tuple),
    (list, lambda value: list(cast("list[object]", value))),
    (Mapping, lambda value: dict(cast("Mapping[object, object]", value))),
    (memoryview, lambda value: cast("Tensor", value).tolist()),
)
