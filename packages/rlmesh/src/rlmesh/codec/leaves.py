"""One leaf of a value as bytes: everything about its space is settled when it is compiled."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.bodies import compile_body
from rlmesh.codec.slabs import SLAB_OF_ONE, read_one, write_one
from rlmesh.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space
from rlmesh.spaces.coerce import as_array, as_integer, invalid
from rlmesh.spaces.multi import flags_of
from rlmesh.values import DTYPES, Array, Backend, Buffer

PACKED: Final = {
    "int8": "<b",
    "int16": "<h",
    "int32": "<i",
    "int64": "<q",
    "uint8": "<B",
    "uint16": "<H",
    "uint32": "<I",
    "uint64": "<Q",
}
FEW: Final = 16
SMALL: Final = 8192  # bytes; below it, a copy costs less than a view, and pins no memory


@dataclass(frozen=True, slots=True)
class Leaf:
    """How one leaf of one lane is written and read."""

    size: int | None  # bytes; None where they depend on the value
    usual: int  # bytes that a value usually takes
    write: Callable[[Any], Buffer]  # Any, here and below: what users pass and what backends make
    read: Callable[[Buffer], Any]
    own: Callable[[Buffer], Any]  # reads memory that belongs to the value from now on


@singledispatch
def compile_leaf(space: Space, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    """Return what writes and reads values of a space that is no container."""
    body = compile_body(space, path, backend, strict_nan)
    write_body, read_body, own_body = body.write, body.read, body.own

    def write(value: Any) -> Buffer:
        return write_one(write_body(value))

    def read(content: Buffer) -> Any:
        return read_body(read_one(content, path))

    def own(content: Buffer) -> Any:
        return own_body(read_one(content, path))

    return Leaf(None, SLAB_OF_ONE + body.usual, write, read, own)


@compile_leaf.register
def _(space: Box, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    dtype, shape = DTYPES[space.dtype], tuple(space.shape)
    size = dtype.itemsize * math.prod(shape)
    guarded = strict_nan and dtype.kind == "f"
    write = _box_writer(dtype, shape, path, guarded=guarded, small=size <= SMALL)
    array_type, copied, owned = np.ndarray, backend.leaf, backend.owned

    def read(content: Buffer) -> Any:
        if len(content) != size:
            raise wrong_length(content, size, path)
        array: Array = array_type(shape, dtype, content)
        if guarded:
            refuse_nan(array, path)
        return copied(array)

    def own(content: Buffer) -> Any:
        if len(content) != size:
            raise wrong_length(content, size, path)
        array: Array = array_type(shape, dtype, content)
        if guarded:
            refuse_nan(array, path)
        return owned(array) if array.flags.aligned else copied(array)

    if dtype.kind == "b":
        flags = _flags_reader(shape, dtype, path, backend)
        return Leaf(size, size, write, flags, flags)
    return Leaf(size, size, write, read, read if size <= SMALL else own)


def _box_writer(
    dtype: np.dtype[Any], shape: tuple[int, ...], path: str, *, guarded: bool, small: bool
) -> Callable[[Any], Buffer]:
    array_type = np.ndarray

    def write(value: Any) -> Buffer:
        if type(value) is not array_type or value.dtype != dtype or value.shape != shape:
            value = as_array(value, dtype, shape, path)
        if guarded:
            refuse_nan(value, path)
        if small:
            content: bytes = value.tobytes()
            return content
        return view_of(value)

    return write


def _flags_reader(
    shape: tuple[int, ...], dtype: np.dtype[Any], path: str, backend: Backend
) -> Callable[[Buffer], Any]:
    size, over, owned = math.prod(shape), DTYPES["uint8"], backend.owned

    def read(content: Buffer) -> Any:
        if len(content) != size:
            raise wrong_length(content, size, path)
        # Any byte but zero reads as one, as the protocol wants.
        flags = np.asarray(np.ndarray(shape, over, content) != 0)
        return owned(flags.view(dtype))

    return read


@compile_leaf.register
def _(space: Discrete, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    packed = struct.Struct(PACKED[space.wire_dtype])
    pack, unpack, size = packed.pack, packed.unpack, packed.size
    start, stop = space.start, space.start + space.n

    def write(value: Any) -> bytes:
        if type(value) is not int:
            value = as_integer(value, path)
        if not start <= value < stop:
            raise space.outside(value, path)
        return pack(value)

    def read(content: Buffer) -> int:
        if len(content) != size:
            raise wrong_length(content, size, path)
        value: int = unpack(content)[0]
        if not start <= value < stop:
            raise space.outside(value, path)
        return value

    return Leaf(size, size, write, read, read)


@compile_leaf.register
def _(space: MultiBinary, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    shape = tuple(space.shape)
    read = _flags_reader(shape, DTYPES[space.value_dtype], path, backend)
    empty = 0 in shape

    def write(value: Any) -> bytes:
        array = flags_of(value, shape, path)
        if not empty and array.max() > 1:
            array = space.array(value, path)  # which says what is wrong
        return array.tobytes()

    return Leaf(math.prod(shape), math.prod(shape), write, read, read)


@compile_leaf.register
def _(space: MultiDiscrete, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    values, wire, shape = DTYPES[space.dtype], DTYPES[space.wire_dtype], tuple(space.shape)
    copied, owned = backend.leaf, backend.owned
    size = wire.itemsize * math.prod(shape)
    shift = Shift.of(space)
    categories = MultiDiscrete(space.nvec, space.wire_dtype)
    least, last = (ends.astype(values) for ends in (space.start, space.start + (space.nvec - 1)))
    most = (space.nvec - 1).astype(wire)

    def write(value: Any) -> bytes:
        array = as_array(value, values, shape, path)
        if ((array < least) | (array > last)).any():
            array = space.array(value, path)  # which says what is wrong
        return array.tobytes() if shift is None else shift.down(array).tobytes()

    def read(content: Buffer) -> Any:
        if len(content) != size:
            raise wrong_length(content, size, path)
        array: Array = np.ndarray(shape, wire, content)
        if ((array < 0) | (array > most)).any():
            array = categories.array(array, path)
        return copied(array) if shift is None else owned(shift.up(array))

    return Leaf(size, size, write, read, read)


@dataclass(frozen=True, slots=True)
class Shift:
    """From values of an environment's own type and first value to what travels, and back."""

    start: Array | np.int64  # 64 bits, like the sums: they wrap around, and back
    values: np.dtype[Any]
    wire: np.dtype[Any]

    @staticmethod
    def of(space: MultiDiscrete | Discrete) -> Shift | None:
        """Return what a space needs, or None where values travel as they are."""
        values, wire = DTYPES[space.value_dtype], DTYPES[space.wire_dtype]
        start = np.int64(0) if isinstance(space, Discrete) else space.start
        return Shift(start, values, wire) if start.any() or values != wire else None

    def down(self, array: Array) -> Array:
        """Return what travels for values."""
        return np.asarray(array.astype(np.int64) - self.start).astype(self.wire)

    def up(self, array: Array) -> Array:
        """Return the values of what travelled."""
        return np.asarray(array.astype(np.int64) + self.start).astype(self.values)


def view_of(array: Array) -> Buffer:
    """Return the bytes of a little-endian array of at least one, not copied if in C order."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return memoryview(cast("bytes", array)).cast("B")


def wrong_length(content: Buffer, size: int, path: str) -> InvalidValueError:
    """Return the error about a leaf with too many or too few bytes."""
    return invalid(path, f"came as {len(content)} bytes; its space takes {size}")


def refuse_nan(array: Array, path: str) -> None:
    """Do nothing for an array without NaN.

    Raises:
        InvalidValueError: there is one.
    """
    # Numbers of Python are quicker than numpy where there are few.
    few = array.size <= FEW
    if any(x != x for x in array.ravel().tolist()) if few else np.isnan(array).any():
        raise invalid(path, "holds NaN")
