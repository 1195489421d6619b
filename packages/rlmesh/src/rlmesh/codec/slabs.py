"""Bodies of unequal length in one leaf: a count, as many byte lengths, then the bodies."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from rlmesh.spaces.coerce import invalid
from rlmesh.values import Buffer

_COUNT: Final = struct.Struct("<Q")
_ONE: Final = struct.Struct("<QQ")
SLAB_OF_ONE: Final = _ONE.size
"""Bytes before the body of a slab of one."""


def write_one(body: Buffer) -> bytes:
    """Return the slab of one body."""
    return _ONE.pack(1, len(body)) + body


def write_slab(bodies: Sequence[Buffer]) -> bytes:
    """Return the slab of several bodies."""
    lengths = struct.pack(f"<Q{len(bodies)}Q", len(bodies), *map(len, bodies))
    return b"".join((lengths, *bodies))


def read_one(content: Buffer, path: str) -> Buffer:
    """Return the body of a slab of one.

    Raises:
        InvalidValueError: it is no such slab.
    """
    if len(content) < _ONE.size or _ONE.unpack_from(content) != (1, len(content) - _ONE.size):
        return read_slab(content, 1, path)[0]
    return content[_ONE.size :]


def read_slab(content: Buffer, lanes: int, path: str) -> list[Buffer]:
    """Return the bodies of a slab of so many.

    Raises:
        InvalidValueError: it is no such slab.
    """
    header = _COUNT.size * (1 + lanes)
    if len(content) < header:
        raise invalid(path, f"ends after {len(content)} bytes, within its header of {header}")
    count, *lengths = struct.unpack_from(f"<Q{lanes}Q", content)
    if count != lanes:
        raise invalid(path, f"holds {count} bodies for {lanes} lanes")
    if sum(lengths) != len(content) - header:
        raise invalid(path, f"announces {sum(lengths)} bytes and holds {len(content) - header}")
    bodies: list[Buffer] = []
    at = header
    for length in lengths:
        bodies.append(content[at : at + length])
        at += length
    return bodies


def write_leaves(leaves: Sequence[Buffer]) -> list[Buffer]:
    """Return the parts of a body that holds leaves: each after its length."""
    parts: list[Buffer] = []
    for leaf in leaves:
        parts += (_COUNT.pack(len(leaf)), leaf)
    return parts


def read_leaves(body: Buffer, at: int, count: int, path: str) -> tuple[list[Buffer], int]:
    """Return so many leaves of a body, from an offset on, and the offset after them.

    Raises:
        InvalidValueError: the body ends before they do.
    """
    leaves: list[Buffer] = []
    for _ in range(count):
        end = at + _COUNT.size
        if end > len(body):
            raise invalid(path, f"ends after {len(body)} bytes, within a length")
        at, end = end, end + _COUNT.unpack_from(body, at)[0]
        if end > len(body):
            raise invalid(path, f"ends after {len(body)} bytes, within a leaf")
        leaves.append(body[at:end])
        at = end
    return leaves, at
