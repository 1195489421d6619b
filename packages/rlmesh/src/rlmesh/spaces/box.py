"""Arrays of numbers between bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import as_array, dtype_named, integer_range, invalid, shown
from rlmesh.spaces.shapes import checked_shape
from rlmesh.spaces.space import Space
from rlmesh.values import Array, Backend


class Box(Space):
    """Arrays of one shape and element type, each element between two bounds.

    Args:
        low: the least value, for all elements or one for each; `-inf` (or `"-inf"`) for no bound.
        high: the greatest value, likewise.
        shape: the dimensions; may be left out where a bound is an array.
        dtype: the element type. Integer types without a bound reach as far as the type does.

    Raises:
        ConfigurationError: the bounds do not fit the shape or the type, cross, or are NaN.
    """

    __slots__ = ("_dtype", "_high", "_low", "_shape")
    kind: ClassVar[str] = "box"
    _shape: tuple[int, ...]
    _dtype: np.dtype[Any]
    _low: Array
    _high: Array

    def __init__(
        self,
        low: object,
        high: object = None,
        shape: Sequence[int] | None = None,
        dtype: object = "float32",
    ) -> None:
        if isinstance(low, Box):
            low, high, shape, dtype = low._arguments()
        if high is None:
            raise TypeError("a Box needs `low` and `high`")
        element = dtype_named(dtype)
        if shape is None:
            if np.ndim(low) == np.ndim(high) == 0:  # type: ignore[arg-type]  # any bound
                raise TypeError("a Box needs a `shape` where neither bound is an array")
            shape = np.broadcast(low, high).shape  # type: ignore[arg-type]
        dims = checked_shape(shape, element.itemsize)
        lowest, highest = _bound(low, dims, element, -1), _bound(high, dims, element, 1)
        if 0 in dims:
            lowest, highest = _ends(element)
        if not (lowest <= highest).all():
            raise ConfigurationError(f"a Box cannot have low {shown(low)} above high {shown(high)}")
        if lowest.ndim == 0 or highest.ndim == 0:
            lowest, highest = np.broadcast_arrays(lowest, highest)
        if lowest.ndim > 0 and _same(lowest) and _same(highest):
            lowest, highest = lowest.flat[0], highest.flat[0]
        lowest, highest = _frozen(lowest, element), _frozen(highest, element)
        self._settle(
            element.name,
            dims,
            lowest.tobytes(),
            highest.tobytes(),
            _shape=dims,
            _dtype=element,
            _low=lowest,
            _high=highest,
        )

    @property
    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self._shape)

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return self._dtype.name

    @property
    def value_dtype(self) -> str:
        """The name of the element type of decoded arrays."""
        return self._dtype.name

    @property
    def low(self) -> Array:
        """The least value of each element, read-only."""
        return np.broadcast_to(self._low, self._shape)

    @property
    def high(self) -> Array:
        """The greatest value of each element, read-only."""
        return np.broadcast_to(self._high, self._shape)

    @property
    def uniform_bounds(self) -> tuple[Array, Array] | None:
        """The bounds as two scalars where they are the same for all elements."""
        return (self._low, self._high) if self._low.ndim == 0 else None

    @property
    def bounds_kind(self) -> str:
        """`unbounded`, `uniform` or `elementwise`; `typed_` before it for integer types."""
        uniform = self._low.ndim == 0
        if uniform and self._dtype.kind == "f":
            return "unbounded" if np.isinf(self._low) and np.isinf(self._high) else "uniform"
        if self._dtype.kind == "f":
            return "elementwise"
        return "typed_uniform" if uniform else "typed_elementwise"

    def draw(self, generator: np.random.Generator, backend: Backend) -> Any:  # Any: by backend
        """Return an example: uniform, normal or exponential, as each element is bounded."""
        if self._dtype.kind == "f":
            return backend.owned(self._draw_floats(generator))
        if self._dtype.kind == "b":
            whole = generator.integers(
                self.low.astype(np.uint8), self.high.astype(np.uint8), self._shape, endpoint=True
            )
        else:
            native = self._dtype.newbyteorder("=")
            whole = generator.integers(
                self._low, self._high, self._shape, dtype=native, endpoint=True
            )
        return backend.owned(np.asarray(whole, self._dtype))

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for an array between the bounds."""
        array = as_array(value, self._dtype, self._shape, path)
        outside = ~((array >= self._low) & (array <= self._high))
        if outside.any():
            raise invalid(path, f"holds {array[outside].flat[0]}, which is outside {self!r}")

    def __repr__(self) -> str:
        if self._low.ndim == 0:
            bounds = f"{self._low}, {self._high}"
        else:
            bounds = f"{shown(self._low.tolist())}, {shown(self._high.tolist())}"
        return f"Box({bounds}, {self._shape}, {self._dtype.name})"

    def _draw_floats(self, generator: np.random.Generator) -> Array:
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        above, below = np.isfinite(low), np.isfinite(high)
        part = generator.random(self._shape)
        tail = generator.exponential(size=self._shape)
        with np.errstate(invalid="ignore", over="ignore"):
            drawn = np.select(
                [above & below, above, below],
                [low * (1 - part) + high * part, low + tail, high - tail],
                generator.standard_normal(self._shape),
            )
            limits = np.finfo(self._dtype)
            narrow = np.clip(drawn, limits.min, limits.max).astype(self._dtype)
        return np.asarray(np.clip(narrow, self._low, self._high), self._dtype)

    def _details(self) -> dict[str, object]:
        kind = self.bounds_kind
        if kind == "unbounded":
            return {"bounds_kind": kind}
        low, high = self._low, self._high
        if kind != "uniform":
            low, high = low.reshape(-1), high.reshape(-1)
        return {"bounds_kind": kind, "low": low.tolist(), "high": high.tolist()}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self._low, self._high, self._shape, self._dtype.name


def _ends(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the bounds that mean none."""
    ends = (-np.inf, np.inf) if dtype.kind == "f" else integer_range(dtype)
    return np.asarray(ends[0], dtype), np.asarray(ends[1], dtype)


def _bound(bound: object, shape: tuple[int, ...], dtype: np.dtype[Any], side: int) -> Array:
    if isinstance(bound, str):
        bound = float(bound) if bound in ("inf", "-inf") else bound
    try:
        given = np.asarray(bound)
    except ValueError as error:
        raise ConfigurationError(f"{shown(bound)} is not a bound of a Box") from error
    if given.dtype.kind not in "biuf":
        raise ConfigurationError(f"{shown(bound)} is not a bound of a Box of {dtype.name}")
    if given.ndim > 0 and given.shape != shape:
        raise ConfigurationError(
            f"a bound of shape {list(given.shape)} does not fit a Box of shape {list(shape)}"
        )
    if given.dtype.kind == "f" and np.isnan(given).any():
        raise ConfigurationError("a bound of a Box cannot be NaN")
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            # Adding zero leaves no -0.0, so that equal bounds have equal bytes.
            return np.asarray(given.astype(dtype) + dtype.type(0))
    if given.dtype.kind == "f":
        # An infinite bound of an integer space is the end of its type.
        end = integer_range(dtype)[(side + 1) // 2]
        unbounded = given == side * np.inf
        if unbounded.any():
            whole = [
                end if free else number
                for free, number in zip(unbounded.flat, given.flat, strict=True)
            ]
            given = np.array(whole, dtype=object).reshape(given.shape)
        # numpy has no type for "integers of any size", so exactness needs Python's.
        given = given.astype(object)
    return _exact_integers(given, dtype)


def _exact_integers(given: Array, dtype: np.dtype[Any]) -> Array:
    low, high = integer_range(dtype)
    numbers = given.reshape(-1).tolist()
    for number in numbers:
        if number in (np.inf, -np.inf) or int(number) != number or not low <= number <= high:
            raise ConfigurationError(f"{number!r} cannot bound a Box of {dtype.name}")
    return np.array([int(number) for number in numbers], dtype).reshape(given.shape)


def _same(bound: Array) -> bool:
    return bool((bound == bound.flat[0]).all())


def _frozen(bound: Array, dtype: np.dtype[Any]) -> Array:
    array = np.array(bound, dtype, order="C")
    array.flags.writeable = False
    return array
