"""JAX: decoded arrays as its arrays, and its arrays as what travels."""

from __future__ import annotations

import warnings
from typing import Any, Final, TypeAlias, cast, final

import jax
import numpy as np
from rlcore import ConfigurationError, InvalidValueError

from rlmesh.backends.frameworks import backend_of
from rlmesh.backends.host import as_leaf, as_numpy, host
from rlmesh.values import Array, Backend, NotAnArray, Tensor

JaxValue: TypeAlias = (
    jax.Array
    | bool
    | int
    | float
    | str
    | bytes
    | list["JaxValue"]
    | tuple["JaxValue", ...]
    | dict[str, "JaxValue"]
    | None
)
"""An observation or an action whose arrays are JAX's."""

_JAX: Final[Any] = jax  # Any: JAX's functions and devices have no types that checkers can read
_HINT: Final = "Turn 64-bit types on: jax.config.update('jax_enable_x64', True)."


@final
class JaxBackend:
    """Makes a JAX array of each array; what has 64 bits is said once to become 32 bits."""

    name = "jax"

    def __init__(self, device: Any) -> None:
        self.device = device
        self._told = False

    def leaf(self, array: Array) -> jax.Array:
        """Return an array with memory of its own."""
        return self.owned(array.copy())

    def owned(self, array: Array) -> jax.Array:
        """Return an array over the given one's memory, where JAX does without a copy.

        Raises:
            InvalidValueError: JAX was told to do without 64-bit types, and an integer needs them.
        """
        if array.dtype.itemsize == 8:
            array = self._as_wide_as_allowed(array)
        if self.device is None:
            return cast("jax.Array", _JAX.numpy.asarray(array))
        return cast("jax.Array", _JAX.device_put(array, self.device))

    def _as_wide_as_allowed(self, array: Array) -> Array:
        narrow = np.dtype(_JAX.dtypes.canonicalize_dtype(array.dtype))
        if narrow == array.dtype:
            return array
        if not self._told:
            self._told = True
            warnings.warn(
                f"jax holds {array.dtype} values as {narrow} here. {_HINT}",
                UserWarning,
                stacklevel=2,
            )
        if narrow.kind != "f" and array.size:
            limits = np.iinfo(narrow)
            if array.min() < limits.min or array.max() > limits.max:
                raise InvalidValueError(
                    f"a value holds {array.min()} to {array.max()}, which jax cannot hold as "
                    f"{narrow}",
                    hint=_HINT,
                )
        return array.astype(narrow)

    def __reduce__(self) -> tuple[object, ...]:
        place = self.device
        return backend_of, ("jax", None if place is None else f"{place.platform}:{place.id}")


def backend(device: object = None) -> Backend:
    """Return the backend of a device: one of JAX's own, or `"PLATFORM"`, or `"PLATFORM:INDEX"`.

    Raises:
        ConfigurationError: there is no such device here.
    """
    if device is None or isinstance(device, _JAX.Device):
        return JaxBackend(device)
    platform, _, index = str(device).partition(":")
    try:
        return JaxBackend(_JAX.devices(platform)[int(index or 0)])
    except (RuntimeError, IndexError, ValueError) as error:
        raise ConfigurationError(
            f"jax cannot use the device {device!r}: {error}",
            hint="Give a device that jax.devices() lists, such as 'cpu' or 'gpu:0'.",
        ) from error


def asarray(value: object) -> jax.Array:
    """Return a `rlmesh.Tensor` or a number as a JAX array.

    Without JAX's x64 mode, 64-bit types become 32-bit ones, with a warning.

    Raises:
        NotAnArray: the value is no Tensor and no number.
        InvalidValueError: an integer needs 64 bits, and JAX was told to do without.
    """
    if isinstance(value, jax.Array):
        return value
    if isinstance(value, bool | int | float):
        try:
            # Of the width that JAX gives to Python's numbers.
            return cast("jax.Array", _JAX.numpy.asarray(value))
        except OverflowError as error:
            raise InvalidValueError(f"jax cannot hold {value}: {error}", hint=_HINT) from error
    array = value.__array__() if isinstance(value, Tensor) else as_numpy(value)
    return cast("jax.Array", backend().owned(array))


def from_array(array: object) -> object:
    """Return a JAX array as a `rlmesh.Tensor` with a copy of it, or as a Python number.

    An array without dimensions becomes a number; `bfloat16` and the smaller floats become float32,
    which holds each of their numbers.

    Raises:
        NotAnArray: it is no JAX array.
        InvalidValueError: its elements are of a type that cannot travel.
    """
    if not isinstance(array, jax.Array):
        raise NotAnArray(f"{type(array).__name__} is not a jax.Array")
    return as_leaf(cast("Array", host(array)))
