"""Where two values differ first, and by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from rlmesh.backends.host import host
from rlmesh.recorder.columns import Array


@dataclass(frozen=True, slots=True)
class Gap:
    """Two values that should be the same.

    Attributes:
        path: where in the value, such as `$.camera[0]`; `$` is the whole of it.
        expected: what was recorded, as text.
        actual: what came instead, as text.
        largest: the largest absolute difference of two numbers, where they can be subtracted.
    """

    path: str
    expected: str
    actual: str
    largest: float | None = None


def gap(expected: object, actual: object, tolerance: float | None, path: str = "$") -> Gap | None:
    """Return the first difference of two values, or None.

    Arrays are compared by type, shape and elements, NaN being equal to NaN.

    Args:
        expected: what was recorded.
        actual: what came, of any framework.
        tolerance: how far two numbers may be apart; None for not at all.
        path: what the values are called.
    """
    if isinstance(expected, Mapping):
        return _of_mappings(cast("Mapping[str, object]", expected), actual, tolerance, path)
    if isinstance(expected, list | tuple):
        return _of_items(cast("Sequence[object]", expected), actual, tolerance, path)
    left, right = _array(expected), _array(actual)
    if left is None or right is None:
        same = expected == actual
        return None if same else Gap(path, _shown(expected), _shown(actual))
    return _of_arrays(left, right, tolerance, path)


def _of_mappings(
    expected: Mapping[str, object], actual: object, tolerance: float | None, path: str
) -> Gap | None:
    if not isinstance(actual, Mapping):
        return Gap(path, _shown(expected), _shown(actual))
    found = cast("Mapping[str, object]", actual)
    if set(expected) != set(found):
        return Gap(path, f"keys {sorted(expected)}", f"keys {sorted(found)}")
    for key, value in expected.items():
        differs = gap(value, found[key], tolerance, f"{path}.{key}")
        if differs is not None:
            return differs
    return None


def _of_items(
    expected: Sequence[object], actual: object, tolerance: float | None, path: str
) -> Gap | None:
    if not isinstance(actual, list | tuple):
        return Gap(path, _shown(expected), _shown(actual))
    found = cast("Sequence[object]", actual)
    if len(found) != len(expected):
        return Gap(path, f"{len(expected)} items", f"{len(found)} items")
    for at, (left, right) in enumerate(zip(expected, found, strict=True)):
        differs = gap(left, right, tolerance, f"{path}[{at}]")
        if differs is not None:
            return differs
    return None


def _of_arrays(expected: Array, actual: Array, tolerance: float | None, path: str) -> Gap | None:
    if expected.shape != actual.shape:
        return Gap(path, f"shape {list(expected.shape)}", f"shape {list(actual.shape)}")
    if expected.ndim and expected.dtype != actual.dtype:
        return Gap(path, f"elements {expected.dtype}", f"elements {actual.dtype}")
    allowed = 0.0 if tolerance is None else tolerance
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart: Array = np.abs(left - right)
    # Beyond 2**53 floats of 64 bits are too coarse; infinities have no difference.
    same = (expected == actual) | (np.isnan(left) & np.isnan(right))
    wrong = ~same & ~(apart <= allowed) if allowed else ~same
    if not wrong.any():
        return None
    at = tuple(int(place) for place in np.argwhere(wrong)[0])
    largest = float(np.nanmax(np.where(wrong, apart, 0.0)))
    place = f"{path}[{', '.join(map(str, at))}]" if at else path
    return Gap(
        place,
        str(expected[at]),
        str(actual[at]),
        largest if math.isfinite(largest) else None,
    )


def _array(value: object) -> Array | None:
    if isinstance(value, str | bytes) or value is None:
        return None
    found = host(value)
    if isinstance(found, bool | int | float) or hasattr(found, "__array__"):
        array: Array = np.asarray(cast("Any", found))  # Any: whatever has __array__
        return array if array.dtype.kind in "biuf" else None
    return None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
