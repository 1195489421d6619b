"""The array leaves of a value, in the form that a model asks for."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np

from rlmesh.backends.frameworks import FrameworkName, backend_of
from rlmesh.backends.host import host
from rlmesh.values import DTYPES, Array, Tensor
from rlmesh.values import Backend as ArrayBackend

Backend: TypeAlias = FrameworkName


def to_native(value: object) -> object:
    """Return the value with every array as a `Tensor` and every numpy scalar as a Python one."""
    value = host(value)
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return Tensor(array.tobytes(), array.shape, array.dtype.name)
    if isinstance(value, np.generic):
        return cast("object", value.item())
    return _mapped(value, to_native)


def to_numpy(value: object) -> object:
    """Return the value with every `Tensor` as an array of its own; arrays pass through."""
    value = host(value)
    if isinstance(value, np.ndarray):
        return cast("object", value)
    if isinstance(value, Tensor):
        return np.array(value)
    return _mapped(value, to_numpy)


def converter(backend: Backend, device: object = None) -> Callable[[object], object]:
    """Return the conversion into one backend's values, on one of its devices.

    Raises:
        ConfigurationError: the backend has no such device, or no devices at all.
        MissingDependencyError: its library is not installed.
    """
    arrays = backend_of(backend, device)
    if backend == "native":
        return to_native
    return to_numpy if backend == "numpy" else _into(arrays)


def _into(backend: ArrayBackend) -> Callable[[object], object]:
    def convert(value: object) -> object:
        value = host(value)
        if isinstance(value, np.generic):
            return cast("object", value.item())
        if isinstance(value, Tensor):
            value = value.__array__()
        if isinstance(value, np.ndarray):
            array = cast("Array", value)
            element = DTYPES.get(array.dtype.name)
            # What cannot travel has no contract either, and no tensor: the model gets it as it is.
            return array if element is None else backend.leaf(np.asarray(array, element, order="C"))
        return _mapped(value, convert)

    return convert


def _mapped(value: object, convert: Callable[[object], object]) -> object:
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        return {key: convert(item) for key, item in items.items()}
    if isinstance(value, tuple):
        return tuple(convert(item) for item in cast("tuple[object, ...]", value))
    if isinstance(value, list):
        return [convert(item) for item in cast("list[object]", value)]
    return value
