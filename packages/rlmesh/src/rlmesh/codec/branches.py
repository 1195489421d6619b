"""The tree of a space over many lanes: what dictionaries, tuples and leaves do with all lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from rlcore import InvalidValueError

from rlmesh.codec.codec import missing
from rlmesh.codec.columns import LISTS, Column, in_lane, wrong_lanes
from rlmesh.spaces.coerce import invalid, shown
from rlmesh.values import Buffer

# Any, in this room: what users pass, and what backends make.


class Branch(Protocol):
    """One place of the tree: see `BatchCodec` for what its methods take and give."""

    def put(self, value: Any, leaves: list[Buffer], lanes: int) -> None:
        """Add the leaves of a value."""
        ...

    def take(self, leaves: Sequence[Buffer], lanes: int, owned: bool) -> Any:
        """Return the value of leaves, over their memory if that is to be the value's own."""
        ...

    def split(self, value: Any, lanes: int) -> list[Any]:
        """Return each lane's value."""
        ...

    def join(self, values: Sequence[Any]) -> Any:
        """Return the value of all lanes together."""
        ...


class LeafBranch:
    """A place with bytes."""

    def __init__(self, index: int, column: Column) -> None:
        self._index = index
        self._write, self._read, self._own = column.write, column.read, column.own
        self.split, self.join = column.split, column.join

    def put(self, value: Any, leaves: list[Buffer], lanes: int) -> None:
        """Add the leaf of a value."""
        leaves.append(self._write(value, lanes))

    def take(self, leaves: Sequence[Buffer], lanes: int, owned: bool) -> Any:
        """Return the value of the leaf."""
        return (self._own if owned else self._read)(leaves[self._index], lanes)


class DictBranch:
    """A place with named children."""

    def __init__(self, children: Mapping[str, Branch], path: str) -> None:
        self._children = list(children.items())
        self._path = path

    def put(self, value: Any, leaves: list[Buffer], lanes: int) -> None:
        """Add the leaves of a mapping of batches, or of mappings, one for each lane."""
        if not isinstance(value, Mapping) and (each := _listed(value)) is not None:
            if len(each) != lanes:
                raise wrong_lanes(len(each), lanes, self._path)
            for key, child in self._children:
                child.put(self._column(each, key), leaves, lanes)
            return
        for key, child in self._children:
            child.put(self._at(value, key), leaves, lanes)

    def take(self, leaves: Sequence[Buffer], lanes: int, owned: bool) -> dict[str, Any]:
        """Return the mapping of batches."""
        return {key: child.take(leaves, lanes, owned) for key, child in self._children}

    def split(self, value: Any, lanes: int) -> list[Any]:
        """Return a dictionary for each lane."""
        columns = [(key, child.split(self._at(value, key), lanes)) for key, child in self._children]
        return [{key: column[lane] for key, column in columns} for lane in range(lanes)]

    def join(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the mapping of batches."""
        return {key: child.join(self._column(values, key)) for key, child in self._children}

    def _column(self, values: Sequence[Any], key: str) -> list[Any]:
        column: list[Any] = []
        for value in values:
            try:
                column.append(self._at(value, key))
            except InvalidValueError as error:
                raise in_lane(error, len(column)) from error
        return column

    def _at(self, value: Any, key: str) -> Any:
        try:
            return value[key]
        except (LookupError, TypeError, ValueError) as error:
            raise missing(value, key, self._path) from error


class TupleBranch:
    """A place with numbered children."""

    def __init__(self, children: Sequence[Branch], path: str) -> None:
        self._children = list(children)
        self._arity = len(self._children)
        self._path = path

    def put(self, value: Any, leaves: list[Buffer], lanes: int) -> None:
        """Add the leaves of a tuple of batches, or of tuples, one for each lane."""
        items = _listed(value)
        if items is None:
            raise self._not_a_tuple(value)
        # Both readings fit a tuple with as many items as there are lanes; gymnasium's is the tree.
        if len(items) != self._arity or (self._arity == lanes and not isinstance(value, tuple)):
            if len(items) != lanes:
                what = f"it must have {self._arity}, or one for each of {lanes} lanes"
                raise invalid(self._path, f"has {len(items)} items; {what}")
            items = self._columns(items)
        for child, item in zip(self._children, items, strict=True):
            child.put(item, leaves, lanes)

    def take(self, leaves: Sequence[Buffer], lanes: int, owned: bool) -> tuple[Any, ...]:
        """Return the tuple of batches."""
        return tuple([child.take(leaves, lanes, owned) for child in self._children])

    def split(self, value: Any, lanes: int) -> list[Any]:
        """Return a tuple for each lane."""
        items = self._items(value)
        columns = [
            child.split(item, lanes) for child, item in zip(self._children, items, strict=True)
        ]
        return list(zip(*columns, strict=True)) if columns else [()] * lanes

    def join(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the tuple of batches."""
        columns = self._columns(values)
        joined = [child.join(column) for child, column in zip(self._children, columns, strict=True)]
        return tuple(joined)

    def _columns(self, values: Sequence[Any]) -> list[list[Any]]:
        rows: list[Sequence[Any]] = []
        for value in values:
            try:
                rows.append(self._items(value))
            except InvalidValueError as error:
                raise in_lane(error, len(rows)) from error
        return [[row[index] for row in rows] for index in range(self._arity)]

    def _items(self, value: Any) -> Sequence[Any]:
        if not isinstance(value, LISTS) or len(items := cast("list[Any]", value)) != self._arity:
            raise self._not_a_tuple(value)
        return items

    def _not_a_tuple(self, value: Any) -> InvalidValueError:
        return invalid(self._path, f"must be a tuple of {self._arity}, not {shown(value)}")


def _listed(value: Any) -> Sequence[Any] | None:
    """Return the items of a list, a tuple or an array of objects."""
    if isinstance(value, LISTS):
        return cast("list[Any]", value)
    if type(value) is np.ndarray and value.dtype == object and value.ndim == 1:
        return cast("list[Any]", value.tolist())
    return None
