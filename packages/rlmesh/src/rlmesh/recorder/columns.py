"""Values of every step as columns: an array for each leaf, while their form stays the same."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast
from urllib.parse import quote

import numpy as np

from rlmesh.backends.host import host
from rlmesh.recorder.spool import KEPT, Spool
from rlmesh.recorder.tagged import from_tagged, to_tagged

Json = dict[str, Any]  # Any: JSON
Array = np.ndarray[Any, Any]  # Any: of any shape and type

_NUMBERS: Final[Mapping[type, str]] = {bool: "|b1", int: "<i8", float: "<f8"}
_PACK: Final[Mapping[type, Callable[[Any], bytes]]] = {
    bool: struct.Struct("<?").pack,
    int: struct.Struct("<q").pack,
    float: struct.Struct("<d").pack,
}


class FormChanged(Exception):
    """A value does not have the form of those before it; a signal inside this room."""


@dataclass(frozen=True, slots=True)
class Member:
    """One array of a trajectory file: a row for each step, in a spool."""

    name: str
    dtype: np.dtype[Any]  # Any: of any type
    shape: tuple[int, ...]
    spool: Spool

    @property
    def row_bytes(self) -> int:
        """How many bytes a row has."""
        size = self.dtype.itemsize
        for side in self.shape:
            size *= side
        return size

    def rows(self, count: int) -> Iterator[Array]:
        """Yield the first `count` rows."""
        if not self.row_bytes:
            for _ in range(count):
                yield np.zeros(self.shape, self.dtype)
            return
        for _, block in zip(range(count), self.spool.blocks(self.row_bytes), strict=False):
            yield np.frombuffer(block, self.dtype).reshape(self.shape)


class Column(Protocol):
    """Where values of one form go."""

    def add(self, value: object) -> None:
        """Append a value; raises FormChanged for one of another form."""
        ...

    def members(self) -> Iterator[Member]:
        """Yield the arrays of which it consists."""
        ...

    def layout(self) -> Json:
        """Return how a reader makes values of its arrays."""
        ...

    def values(self, count: int) -> Iterator[object]:
        """Yield the first `count` values again."""
        ...


class ValueColumn:
    """Values of whatever form the first one has; when one differs, all of them become tagged JSON.

    Args:
        name: how its arrays are called.
        folder: where what does not fit into memory goes.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.count = 0
        self._folder = folder
        self._column: Column | None = None

    def add(self, value: object) -> None:
        """Append a value.

        Raises:
            OSError: the disk does not take it.
        """
        column = self._column
        if column is None:
            column = self._column = _column_for(value, self.name, self._folder)
        try:
            column.add(value)
        except FormChanged:
            tagged = _Tagged(self.name, self._folder)
            for earlier in column.values(self.count):
                tagged.add(earlier)
            tagged.add(value)
            self.close()
            self._column = tagged
        self.count += 1

    def members(self) -> list[Member]:
        """Return the arrays of which the column consists."""
        return [] if self._column is None else list(self._column.members())

    def layout(self) -> Json | None:
        """Return how a reader makes values of these arrays; None where there is no value."""
        return None if self._column is None else self._column.layout()

    def values(self) -> Iterator[object]:
        """Yield every value again."""
        return iter(()) if self._column is None else self._column.values(self.count)

    def close(self) -> None:
        """Let go of memory and files."""
        for member in self.members():
            member.spool.close()


class _Arrays:
    """Arrays, or NumPy's scalars, of one type and shape."""

    def __init__(self, name: str, folder: Path, first: Array, *, scalar: bool) -> None:
        self._member = Member(name, first.dtype, first.shape, Spool(folder))
        self._scalar = scalar

    def add(self, value: object) -> None:
        found = value if type(value) is np.ndarray else _array_in(value)
        member = self._member
        if found is None or found.dtype != member.dtype or found.shape != member.shape:
            raise FormChanged
        if isinstance(value, np.generic) is not self._scalar:
            raise FormChanged
        member.spool.write(found.tobytes())

    def members(self) -> Iterator[Member]:
        yield self._member

    def layout(self) -> Json:
        kind = "scalar" if self._scalar else "array"
        return {"kind": kind, "member": self._member.name}

    def values(self, count: int) -> Iterator[object]:
        for row in self._member.rows(count):
            yield cast("object", row[()]) if self._scalar else row


class _Numbers:
    """Python's own numbers of one type."""

    def __init__(self, name: str, folder: Path, kind: type) -> None:
        self._kind = kind
        self._pack = _PACK[kind]
        self._member = Member(name, np.dtype(_NUMBERS[kind]), (), Spool(folder))

    def add(self, value: object) -> None:
        if type(value) is not self._kind:
            raise FormChanged
        try:
            self._member.spool.write(self._pack(value))
        except struct.error as error:  # an integer beyond 64 bits
            raise FormChanged from error

    def members(self) -> Iterator[Member]:
        yield self._member

    def layout(self) -> Json:
        return {"kind": "number", "member": self._member.name}

    def values(self, count: int) -> Iterator[object]:
        for row in self._member.rows(count):
            yield cast("object", row.item())


class _Mapping:
    """Dictionaries with the same keys."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    def add(self, value: object) -> None:
        columns = self._columns
        if not isinstance(value, Mapping):
            raise FormChanged
        entries = cast("Mapping[str, object]", value)
        if len(entries) != len(columns):
            raise FormChanged
        for key, column in columns.items():
            if key not in entries:
                raise FormChanged
            column.add(entries[key])

    def members(self) -> Iterator[Member]:
        for column in self._columns.values():
            yield from column.members()

    def layout(self) -> Json:
        items = [[key, column.layout()] for key, column in self._columns.items()]
        return {"kind": "dict", "items": items}

    def values(self, count: int) -> Iterator[object]:
        parts = {key: column.values(count) for key, column in self._columns.items()}
        for _ in range(count):
            yield {key: next(part) for key, part in parts.items()}


class _Items:
    """Tuples or lists of the same length."""

    def __init__(self, kind: type[tuple[object, ...]] | type[list[object]], columns: list[Column]):
        self._kind = kind
        self._columns = columns

    def add(self, value: object) -> None:
        if type(value) is not self._kind or len(value) != len(self._columns):
            raise FormChanged
        for column, item in zip(self._columns, value, strict=True):
            column.add(item)

    def members(self) -> Iterator[Member]:
        for column in self._columns:
            yield from column.members()

    def layout(self) -> Json:
        items = [column.layout() for column in self._columns]
        return {"kind": self._kind.__name__, "items": items}

    def values(self, count: int) -> Iterator[object]:
        parts = [column.values(count) for column in self._columns]
        for _ in range(count):
            yield self._kind(next(part) for part in parts)


class _Tagged:
    """Values of any form, each as JSON text; their ends beside them."""

    def __init__(self, name: str, folder: Path) -> None:
        self._text = Member(name, np.dtype("|u1"), (), Spool(folder))
        # In front: `x` and `x.ends` are both keys that an author may have.
        self._ends = Member(f"ends/{name}", np.dtype("<i8"), (), Spool(folder))

    def add(self, value: object) -> None:
        text = json.dumps(to_tagged(value), separators=(",", ":")).encode()
        self._text.spool.write(text)
        self._ends.spool.write(struct.pack("<q", len(self._text.spool)))

    def members(self) -> Iterator[Member]:
        yield self._text
        yield self._ends

    def layout(self) -> Json:
        return {"kind": "tagged", "member": self._text.name, "ends": self._ends.name}

    def values(self, count: int) -> Iterator[object]:
        text, start = self._text.spool.blocks(KEPT), 0
        pending = bytearray()
        for end in self._ends.rows(count):
            length = int(end) - start
            while len(pending) < length:
                pending += next(text)
            yield from_tagged(json.loads(pending[:length]))
            del pending[:length]
            start += length


def _column_for(value: object, name: str, folder: Path) -> Column:
    if _is_scalar(value):
        return _Arrays(name, folder, np.asarray(cast("Any", value)), scalar=True)
    if type(value) in _NUMBERS:
        return _Numbers(name, folder, type(value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        if entries and all(isinstance(key, str) for key in entries):
            return _Mapping(
                {
                    cast("str", key): _column_for(
                        item, f"{name}/{quote(str(key), safe='')}", folder
                    )
                    for key, item in entries.items()
                }
            )
        return _Tagged(name, folder)
    if type(value) in (tuple, list) and len(cast("Sequence[object]", value)):
        items = cast("Sequence[object]", value)
        columns = [_column_for(item, f"{name}/{at}", folder) for at, item in enumerate(items)]
        return _Items(cast("type[list[object]]", type(value)), columns)
    array = _array_in(value)
    if array is None:
        return _Tagged(name, folder)
    return _Arrays(name, folder, array, scalar=False)


def _is_scalar(value: object) -> bool:
    return isinstance(value, np.generic)


def _array_in(value: object) -> Array | None:
    """The value as an array, where it is one of any framework, or a scalar of NumPy's."""
    if _is_scalar(value):  # NumPy's float64 is a float as well
        return np.asarray(cast("Any", value))
    if isinstance(value, str | bytes | bool | int | float | Mapping | list | tuple):
        return None
    found = host(value)
    if not hasattr(found, "__array__"):
        return None
    array: Array = np.asarray(found)
    return array if array.dtype.kind in "biufc" else None
