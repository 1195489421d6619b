"""Which values are arrays that metadata can carry with their type and shape."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from rlmesh.values import DTYPES, Array, Tensor


def tensor_of(value: object) -> Array | None:
    """Return the value as a little-endian array of one of the twelve element types, if it is one.

    Arrays are NumPy's, tensors of ours, and those of frameworks with dimensions, on the CPU:
    frameworks have no other scalars than arrays without. Scalars, masked arrays, and arrays of
    objects, text, dates or complex numbers are none.
    """
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return None if isinstance(array, np.ma.MaskedArray) else _known(array)
    if type(value) is Tensor:
        return value.__array__()
    # Classes can have the method without being arrays.
    if isinstance(value, type | np.generic) or not hasattr(value, "__dlpack__"):
        return None
    foreign = cast("Any", value)  # Any: whatever the framework's arrays can do
    try:
        # A tensor that records gradients only gives its numbers once it does not.
        array = np.asarray(foreign.detach() if hasattr(foreign, "detach") else foreign)
    except Exception:  # a foreign array may raise anything, such as when it is on another device
        return None
    return _known(array) if array.ndim else None


def _known(array: Array) -> Array | None:
    dtype = DTYPES.get(array.dtype.name)
    if dtype is None:
        return None
    return np.asarray(array) if array.dtype == dtype else array.astype(dtype)
