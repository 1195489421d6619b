"""One leaf of a value as bytes: everything about its space is settled when it is compiled."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final

import numpy as np
from rlcore import InvalidValueError

from rlmesh.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Space, Text
from rlmesh.spaces.coerce import as_array, as_integer, as_text, invalid
from rlmesh.spaces.space import UnsupportedSpaceError
from rlmesh.values import DTYPES, Array, Backend

_PACKED: Final = {
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
_COUNT: Final = struct.Struct("<Q")
_ONE_TEXT: Final = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Leaf:
    """How one leaf is written and read, for one lane; and how lanes share the bytes."""

    size: int  # bytes that one lane usually takes
    write: Callable[[Any], bytes]  # Any, here and below: what users pass and what backends make
    read: Callable[[bytes], Any]
    join: Callable[[Sequence[bytes]], bytes]
    split: Callable[[bytes, int], list[bytes]]


@singledispatch
def compile_leaf(space: Space, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    """Return what writes and reads values of a space that is no container."""
    raise UnsupportedSpaceError(f"{space!r} at {path} has no form on the wire")


@compile_leaf.register
def _(space: Box, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    dtype, shape = DTYPES[space.dtype], tuple(space.shape)
    size = dtype.itemsize * math.prod(shape)
    array_type, over, made = np.ndarray, DTYPES["uint8"], backend.leaf
    guarded = strict_nan and dtype.kind == "f"

    def write(value: Any) -> bytes:
        if type(value) is not array_type or value.dtype != dtype or value.shape != shape:
            value = as_array(value, dtype, shape, path)
        if guarded:
            _refuse_nan(value, path)
        content: bytes = value.tobytes()
        return content

    def read(content: bytes) -> Any:
        if len(content) != size:
            raise _wrong_length(content, size, path)
        array: Array = array_type(shape, dtype, content)
        if guarded:
            _refuse_nan(array, path)
        return made(array)

    def read_flags(content: bytes) -> Any:
        if len(content) != size:
            raise _wrong_length(content, size, path)
        return made(np.asarray(array_type(shape, over, content) != 0))

    return _fixed(size, path, write, read_flags if dtype.kind == "b" else read)


@compile_leaf.register
def _(space: Discrete, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    packed = struct.Struct(_PACKED[space.dtype])
    pack, unpack, size = packed.pack, packed.unpack, packed.size
    start, stop = space.start, space.start + space.n

    def write(value: Any) -> bytes:
        if type(value) is not int:
            value = as_integer(value, path)
        if not start <= value < stop:
            raise space.outside(value, path)
        return pack(value)

    def read(content: bytes) -> int:
        if len(content) != size:
            raise _wrong_length(content, size, path)
        value: int = unpack(content)[0]
        if not start <= value < stop:
            raise space.outside(value, path)
        return value

    return _fixed(size, path, write, read)


@compile_leaf.register
def _(space: MultiBinary, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    shape, dtype, made = tuple(space.shape), DTYPES["uint8"], backend.leaf
    size = math.prod(shape)

    def write(value: Any) -> bytes:
        return space.array(value, path).tobytes()

    def read(content: bytes) -> Any:
        if len(content) != size:
            raise _wrong_length(content, size, path)
        # Any byte but zero reads as one, as the protocol wants.
        flags = np.asarray(np.ndarray(shape, dtype, content) != 0)
        return made(flags.view(dtype))

    return _fixed(size, path, write, read)


@compile_leaf.register
def _(space: MultiDiscrete, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    dtype, shape, made = DTYPES[space.dtype], tuple(space.shape), backend.leaf
    size = dtype.itemsize * math.prod(shape)
    start = space.start.astype(dtype) if space.start.any() else None
    categories = MultiDiscrete(space.nvec, space.dtype)

    def write(value: Any) -> bytes:
        array = space.array(value, path)
        return array.tobytes() if start is None else (array - start).tobytes()

    def read(content: bytes) -> Any:
        if len(content) != size:
            raise _wrong_length(content, size, path)
        array = categories.array(np.ndarray(shape, dtype, content), path)
        return made(array if start is None else array + start)

    return _fixed(size, path, write, read)


@compile_leaf.register
def _(space: Text, path: str, backend: Backend, strict_nan: bool) -> Leaf:
    def write(value: Any) -> bytes:
        body = as_text(value, path).encode()
        return _ONE_TEXT.pack(1, len(body)) + body

    def read(content: bytes) -> str:
        body = _bodies(content, 1, path)[0]
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise invalid(path, "is not UTF-8") from error

    def join(column: Sequence[bytes]) -> bytes:
        bodies = [content[_ONE_TEXT.size :] for content in column]
        lengths = struct.pack(f"<Q{len(bodies)}Q", len(bodies), *map(len, bodies))
        return lengths + b"".join(bodies)

    def split(content: bytes, lanes: int) -> list[bytes]:
        bodies = _bodies(content, lanes, path)
        return [_ONE_TEXT.pack(1, len(body)) + body for body in bodies]

    return Leaf(_ONE_TEXT.size + min(space.max_length, 1024), write, read, join, split)


def _fixed(
    size: int, path: str, write: Callable[[Any], bytes], read: Callable[[bytes], Any]
) -> Leaf:
    def split(content: bytes, lanes: int) -> list[bytes]:
        if len(content) != lanes * size:
            raise _wrong_length(content, lanes * size, path)
        return [content[at * size : (at + 1) * size] for at in range(lanes)]

    return Leaf(size, write, read, b"".join, split)


def _bodies(content: bytes, lanes: int, path: str) -> list[bytes]:
    """Return the texts of a slab: a count, as many byte lengths, then the texts, end to end."""
    header = _COUNT.size * (1 + lanes)
    if len(content) < header:
        raise invalid(path, f"ends after {len(content)} bytes, within its header of {header}")
    count, *lengths = struct.unpack_from(f"<Q{lanes}Q", content)
    if count != lanes:
        raise invalid(path, f"holds {count} texts for {lanes} lanes")
    if sum(lengths) != len(content) - header:
        raise invalid(
            path, f"announces {sum(lengths)} bytes of text and holds {len(content) - header}"
        )
    bodies: list[bytes] = []
    at = header
    for length in lengths:
        bodies.append(content[at : at + length])
        at += length
    return bodies


def _wrong_length(content: bytes, size: int, path: str) -> InvalidValueError:
    return invalid(path, f"came as {len(content)} bytes; its space takes {size}")


def _refuse_nan(array: Array, path: str) -> None:
    # Numbers of Python are quicker than numpy where there are few.
    few = array.size <= FEW
    if any(x != x for x in array.ravel().tolist()) if few else np.isnan(array).any():
        raise invalid(path, "holds NaN")
