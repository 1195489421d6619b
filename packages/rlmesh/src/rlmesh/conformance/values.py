"""Values of environments by their content: digests to compare them, copies to show them."""

from __future__ import annotations

import copy
import hashlib
import re
import struct
from collections.abc import Mapping, Set
from typing import Any, Final, Protocol, cast

import numpy as np

from rlmesh.conformance.kinds import (
    is_array,
    is_flag,
    is_integer,
    is_mapping,
    is_number,
    is_row,
)
from rlmesh.spaces.coerce import shown
from rlmesh.values import Array, Tensor

SMALL: Final = 4096  # bytes of a value that is kept to be shown
DIGEST_BYTES: Final = 16
_ADDRESS: Final = re.compile(rb" at 0x[0-9a-fA-F]+")


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def digest(value: object) -> bytes:
    """Return bytes that are the same for values of the same content, in every process.

    Types count: 1, 1.0 and True differ, and so do arrays of different element types. Arrays of all
    frameworks count as NumPy's; an object counts by its text, without addresses.
    """
    hashed = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _feed(value, hashed)
    return hashed.digest()


def kept(value: object) -> object:
    """Return a copy of a value that is small enough to be shown later, else None."""
    if _bytes_of(value) > SMALL:
        return None
    try:
        return copy.deepcopy(value)
    except Exception:  # a foreign object may refuse to be copied; then it is not shown
        return None


def difference(one: object, other: object) -> str:
    """Return two kept values as a message tells them apart."""
    if one is None or other is None:
        return "they differ"
    return f"{shown(one)} and {shown(other)}"


def _feed(value: object, into: _Hash) -> None:
    if is_array(value):
        _feed_array(value, into)
    elif isinstance(value, Tensor):
        _feed_array(np.asarray(value), into)
    elif is_mapping(value):
        _feed_mapping(value, into)
    elif is_row(value):
        into.update(b"(%d;" % len(value))
        for item in value:
            _feed(item, into)
    elif isinstance(value, Set):
        members = sorted(digest(member) for member in cast("Set[object]", value))
        into.update(b"{%d;" % len(members) + b"".join(members))
    else:
        _feed_scalar(value, into)


def _feed_scalar(value: object, into: _Hash) -> None:
    if value is None:
        into.update(b"N")
    elif is_flag(value):
        into.update(b"T" if value else b"F")
    elif is_integer(value):
        into.update(b"i%d;" % int(value))
    elif is_number(value):
        into.update(b"f" + struct.pack("<d", value))
    elif isinstance(value, str):
        _sized(b"s", value.encode(errors="backslashreplace"), into)
    elif isinstance(value, bytes | bytearray):
        _sized(b"b", bytes(value), into)
    else:
        _feed_object(value, into)


def _feed_mapping(value: Mapping[str, object], into: _Hash) -> None:
    entries = sorted(((digest(key), child) for key, child in value.items()), key=_first)
    into.update(b"m%d;" % len(entries))
    for key, child in entries:
        into.update(key)
        _feed(child, into)


def _feed_array(array: Array, into: _Hash) -> None:
    if array.dtype.hasobject:
        into.update(b"o" + repr(array.shape).encode())
        for item in array.ravel().tolist():
            _feed(item, into)
        return
    into.update(f"a{array.dtype.str}{array.shape}".encode())
    into.update(np.ascontiguousarray(array).tobytes())


def _feed_object(value: object, into: _Hash) -> None:
    if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        try:
            _feed_array(np.asarray(cast("Any", value)), into)
        except Exception:  # an array of another device, or none at all: its text has to do
            _sized(b"r", shown(value).encode(errors="backslashreplace"), into)
        return
    _sized(b"r", _ADDRESS.sub(b"", shown(value).encode(errors="backslashreplace")), into)


def _sized(kind: bytes, content: bytes, into: _Hash) -> None:
    into.update(kind + b"%d;" % len(content) + content)


def _bytes_of(value: object) -> int:
    if isinstance(value, str | bytes | bytearray):
        return len(value)
    if is_mapping(value):
        return 8 + sum(_bytes_of(child) for child in value.values())
    if is_row(value):
        return 8 + sum(_bytes_of(child) for child in value)
    return int(getattr(value, "nbytes", 8))


def _first(entry: tuple[bytes, object]) -> bytes:
    return entry[0]
