"""Which values are arrays that metadata can carry with their type and shape."""

from __future__ import annotations

from typing import cast

import numpy as np

from rlmesh.backends.host import host
from rlmesh.values import DTYPES, Array, Tensor


def tensor_of(value: object) -> Array | None:
    """Return the value as a little-endian array of one of the twelve element types, if it is one.

    Arrays are NumPy's, tensors of ours, and those of frameworks with dimensions: frameworks have
    no other scalars than arrays without. Scalars, masked arrays, and arrays of objects, text, dates
    or complex numbers are none.
    """
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return None if isinstance(array, np.ma.MaskedArray) else _known(array)
    if type(value) is Tensor:
        return value.__array__()
    # Classes can have the method without being arrays.
    if isinstance(value, type | np.generic) or not hasattr(value, "__dlpack__"):
        return None
    try:
        foreign: Array = np.asarray(host(value))
    except Exception:  # a foreign array may raise anything from its own conversion
        return None
    return _known(foreign) if foreign.ndim else None


def loses_its_type(value: object) -> bool:
    """Tell whether a value that `tensor_of` has no array for loses what it is as nested lists.

    An array of objects does not: it is a list of them, and the columns of lanes' infos, which are
    such arrays, come back as what they were.
    """
    if not isinstance(value, np.ndarray):
        return False
    array = cast("Array", value)
    return isinstance(array, np.ma.MaskedArray) or array.dtype != object


def _known(array: Array) -> Array | None:
    dtype = DTYPES.get(array.dtype.name)
    if dtype is None:
        return None
    return np.asarray(array) if array.dtype == dtype else array.astype(dtype)
