"""One short digest for each observation, by which a replay knows it again."""

from __future__ import annotations

import struct
import sys
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, cast

import numpy as np

from rlmesh.backends.host import host

DIGEST_BYTES: Final = 16
"""Bytes of a digest: half of a SHA-256, which no accident gives twice."""

_BIG_ENDIAN: Final = sys.byteorder == "big"


def digest_of(value: object) -> bytes:
    """Return the digest of an observation, the same for every framework and container type.

    Arrays count by element type, shape and bytes in C order; numbers, and arrays without
    dimensions, by their value; mappings in the order of their keys; tuples as lists.
    """
    if type(value) is np.ndarray and value.ndim:
        # What most observations are; the general way would cost three times as much.
        array: np.ndarray[Any, Any] = value
        dtype = array.dtype
        if dtype.isnative and not _BIG_ENDIAN:
            content = _head(dtype, array.shape) + array.tobytes()
        else:
            content = _array_parts(array)
        return sha256(content).digest()[:DIGEST_BYTES]
    parts: list[bytes] = []
    _add(value, parts)
    return sha256(b"".join(parts)).digest()[:DIGEST_BYTES]


@lru_cache(maxsize=256)
def _head(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:  # Any: of any type
    return f"a{dtype.str}{shape}".encode()


def _array_parts(array: np.ndarray[Any, Any]) -> bytes:  # Any: of any shape and type
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return _head(little.dtype, array.shape) + little.tobytes()


def _add(value: object, parts: list[bytes]) -> None:
    own = _plain(value)
    match own:
        case None | bool() | int() | float() | str() | bytes():
            parts.append(_simple(own))
        case np.ndarray():
            parts.append(_array_parts(own))
        case Mapping():
            entries = cast("Mapping[object, object]", own)
            keys = sorted(entries, key=str)
            parts.append(f"d{len(keys)};".encode())
            for key in keys:
                _add(str(key), parts)
                _add(entries[key], parts)
        case list() | tuple():
            items = cast("list[object]", own)
            parts.append(f"l{len(items)};".encode())
            for item in items:
                _add(item, parts)
        case _:
            _add(repr(own), parts)


def _simple(value: bool | int | float | str | bytes | None) -> bytes:
    match value:
        case None:
            return b"n"
        case bool():
            return b"b1" if value else b"b0"
        case int():
            return f"i{value};".encode()
        case float():
            return b"f" + struct.pack("<d", value)
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return f"s{len(text)};".encode() + text
        case bytes():
            return f"y{len(value)};".encode() + value


def _plain(value: object) -> object:
    """A number as Python's own, an array as NumPy's; containers as they are."""
    if value is None or isinstance(
        value, bool | int | float | str | bytes | Mapping | list | tuple
    ):
        return cast("object", value)
    found = host(value)
    if hasattr(found, "__array__"):
        array: np.ndarray[Any, Any] = np.asarray(found)
        return array if array.ndim else cast("object", array.item())
    return found
