"""One leaf of many lanes as bytes: the lanes are one array, nothing is done for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from typing import Any, Final, NoReturn, Protocol, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.bodies import compile_body
from rlmesh.codec.leaves import SMALL, Shift, compile_leaf, view_of, wrong_length
from rlmesh.codec.slabs import read_slab, write_slab
from rlmesh.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space
from rlmesh.spaces.coerce import as_anything, as_array, invalid, shown
from rlmesh.values import DTYPES, NATIVE, Array, Backend, Buffer, Tensor

LISTS: Final[tuple[type, ...]] = (list, tuple)
_Fits = Callable[[Array], bool]


class Column(Protocol):
    """How one leaf is written and read for any number of lanes."""

    @property
    def size(self) -> int | None:
        """The bytes of one lane; None where they depend on the value."""
        ...

    def write(self, value: Any, lanes: int) -> Buffer:  # Any, here and below: as in BatchCodec
        """Return the bytes of so many lanes."""
        ...

    def read(self, content: Buffer, lanes: int) -> Any:
        """Return the values of so many lanes, in memory of their own."""
        ...

    def own(self, content: Buffer, lanes: int) -> Any:
        """Return the values of so many lanes, over memory that belongs to them from now on."""
        ...

    def split(self, value: Any, lanes: int) -> list[Any]:
        """Return each lane's value."""
        ...

    def join(self, values: Sequence[Any]) -> Any:
        """Return the value of all lanes together."""
        ...


@singledispatch
def compile_column(space: Space, path: str, backend: Backend, strict_nan: bool) -> Column:
    """Return what writes and reads lanes of a space that is no container."""
    return _BodyColumn(space, path, backend, strict_nan)


@compile_column.register
def _(space: Box, path: str, backend: Backend, strict_nan: bool) -> Column:
    guarded = strict_nan and DTYPES[space.dtype].kind == "f"
    fits = _no_nan if guarded else _anything
    return _ArrayColumn(space, path, backend, strict_nan, fits, fits)


@compile_column.register
def _(space: MultiBinary, path: str, backend: Backend, strict_nan: bool) -> Column:
    return _ArrayColumn(space, path, backend, strict_nan, _between(0, 1), _anything)


@compile_column.register
def _(space: MultiDiscrete, path: str, backend: Backend, strict_nan: bool) -> Column:
    dtype, wire = DTYPES[space.value_dtype], DTYPES[space.wire_dtype]
    fits = _between(space.start.astype(dtype), (space.start + (space.nvec - 1)).astype(dtype))
    categories = _between(wire.type(0), (space.nvec - 1).astype(wire))
    return _ArrayColumn(space, path, backend, strict_nan, fits, categories, Shift.of(space))


@compile_column.register
def _(space: Discrete, path: str, backend: Backend, strict_nan: bool) -> Column:
    fits = _between(space.start, space.start + space.n - 1)
    return _ArrayColumn(space, path, backend, strict_nan, fits, fits, Shift.of(space))


class _ArrayColumn:
    """Lanes of equal size, as one array with the lanes first."""

    def __init__(
        self,
        space: Box | Discrete | MultiBinary | MultiDiscrete,
        path: str,
        backend: Backend,
        strict_nan: bool,
        fits: _Fits,  # what may be written
        readable: _Fits,  # what may arrive
        shift: Shift | None = None,
    ) -> None:
        self._path, self._shape = path, tuple(space.shape)
        self._dtype = DTYPES[space.value_dtype]
        self._wire = self._dtype if shift is None else shift.wire
        self._fits, self._readable, self._shift = fits, readable, shift
        self._backend, self._copied, self._owned = backend, backend.leaf, backend.owned
        self._numbers = isinstance(space, Discrete)
        self._flags = self._dtype.kind == "b" or isinstance(space, MultiBinary)
        self._lane_size = self._wire.itemsize * math.prod(self._shape)
        self.size: int | None = self._lane_size
        self._leaf = compile_leaf(space, path, backend, strict_nan)

    def write(self, value: Any, lanes: int) -> Buffer:
        array = self._array(value, lanes)
        if self._shift is not None:
            array = self._shift.down(array)
        return array.tobytes() if array.nbytes <= SMALL else view_of(array)

    def read(self, content: Buffer, lanes: int) -> Any:
        array, fresh = self._over(content, lanes)
        return self._made(array, fresh)

    def own(self, content: Buffer, lanes: int) -> Any:
        array, fresh = self._over(content, lanes)
        return self._made(array, fresh or (array.nbytes > SMALL and array.flags.aligned))

    def split(self, value: Any, lanes: int) -> list[Any]:
        if type(value) is Tensor:
            each = self.split(value.__array__(), lanes)
            return each if self._numbers else [Tensor.over(lane) for lane in each]
        if len(value) != lanes:
            raise wrong_lanes(len(value), lanes, self._path)
        if self._numbers:
            return list(cast("list[Any]", value)) if isinstance(value, LISTS) else value.tolist()
        if type(value) is np.ndarray and not self._shape:
            return [value[lane, ...] for lane in range(lanes)]
        return [value[lane] for lane in range(lanes)]

    def join(self, values: Sequence[Any]) -> Any:
        array = self._array(list(values), len(values))
        return self._made(array, True)

    def _made(self, array: Array, fresh: bool) -> Any:
        if self._numbers and self._backend is NATIVE:
            return array.tolist()
        return self._owned(array) if fresh else self._copied(array)

    def _over(self, content: Buffer, lanes: int) -> tuple[Array, bool]:
        """Return the array over the bytes, and whether its memory is its own."""
        if len(content) != lanes * self._lane_size:
            raise wrong_length(content, lanes * self._lane_size, self._path)
        dims = (lanes, *self._shape)
        if self._flags:
            # Any byte but zero reads as one, as the protocol wants.
            flags: Array = np.asarray(np.ndarray(dims, DTYPES["uint8"], content) != 0)
            return flags.view(self._dtype), True
        array: Array = np.ndarray(dims, self._wire, content)
        if not self._readable(array):
            self._refuse(content, lanes)
        return (array, False) if self._shift is None else (self._shift.up(array), True)

    def _array(self, value: Any, lanes: int) -> Array:
        """Return the values of so many lanes as one array.

        Raises:
            InvalidValueError: they are none; the message names the lane.
        """
        dims = (lanes, *self._shape)
        if type(value) is np.ndarray and value.dtype == self._dtype and value.shape == dims:
            return value if self._fits(value) else self._one_by_one(value, lanes)
        if type(value) is Tensor:
            value = value.__array__()
        elif type(value) is np.ndarray and value.dtype == object:
            value = value.tolist()
        elif isinstance(value, Mapping):
            mapping: object = cast("object", value)
            raise invalid(self._path, f"must be {lanes} lanes, not the mapping {shown(mapping)}")
        try:
            given = len(value)
        except TypeError as error:
            raise invalid(self._path, f"must be {lanes} lanes, not {shown(value)}") from error
        if given != lanes:
            raise wrong_lanes(given, lanes, self._path)
        try:
            array = as_array(self._whole(value, dims), self._dtype, dims, self._path)
        except InvalidValueError:
            return self._one_by_one(value, lanes)
        return array if self._fits(array) else self._one_by_one(value, lanes)

    def _whole(self, value: Any, dims: tuple[int, ...]) -> Any:
        """Return lanes as one array where numpy sees one, else as they are."""
        dtype, shape = self._dtype, self._shape
        if isinstance(value, LISTS):
            lanes = cast("Sequence[Any]", value)
            if lanes and all(
                type(lane) is np.ndarray and lane.dtype == dtype and lane.shape == shape
                for lane in lanes
            ):
                return np.stack(lanes)
        elif (array := as_anything(value, self._path)).shape != dims:
            # One element for each lane may come with a dimension of its own, or without.
            loose = math.prod(shape) == 1 and array.size == dims[0]
            return array.reshape(dims) if loose and array.ndim <= 1 + len(dims) else array
        return cast("Any", value)

    def _one_by_one(self, value: Any, lanes: int) -> Array:
        """Return lanes that are odd one by one, or raise the error about the first wrong one."""
        content = bytearray().join([self._one(value[lane], lane) for lane in range(lanes)])
        array = np.frombuffer(content, self._wire).reshape(lanes, *self._shape)
        return array if self._shift is None else self._shift.up(array)

    def _one(self, value: Any, lane: int) -> Buffer:
        try:
            return self._leaf.write(value)
        except InvalidValueError as error:
            raise in_lane(error, lane) from error

    def _refuse(self, content: Buffer, lanes: int) -> NoReturn:
        """Raise the error about the first lane whose bytes are no value."""
        size = self._lane_size
        for lane in range(lanes):
            try:
                self._leaf.read(bytes(content[lane * size : (lane + 1) * size]))
            except InvalidValueError as error:
                raise in_lane(error, lane) from error
        raise invalid(self._path, "holds what its space does not")


class _BodyColumn:
    """Lanes of unforeseeable length, as a tuple."""

    def __init__(self, space: Space, path: str, backend: Backend, strict_nan: bool) -> None:
        body = compile_body(space, path, backend, strict_nan)
        self._path, self._body = path, body
        self.size: int | None = None

    def write(self, value: Any, lanes: int) -> Buffer:
        return write_slab(self._each(self._body.write, self._items(value, lanes)))

    def read(self, content: Buffer, lanes: int) -> Any:
        return tuple(self._each(self._body.read, read_slab(content, lanes, self._path)))

    def own(self, content: Buffer, lanes: int) -> Any:
        return tuple(self._each(self._body.own, read_slab(content, lanes, self._path)))

    def split(self, value: Any, lanes: int) -> list[Any]:
        return list(self._items(value, lanes))

    def join(self, values: Sequence[Any]) -> Any:
        return tuple(values)

    def _items(self, value: Any, lanes: int) -> Sequence[Any]:
        if type(value) is np.ndarray and value.ndim == 1:
            value = value.tolist()
        if not isinstance(value, LISTS):
            raise invalid(self._path, f"must be a tuple of {lanes} lanes, not {shown(value)}")
        items = cast("Sequence[Any]", value)
        if len(items) != lanes:
            raise wrong_lanes(len(items), lanes, self._path)
        return items

    def _each(self, convert: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        done: list[Any] = []
        for item in items:
            try:
                done.append(convert(item))
            except InvalidValueError as error:
                raise in_lane(error, len(done)) from error
        return done


def wrong_lanes(given: int, lanes: int, path: str) -> InvalidValueError:
    """Return the error about a value of too many or too few lanes."""
    return invalid(path, f"has {given} lanes; it must have {lanes}")


def in_lane(error: InvalidValueError, lane: int) -> InvalidValueError:
    """Return the error, its message with the lane that it is about."""
    return InvalidValueError(f"in lane {lane}, {error.message}", path=error.path)


def _anything(array: Array) -> bool:
    return True


def _no_nan(array: Array) -> bool:
    return not bool(np.isnan(array).any())


def _between(least: Any, last: Any) -> _Fits:
    if np.ndim(least) == np.ndim(last) == 0:
        # Python's numbers are exact, whatever the array's type.
        low, high = int(least), int(last)

        def fits_all(array: Array) -> bool:
            return array.size == 0 or (low <= int(array.min()) and int(array.max()) <= high)

        return fits_all

    def fits(array: Array) -> bool:
        return bool(((array >= least) & (array <= last)).all())

    return fits
