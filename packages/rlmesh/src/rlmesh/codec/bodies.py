"""Values whose bytes have no fixed number: each is a body of its own within its leaf."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final

from rlmesh.spaces import Space, Text
from rlmesh.spaces.coerce import as_text, invalid
from rlmesh.spaces.space import UnsupportedSpaceError
from rlmesh.values import Backend, Buffer

USUAL_TEXT: Final = 1024


@dataclass(frozen=True, slots=True)
class Body:
    """How a value of unforeseeable length is written and read."""

    usual: int  # bytes that a value usually takes
    write: Callable[[Any], Buffer]  # Any, here and below: what users pass and what backends make
    read: Callable[[Buffer], Any]
    own: Callable[[Buffer], Any]  # reads memory that belongs to the value from now on


@singledispatch
def compile_body(space: Space, path: str, backend: Backend, strict_nan: bool) -> Body:
    """Return what writes and reads values of a space without a fixed size."""
    raise UnsupportedSpaceError(f"{space!r} at {path} has no form on the wire")


@compile_body.register
def _(space: Text, path: str, backend: Backend, strict_nan: bool) -> Body:
    def write(value: Any) -> bytes:
        return as_text(value, path).encode()

    def read(body: Buffer) -> str:
        try:
            return str(body, "utf-8")
        except UnicodeDecodeError as error:
            raise invalid(path, "is not UTF-8") from error

    return Body(min(space.max_length, USUAL_TEXT), write, read, read)
