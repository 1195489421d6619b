"""Arrays of other libraries as NumPy arrays. No library is imported to recognise its arrays."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.values import DTYPES, Array, NotAnArray, Tensor

_WIDE: Final = np.dtype(np.float32)
_REGISTERED: Final = 2  # how NumPy marks element types that other packages brought


def host(value: object) -> object:
    """Return a tensor of torch or an array of jax as a NumPy array; anything else as it is.

    A tensor is detached and brought to the CPU, where its memory is shared. Element types that
    NumPy has no word for, such as `bfloat16`, become float32, which holds each of their numbers.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _from_torch(value)
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, getattr(jax, "Array", ())):
        return widened(np.asarray(value))
    return value


def hosted(value: object) -> object:
    """Return a list or tuple with foreign arrays in it with these on the host; else the value."""
    if not isinstance(value, list | tuple):
        return host(value)
    items = cast("list[object]", value)
    made = [hosted(item) for item in items]
    changed = any(new is not old for new, old in zip(made, items, strict=True))
    return made if changed else cast("object", value)


def widened(array: Array) -> Array:
    """Return an array of one of the short float types of machine learning as float32.

    Arrays of any other type are returned as they are.
    """
    dtype = array.dtype
    if dtype.isbuiltin == _REGISTERED and dtype.type.__module__ == "ml_dtypes":
        return array.astype(_WIDE)
    return array


def as_leaf(array: Array) -> object:
    """Return an array as what travels: a `Tensor`, or a Python number for one without dimensions.

    Raises:
        InvalidValueError: its elements are of a type that cannot travel without loss.
    """
    wide = widened(array)
    dtype = DTYPES.get(wide.dtype.name)
    if dtype is None:
        raise InvalidValueError(
            f"elements of type {array.dtype} cannot travel",
            hint=f"Convert them to one of {', '.join(DTYPES)}.",
        )
    if wide.ndim == 0:
        return cast("object", wide.item())
    return Tensor(np.ascontiguousarray(wide, dtype), wide.shape, dtype.name)


def as_numpy(leaf: object) -> Array:
    """Return a `Tensor`, a number or a sequence of numbers as a NumPy array of its own.

    Raises:
        NotAnArray: it is none of these.
    """
    array: Array = np.array(leaf)
    if array.dtype.name not in DTYPES:
        raise NotAnArray(
            f"{type(leaf).__name__} is neither a Tensor nor a number",
            hint="Convert the leaves of a value, not the value itself.",
        )
    return array


def _from_torch(tensor: Any) -> Array:  # Any: torch.Tensor, which is not imported for its type
    if tensor.is_floating_point() and tensor.dtype.itemsize < 4:
        try:
            return cast("Array", tensor.numpy(force=True))
        except TypeError:  # bfloat16 and its smaller kin, which NumPy does not have
            return cast("Array", tensor.float().numpy(force=True))
    return cast("Array", tensor.numpy(force=True))
