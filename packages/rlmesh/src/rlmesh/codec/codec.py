"""Values of one space to bytes and back, compiled once so that a step asks no questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rlcore import InvalidValueError

from rlmesh.codec.leaves import Leaf, compile_leaf
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.coerce import invalid, shown
from rlmesh.values import Backend

_ITEMS: Final[tuple[type, ...]] = (tuple, list)

_Put = Callable[[Any, list[bytes]], None]  # Any: what users pass
_Take = Callable[[Sequence[bytes]], Any]  # Any: what backends make


class Codec:
    """Writes and reads the values of one space; made by `compile_codec`.

    A value becomes one entry of bytes for each of its fundamental leaves, depth first. Decoded
    values own their memory and are in the backend's types; dictionaries come in the space's order.

    Attributes:
        space: the space.
        backend: what arrays become.
        leaf_count: how many entries a value takes.
        size_hint: how many bytes a value usually takes.
    """

    __slots__ = ("_leaves", "_put", "_take", "backend", "leaf_count", "size_hint", "space")

    def __init__(self, space: Space, backend: Backend, strict_nan: bool) -> None:
        self.space: Final = space
        self.backend: Final = backend
        self._leaves: list[Leaf] = []
        self._put, self._take = self._compile(space, "$", strict_nan)
        self.leaf_count: Final = len(self._leaves)
        self.size_hint: Final = sum(leaf.size for leaf in self._leaves)

    def encode(self, value: Any) -> list[bytes]:  # Any: arrays, numbers, text, and trees of them
        """Return the leaves of a value as one lane.

        Raises:
            InvalidValueError: the value is not of the space; `path` says where.
        """
        leaves: list[bytes] = []
        self._put(value, leaves)
        return leaves

    def decode(self, leaves: Sequence[bytes]) -> Any:  # Any: by space and backend
        """Return the value of one lane.

        Raises:
            InvalidValueError: the bytes are no value of the space; `path` says where.
        """
        if len(leaves) != self.leaf_count:
            raise self._wrong_count(leaves)
        return self._take(leaves)

    def encode_lanes(self, values: Sequence[Any]) -> list[bytes]:  # Any: as in encode
        """Return the leaves of several values, one lane each.

        Raises:
            InvalidValueError: a value is not of the space; `path` says where.
        """
        lanes = [self.encode(value) for value in values]
        return [leaf.join([lane[i] for lane in lanes]) for i, leaf in enumerate(self._leaves)]

    def decode_lanes(self, leaves: Sequence[bytes], lanes: int) -> list[Any]:  # Any: as in decode
        """Return the values of so many lanes.

        Raises:
            InvalidValueError: the bytes are no values of the space; `path` says where.
        """
        if len(leaves) != self.leaf_count:
            raise self._wrong_count(leaves)
        columns = [
            leaf.split(content, lanes) for leaf, content in zip(self._leaves, leaves, strict=True)
        ]
        return [self._take([column[lane] for column in columns]) for lane in range(lanes)]

    def __repr__(self) -> str:
        return f"Codec({self.space!r}, backend={self.backend.name})"

    def _compile(self, space: Space, path: str, strict_nan: bool) -> tuple[_Put, _Take]:
        match space:
            case Dict():
                return self._compile_dict(space, path, strict_nan)
            case Tuple():
                return self._compile_tuple(space, path, strict_nan)
            case _:
                return self._compile_leaf(space, path, strict_nan)

    def _compile_leaf(self, space: Space, path: str, strict_nan: bool) -> tuple[_Put, _Take]:
        index, leaf = len(self._leaves), compile_leaf(space, path, self.backend, strict_nan)
        self._leaves.append(leaf)
        write, read = leaf.write, leaf.read

        def put(value: Any, leaves: list[bytes]) -> None:
            leaves.append(write(value))

        def take(leaves: Sequence[bytes]) -> Any:
            return read(leaves[index])

        return put, take

    def _compile_dict(self, space: Dict, path: str, strict_nan: bool) -> tuple[_Put, _Take]:
        children = [
            (key, *self._compile(child, f"{path}.{key}", strict_nan))
            for key, child in space.items()
        ]
        puts = [(key, put) for key, put, _ in children]
        takes = [(key, take) for key, _, take in children]

        def put(value: Any, leaves: list[bytes]) -> None:
            for key, put_child in puts:
                try:
                    child = value[key]
                except (LookupError, TypeError, ValueError) as error:
                    raise _missing(value, key, path) from error
                put_child(child, leaves)

        def take(leaves: Sequence[bytes]) -> dict[str, Any]:
            return {key: take_child(leaves) for key, take_child in takes}

        return put, take

    def _compile_tuple(self, space: Tuple, path: str, strict_nan: bool) -> tuple[_Put, _Take]:
        children = [
            self._compile(child, f"{path}[{index}]", strict_nan)
            for index, child in enumerate(space)
        ]
        puts, takes = [put for put, _ in children], [take for _, take in children]
        arity = len(children)

        def put(value: Any, leaves: list[bytes]) -> None:
            if not issubclass(type(value), _ITEMS):
                raise invalid(path, f"must be a tuple of {arity}, not {shown(value)}")
            if len(value) != arity:
                raise invalid(path, f"has {len(value)} items; it must have {arity}")
            for put_child, child in zip(puts, value, strict=True):
                put_child(child, leaves)

        def take(leaves: Sequence[bytes]) -> tuple[Any, ...]:
            return tuple([take_child(leaves) for take_child in takes])

        return put, take

    def _wrong_count(self, leaves: Sequence[bytes]) -> InvalidValueError:
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


def _missing(value: object, key: str, path: str) -> InvalidValueError:
    if hasattr(value, "keys"):
        return invalid(f"{path}.{key}", "is missing")
    return invalid(path, f"must be a mapping with the key {key!r}, not {shown(value)}")
