"""Values of many lanes to bytes and back, all lanes at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rlmesh.codec.branches import Branch, DictBranch, LeafBranch, TupleBranch
from rlmesh.codec.codec import sizes_of
from rlmesh.codec.columns import Column, compile_column
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.coerce import invalid
from rlmesh.values import Backend, Buffer

# Any, in this room: what users pass, and what backends make.


class BatchCodec:
    """Writes and reads the values of many lanes of one space; made by `compile_batch_codec`.

    What it reads is a *batched tree*: the space's dictionaries and tuples, holding for all lanes
    together

    - an array `[lanes, *shape]` for Box, MultiBinary and MultiDiscrete spaces,
    - an integer array `[lanes]` for Discrete spaces (a list of integers from the native backend),
    - a tuple with one value for each lane for Text, Sequence, Graph and OneOf spaces.

    What it writes may be such a tree, or a list, tuple or array with one value for each lane, at
    the top or at any place of the tree. A tuple that could be both, because a Tuple space has as
    many items as there are lanes, is taken as the tree; a list as the lanes.

    Attributes:
        space: the space of one lane.
        backend: what arrays become.
        leaf_count: how many entries of bytes a value takes.
        fixed_sizes: the bytes of each entry for one lane; None when they depend on the value.
    """

    __slots__ = ("_columns", "_root", "backend", "fixed_sizes", "leaf_count", "space")

    def __init__(self, space: Space, backend: Backend, strict_nan: bool, path: str = "$") -> None:
        self.space: Final = space
        self.backend: Final = backend
        self._columns: list[Column] = []
        self._root = self._compile(space, path, strict_nan)
        self.leaf_count: Final = len(self._columns)
        self.fixed_sizes: Final = sizes_of(column.size for column in self._columns)

    def encode(self, value: Any, lanes: int) -> list[Buffer]:
        """Return the leaves of so many lanes.

        A large array is not copied: its leaf is a view of its memory, which is good until that
        memory changes. Whoever needs `bytes` makes them.

        Raises:
            InvalidValueError: the value is not so many of the space; `path` says where, and the
                message in which lane.
        """
        leaves: list[Buffer] = []
        self._root.put(value, leaves, lanes)
        return leaves

    def decode(self, leaves: Sequence[Buffer], lanes: int) -> Any:
        """Return the batched tree of so many lanes; it keeps no memory but immutable bytes.

        Raises:
            InvalidValueError: the bytes are no such values; `path` says where.
        """
        self._check_count(leaves)
        return self._root.take(leaves, lanes, owned=False)

    def decode_owned(self, leaves: Sequence[Buffer], lanes: int) -> Any:
        """Return the batched tree of so many lanes, large arrays over the memory of the leaves.

        That memory belongs to the value from now on: it must be writable, fresh, and nobody else's.

        Raises:
            InvalidValueError: the bytes are no such values; `path` says where.
        """
        self._check_count(leaves)
        return self._root.take(leaves, lanes, owned=True)

    def split(self, value: Any, lanes: int) -> list[Any]:
        """Return the value of each lane of a batched tree; arrays are views of the tree's.

        Raises:
            InvalidValueError: the tree has another number of lanes.
        """
        return self._root.split(value, lanes)

    def join(self, values: Sequence[Any]) -> Any:
        """Return the batched tree of the lanes' values, in memory of its own.

        Raises:
            InvalidValueError: a value is not of the space; the message says in which lane.
        """
        return self._root.join(values)

    def __repr__(self) -> str:
        return f"BatchCodec({self.space!r}, backend={self.backend.name})"

    def _compile(self, space: Space, path: str, strict_nan: bool) -> Branch:
        if isinstance(space, Dict):
            named = {
                key: self._compile(child, f"{path}.{key}", strict_nan)
                for key, child in space.items()
            }
            return DictBranch(named, path)
        if isinstance(space, Tuple):
            numbered = [
                self._compile(child, f"{path}[{index}]", strict_nan)
                for index, child in enumerate(space)
            ]
            return TupleBranch(numbered, path)
        self._columns.append(compile_column(space, path, self.backend, strict_nan))
        return LeafBranch(len(self._columns) - 1, self._columns[-1])

    def _check_count(self, leaves: Sequence[Buffer]) -> None:
        if len(leaves) != self.leaf_count:
            raise invalid("$", f"came as {len(leaves)} leaves; its space has {self.leaf_count}")


def compile_batch_codec(space: Space, *, backend: Backend, strict_nan: bool = False) -> BatchCodec:
    """Return the codec of many lanes of a space.

    Args:
        space: what the values of one lane are of.
        backend: what decoded arrays become.
        strict_nan: refuse NaN, both ways.

    Raises:
        UnsupportedSpaceError: a leaf of the space has no form on the wire.
    """
    return BatchCodec(space, backend, strict_nan)
