"""Values of one space to bytes and back, compiled once so that a step asks no questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from rlcore import InvalidValueError

from rlmesh.codec.leaves import Leaf, compile_leaf
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.coerce import invalid, shown
from rlmesh.values import Backend, Buffer

_ITEMS: Final[tuple[type, ...]] = (tuple, list)

_Put = Callable[[Any, list[Buffer]], None]  # Any: what users pass
_Take = Callable[[Sequence[Buffer]], Any]  # Any: what backends make


class Codec:
    """Writes and reads the values of one space; made by `compile_codec`.

    A value becomes one entry of bytes for each of its fundamental leaves, depth first. Decoded
    values are in the backend's types; dictionaries come in the space's order.

    Attributes:
        space: the space.
        backend: what arrays become.
        leaf_count: how many entries a value takes.
        size_hint: how many bytes a value usually takes.
        fixed_sizes: the bytes of each entry; None when an entry's length depends on the value.
    """

    __slots__ = (
        "_leaves",
        "_own",
        "_put",
        "_take",
        "backend",
        "fixed_sizes",
        "leaf_count",
        "size_hint",
        "space",
    )

    def __init__(self, space: Space, backend: Backend, strict_nan: bool, path: str = "$") -> None:
        self.space: Final = space
        self.backend: Final = backend
        self._leaves: list[Leaf] = []
        self._put, self._take, self._own = self._compile(space, path, strict_nan)
        self.leaf_count: Final = len(self._leaves)
        self.size_hint: Final = sum(leaf.usual for leaf in self._leaves)
        self.fixed_sizes: Final = sizes_of(leaf.size for leaf in self._leaves)

    def encode(self, value: Any) -> list[Buffer]:  # Any: arrays, numbers, text, and trees of them
        """Return the leaves of a value as one lane.

        A large array is not copied: its leaf is a view of its memory, which is good until that
        memory changes. Whoever needs `bytes` makes them.

        Raises:
            InvalidValueError: the value is not of the space; `path` says where.
        """
        leaves: list[Buffer] = []
        self._put(value, leaves)
        return leaves

    def decode(self, leaves: Sequence[Buffer]) -> Any:  # Any: by space and backend
        """Return the value of one lane, which keeps no memory of the leaves but immutable bytes.

        Raises:
            InvalidValueError: the bytes are no value of the space; `path` says where.
        """
        if len(leaves) != self.leaf_count:
            raise self._wrong_count(leaves)
        return self._take(leaves)

    def decode_owned(self, leaves: Sequence[Buffer]) -> Any:  # Any: by space and backend
        """Return the value of one lane, its large arrays over the memory of the leaves.

        That memory belongs to the value from now on: it must be writable, fresh, and nobody else's.

        Raises:
            InvalidValueError: the bytes are no value of the space; `path` says where.
        """
        if len(leaves) != self.leaf_count:
            raise self._wrong_count(leaves)
        return self._own(leaves)

    def __repr__(self) -> str:
        return f"Codec({self.space!r}, backend={self.backend.name})"

    def _compile(self, space: Space, path: str, strict_nan: bool) -> tuple[_Put, _Take, _Take]:
        match space:
            case Dict():
                return self._compile_dict(space, path, strict_nan)
            case Tuple():
                return self._compile_tuple(space, path, strict_nan)
            case _:
                return self._compile_leaf(space, path, strict_nan)

    def _compile_leaf(self, space: Space, path: str, strict_nan: bool) -> tuple[_Put, _Take, _Take]:
        index, leaf = len(self._leaves), compile_leaf(space, path, self.backend, strict_nan)
        self._leaves.append(leaf)
        write, read, read_owned = leaf.write, leaf.read, leaf.own

        def put(value: Any, leaves: list[Buffer]) -> None:
            leaves.append(write(value))

        def take(leaves: Sequence[Buffer]) -> Any:
            return read(leaves[index])

        def own(leaves: Sequence[Buffer]) -> Any:
            return read_owned(leaves[index])

        return put, take, own

    def _compile_dict(self, space: Dict, path: str, strict_nan: bool) -> tuple[_Put, _Take, _Take]:
        children = {
            key: self._compile(child, f"{path}.{key}", strict_nan) for key, child in space.items()
        }
        puts = [(key, put) for key, (put, _, _) in children.items()]

        def put(value: Any, leaves: list[Buffer]) -> None:
            for key, put_child in puts:
                try:
                    child = value[key]
                except (LookupError, TypeError, ValueError) as error:
                    raise missing(value, key, path) from error
                put_child(child, leaves)

        def taker(takes: Mapping[str, _Take]) -> _Take:
            items = list(takes.items())

            def take(leaves: Sequence[Buffer]) -> dict[str, Any]:
                return {key: take_child(leaves) for key, take_child in items}

            return take

        take = taker({key: child[1] for key, child in children.items()})
        return put, take, taker({key: child[2] for key, child in children.items()})

    def _compile_tuple(
        self, space: Tuple, path: str, strict_nan: bool
    ) -> tuple[_Put, _Take, _Take]:
        children = [
            self._compile(child, f"{path}[{index}]", strict_nan)
            for index, child in enumerate(space)
        ]
        puts, arity = [put for put, _, _ in children], len(children)

        def put(value: Any, leaves: list[Buffer]) -> None:
            if not issubclass(type(value), _ITEMS):
                raise invalid(path, f"must be a tuple of {arity}, not {shown(value)}")
            if len(value) != arity:
                raise invalid(path, f"has {len(value)} items; it must have {arity}")
            for put_child, child in zip(puts, value, strict=True):
                put_child(child, leaves)

        def taker(takes: Sequence[_Take]) -> _Take:
            def take(leaves: Sequence[Buffer]) -> tuple[Any, ...]:
                return tuple([take_child(leaves) for take_child in takes])

            return take

        return put, taker([take for _, take, _ in children]), taker([own for _, _, own in children])

    def _wrong_count(self, leaves: Sequence[Buffer]) -> InvalidValueError:
        return invalid("$", f"came as {len(leaves)} leaves; its space has {self.leaf_count}")


def compile_codec(space: Space, *, backend: Backend, strict_nan: bool = False) -> Codec:
    """Return the codec of a space.

    Args:
        space: what the values are of.
        backend: what decoded arrays become: `NATIVE` tensors or `NUMPY` arrays.
        strict_nan: refuse NaN, both ways. Actions should; an observation may be all we have.

    Raises:
        UnsupportedSpaceError: a leaf of the space has no form on the wire.
    """
    return Codec(space, backend, strict_nan)


def sizes_of(sizes: Iterable[int | None]) -> tuple[int, ...] | None:
    """Return the sizes when all of them are fixed."""
    fixed: list[int] = []
    for size in sizes:
        if size is None:
            return None
        fixed.append(size)
    return tuple(fixed)


def missing(value: object, key: str, path: str) -> InvalidValueError:
    """Return the error about a value without an entry that its space has."""
    if hasattr(value, "keys"):
        return invalid(f"{path}.{key}", "is missing")
    return invalid(path, f"must be a mapping with the key {key!r}, not {shown(value)}")
