"""Tables of records: plain ones, and large ones of which each episode copies what it looks at."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final

# See `state.Json`.
Record = dict[str, Any]
Table = MutableMapping[str, Record]
LARGE: Final = 64
"""From how many rows on copying them all at each episode costs more than copying single ones."""


class Kept:
    """The rows of a large table as they are when an episode begins; nobody changes them."""

    __slots__ = ("blobs", "rows")

    def __init__(self, rows: Mapping[str, Record]) -> None:
        self.rows: Mapping[str, Record] = {key: _copy(row) for key, row in rows.items()}
        self.blobs: Mapping[str, bytes] = {key: marshal.dumps(row) for key, row in rows.items()}


class Copied(MutableMapping[str, Record]):
    """An episode's own large table: a row is copied when it is asked for the first time.

    Its order is that of a dict: the kept rows, then those that were added.
    """

    __slots__ = ("_gone", "_kept", "_own")

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._own: dict[str, Record] = {}
        self._gone: set[str] = set()

    def __getitem__(self, key: str) -> Record:
        row = self._own.get(key)
        if row is None:
            if key in self._gone:
                raise KeyError(key)
            row = self._own[key] = marshal.loads(self._kept.blobs[key])
        return row

    def __setitem__(self, key: str, row: Record) -> None:
        if key in self._gone:
            raise ValueError(f"row {key!r} was deleted, and its place in the order is gone")
        self._own[key] = row

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._own.pop(key, None)
        if key in self._kept.rows:
            self._gone.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self._own or (key in self._kept.rows and key not in self._gone)

    def __iter__(self) -> Iterator[str]:
        kept = self._kept.rows
        added = [key for key in self._own if key not in kept]
        if not self._gone and not added:
            return iter(kept)
        return iter([*(key for key in kept if key not in self._gone), *added])

    def __len__(self) -> int:
        kept = self._kept.rows
        return len(kept) - len(self._gone) + sum(key not in kept for key in self._own)

    def seen(self) -> Iterable[Record]:
        """The rows in their order, without copying any."""
        own, kept = self._own, self._kept.rows
        if not own and not self._gone:
            return kept.values()
        return (own[key] if key in own else kept[key] for key in self)


def seen(table: Table) -> Iterable[Record]:
    """The rows of a table for reading only: whoever changes one would change other episodes."""
    return table.seen() if isinstance(table, Copied) else table.values()


def _copy(row: Record) -> Record:
    copied: Record = marshal.loads(marshal.dumps(row))
    return copied
