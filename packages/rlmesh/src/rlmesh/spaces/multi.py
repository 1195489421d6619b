"""Arrays of choices: between two, or between several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import as_array, dtype_named, integer_range, invalid, shown
from rlmesh.spaces.shapes import checked_shape
from rlmesh.spaces.space import Space
from rlmesh.values import DTYPES, Array, Backend


class MultiBinary(Space):
    """Arrays of zeros and ones.

    Args:
        shape: the dimensions, or the length of the only one.
        value_dtype: the element type of decoded arrays: `uint8`, or gymnasium's `int8`. It is no
            part of what is compared: the zeros and ones are the same.

    Raises:
        ConfigurationError: the dimensions cannot be, or the type is another.
    """

    __slots__ = ("_shape", "_value_dtype")
    kind: ClassVar[str] = "multi_binary"
    _shape: tuple[int, ...]
    _value_dtype: np.dtype[Any]

    def __init__(
        self, shape: int | Sequence[int] | MultiBinary, value_dtype: object = "uint8"
    ) -> None:
        if isinstance(shape, MultiBinary):
            dims, value_dtype = shape._arguments()
        else:
            dims = checked_shape(shape, 1)
        element = dtype_named(value_dtype)
        if element.name not in ("uint8", "int8"):
            raise ConfigurationError(f"a MultiBinary space is of int8 or uint8, not {element.name}")
        self._settle(dims, _shape=dims, _value_dtype=element)

    @property
    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._shape)

    @property
    def dtype(self) -> str:
        """The name of the element type in which values travel: always `uint8`."""
        return "uint8"

    @property
    def value_dtype(self) -> str:
        """The name of the element type of decoded arrays."""
        return self._value_dtype.name

    @property
    def size(self) -> int:
        """The number of elements of a one-dimensional space."""
        if len(self._shape) != 1:
            raise AttributeError(f"{self!r} has `dims`, not one `size`")
        return self._shape[0]

    @property
    def dims(self) -> list[int]:
        """The dimensions."""
        return list(self._shape)

    def draw(self, generator: np.random.Generator, backend: Backend) -> Any:  # Any: by backend
        """Return an example, each element zero or one with the same probability."""
        return backend.owned(
            generator.integers(2, size=self._shape, dtype=np.uint8).view(self._value_dtype)
        )

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for an array of zeros and ones."""
        self.array(value, path)

    def array(self, value: object, path: str) -> Array:
        """Return the value as an array of zeros and ones.

        Raises:
            InvalidValueError: it is none.
        """
        array = flags_of(value, self._shape, path)
        if array.size and array.max() > 1:
            raise invalid(path, f"holds {array.max()}; it must hold only 0 and 1")
        return array

    def __repr__(self) -> str:
        return f"MultiBinary({self._shape[0] if len(self._shape) == 1 else self._shape})"

    def _details(self) -> dict[str, object]:
        one = len(self._shape) == 1
        return {"size": self._shape[0]} if one else {"dims": list(self._shape)}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self._shape, self._value_dtype.name


def flags_of(value: object, shape: tuple[int, ...], path: str) -> Array:
    """Return the value as an array of bytes of this shape; what they are is not looked at.

    Raises:
        InvalidValueError: it is none.
    """
    if type(value) is np.ndarray and value.dtype == DTYPES["int8"]:
        value = value.view(np.uint8)  # gymnasium's type: below zero is far above one
    return as_array(value, DTYPES["uint8"], shape, path)


class MultiDiscrete(Space):
    """Arrays of integers, each element out of a range of its own.

    Args:
        nvec: how many values each element can take, nested as the array is.
        dtype: the integer type of arrays of them.
        start: the least value of each element; zeros unless given.
        wire_dtype: the integer type in which they travel, counted from zero; none given, 64-bit
            integers, which every published peer reads.

    Raises:
        ConfigurationError: an element has no value, or a type cannot hold them.
    """

    __slots__ = ("_dtype", "_last", "_least", "_nvec", "_start", "_wire")
    kind: ClassVar[str] = "multi_discrete"
    _nvec: Array
    _start: Array
    _least: Array
    _last: Array
    _dtype: np.dtype[Any]

    _wire: np.dtype[Any]

    def __init__(
        self,
        nvec: object,
        dtype: object = "int64",
        start: object | None = None,
        wire_dtype: object = "int64",
    ) -> None:
        if isinstance(nvec, MultiDiscrete):
            nvec, dtype, start, wire_dtype = nvec._arguments()
        element, wire = dtype_named(dtype), dtype_named(wire_dtype)
        for kind in (element, wire):
            if kind.kind not in "iu":
                raise ConfigurationError(
                    f"a MultiDiscrete space is of integers, not of {kind.name}"
                )
        counts = _whole(nvec, "nvec")
        firsts = np.zeros_like(counts) if start is None else _whole(start, "start")
        if firsts.shape != counts.shape:
            raise ConfigurationError(
                f"start of shape {list(firsts.shape)} does not fit nvec of {list(counts.shape)}"
            )
        lasts = _lasts(counts, firsts, element, wire)
        counts.flags.writeable = firsts.flags.writeable = False
        self._settle(
            counts.shape,
            counts.tobytes(),
            firsts.tobytes(),
            element.name,
            _nvec=counts,
            _start=firsts,
            _dtype=element,
            _wire=wire,
            _least=firsts.astype(element),
            _last=np.array(lasts, element).reshape(counts.shape),
        )

    @property
    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._nvec.shape)

    @property
    def dtype(self) -> str:
        """The name of the integer type."""
        return self._dtype.name

    @property
    def value_dtype(self) -> str:
        """The name of the integer type of decoded arrays."""
        return self._dtype.name

    @property
    def wire_dtype(self) -> str:
        """The name of the integer type in which values travel, counted from zero."""
        return self._wire.name

    @property
    def nvec(self) -> Array:
        """How many values each element can take, read-only."""
        return self._nvec

    @property
    def start(self) -> Array:
        """The least value of each element, read-only."""
        return self._start

    def draw(self, generator: np.random.Generator, backend: Backend) -> Any:  # Any: by backend
        """Return an example, each element's values equally likely."""
        drawn = generator.integers(self._nvec) + self._start
        return backend.owned(np.asarray(drawn, self._dtype))

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for an array with each element in its range."""
        self.array(value, path)

    def array(self, value: object, path: str) -> Array:
        """Return the value as an array with each element in its range.

        Raises:
            InvalidValueError: it is none.
        """
        array = as_array(value, self._dtype, tuple(self._nvec.shape), path)
        outside = (array < self._least) | (array > self._last)
        if outside.any():
            found, least, last = (a[outside].flat[0] for a in (array, self._least, self._last))
            raise invalid(path, f"holds {found} where it must be {least} to {last}")
        return array

    def __repr__(self) -> str:
        start = f", start={shown(self._start.tolist())}" if self._start.any() else ""
        return f"MultiDiscrete({shown(self._nvec.tolist())}{start})"

    def _details(self) -> dict[str, object]:
        details: dict[str, object] = {"nvec": self._nvec.tolist()}
        if self._start.any():
            details["start"] = self._start.tolist()
        return details

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self._nvec, self._dtype.name, self._start, self._wire.name


def _lasts(counts: Array, firsts: Array, element: np.dtype[Any], wire: np.dtype[Any]) -> list[int]:
    """Return the greatest value of each element, if both types can hold them all."""
    low, high = integer_range(element)
    most = integer_range(wire)[1]
    lasts: list[int] = []
    for count, first in zip(counts.ravel().tolist(), firsts.ravel().tolist(), strict=True):
        if count < 1:
            raise ConfigurationError(f"an element needs at least one value, not {count}")
        if first < low or first + count - 1 > high:
            raise ConfigurationError(f"{count} values from {first} on do not fit {element.name}")
        if count - 1 > most:
            raise ConfigurationError(f"{count} categories do not fit into {wire.name}")
        lasts.append(first + count - 1)
    return lasts


def _whole(numbers: object, name: str) -> Array:
    try:
        array = np.asarray(numbers)
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"elements of type {array.dtype}")
        checked_shape(cast("tuple[int, ...]", array.shape), 8)
        return np.array(array, np.int64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{name} must be integers, not {shown(numbers)}") from error
