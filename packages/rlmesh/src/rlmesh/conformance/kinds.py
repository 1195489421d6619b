"""Tells values of foreign kinds apart, in words that both type checkers understand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from rlmesh.values import Array


def is_array(value: object) -> TypeGuard[Array]:
    """Tell whether it is an array of NumPy."""
    return isinstance(value, np.ndarray)


def is_scalar(value: object) -> TypeGuard[np.generic]:
    """Tell whether it is a scalar of NumPy."""
    return isinstance(value, np.generic)


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether it is an integer of Python or NumPy, and no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether it is a real number of Python or NumPy, and no bool."""
    return is_integer(value) or isinstance(value, float | np.floating)


def is_flag(value: object) -> TypeGuard[bool]:
    """Tell whether it is a bool of Python or NumPy."""
    return isinstance(value, bool | np.bool_)


def is_dict(value: object) -> TypeGuard[dict[str, object]]:
    """Tell whether it is a dict; its keys may still be anything."""
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Tell whether it is a mapping; its keys may still be anything."""
    return isinstance(value, Mapping)


def is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    """Tell whether it is a tuple."""
    return isinstance(value, tuple)


def is_row(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Tell whether it is a list or a tuple."""
    return isinstance(value, list | tuple)
