"""NumPy: decoded leaves as its arrays, and its arrays as what travels."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rlmesh.backends.host import as_leaf, as_numpy
from rlmesh.values import Array, NotAnArray

NumpyValue: TypeAlias = (
    # Any: an array of whichever element type
    NDArray[Any]
    | bool
    | int
    | float
    | str
    | bytes
    | list["NumpyValue"]
    | tuple["NumpyValue", ...]
    | dict[str, "NumpyValue"]
    | None
)
"""An observation or an action whose arrays are NumPy's."""


def asarray(value: object) -> Array:
    """Return a `rlmesh.Tensor` or a number as an array of its own; a number has no dimensions.

    Raises:
        NotAnArray: the value is no Tensor and no number.
    """
    return as_numpy(value)


def from_array(array: object) -> object:
    """Return an array as a `rlmesh.Tensor` with a copy of it, or as a Python number.

    An array without dimensions, or a scalar of NumPy, becomes a number. Other byte orders and
    strides are put right; `bfloat16` becomes float32, which holds each of its numbers.

    Raises:
        NotAnArray: it is neither an array nor a scalar of NumPy.
        InvalidValueError: its elements are of a type that cannot travel without loss.
    """
    if not isinstance(array, np.ndarray | np.generic):
        raise NotAnArray(f"{type(array).__name__} is neither an array nor a scalar of numpy")
    return as_leaf(np.asarray(cast("Array", array)))
