"""Copies of what a step was, for somebody else's function."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any


def own_copy(value: Value) -> Value:
    """The value with arrays, lists and objects of its own: whoever changes them changes no other.

    What is neither of these is handed on as it is.
    """
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        return copy.deepcopy(array) if array.dtype.hasobject else array.copy()
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Value, Value]", cast("object", value))
        return {key: own_copy(part) for key, part in pairs.items()}
    if isinstance(value, list | tuple):
        parts = [own_copy(part) for part in cast("Sequence[Value]", value)]
        if isinstance(value, list):
            return parts
        # A named tuple, as graphs are, takes its parts one by one.
        kind = cast("Any", type(cast("object", value)))
        return kind(*parts) if hasattr(kind, "_fields") else tuple(parts)
    if isinstance(value, set | bytearray):
        return copy.copy(cast("Value", value))
    return value
