"""The array leaves of a value, in the form that a model asks for."""

from collections.abc import Callable, Mapping
from typing import Literal, cast

import numpy as np

from rlmesh.values import Array, Tensor

Backend = Literal["native", "numpy"]


def to_native(value: object) -> object:
    """Return the value with every array as a `Tensor` and every numpy scalar as a Python one."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return Tensor(array.tobytes(), array.shape, array.dtype.name)
    if isinstance(value, np.generic):
        return cast("object", value.item())
    return _mapped(value, to_native)


def to_numpy(value: object) -> object:
    """Return the value with every `Tensor` as an array of its own; arrays pass through."""
    if isinstance(value, np.ndarray):
        return cast("object", value)
    if isinstance(value, Tensor):
        return np.array(value)
    return _mapped(value, to_numpy)


def converter(backend: Backend) -> Callable[[object], object]:
    """Return the conversion into one backend's values."""
    return to_native if backend == "native" else to_numpy


def _mapped(value: object, convert: Callable[[object], object]) -> object:
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        return {key: convert(item) for key, item in items.items()}
    if isinstance(value, tuple):
        return tuple(convert(item) for item in cast("tuple[object, ...]", value))
    if isinstance(value, list):
        return [convert(item) for item in cast("list[object]", value)]
    return value
