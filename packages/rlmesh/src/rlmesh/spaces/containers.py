"""Values made of other values."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from types import MappingProxyType
from typing import Any, ClassVar, cast

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import invalid, shown
from rlmesh.spaces.space import Space, UnsupportedSpaceError
from rlmesh.values import Backend


class Dict(Space):
    """Dictionaries with given keys, each value of a space of its own.

    Args:
        spaces: the space of each key.
        keep_order: keep the keys in the order given, which is the order in which they travel;
            otherwise they are sorted.

    Raises:
        UnsupportedSpaceError: a key is no string, or a child is no space.
        ConfigurationError: a key is empty.
    """

    __slots__ = ("spaces",)
    kind: ClassVar[str] = "dict"
    spaces: Mapping[str, Space]

    def __init__(
        self,
        spaces: Mapping[str, Space] | Iterable[tuple[str, Space]] | Dict,
        keep_order: bool = False,
    ) -> None:
        given = dict(spaces.spaces if isinstance(spaces, Dict) else spaces)
        for key, child in cast("dict[object, object]", given).items():
            if not isinstance(key, str):
                raise UnsupportedSpaceError(
                    f"a Dict space has the key {key!r}; only strings can be keys",
                    hint="Rename the keys of the environment's dictionaries.",
                )
            if not key:
                raise ConfigurationError("a Dict space cannot have an empty key")
            checked_child(child, f"the key {key!r} of a Dict space")
        ordered = given if keep_order else {key: given[key] for key in sorted(given)}
        self._settle(tuple(ordered.items()), spaces=MappingProxyType(ordered))

    @property
    def shape(self) -> list[int]:
        """No dimensions of its own."""
        return []

    @property
    def dtype(self) -> str:
        """A fixed word: containers have no elements of their own."""
        return "float32"

    def keys(self) -> KeysView[str]:
        """Return the keys, in the order in which they travel."""
        return self.spaces.keys()

    def values(self) -> ValuesView[Space]:
        """Return the children, in the order of their keys."""
        return self.spaces.values()

    def items(self) -> ItemsView[str, Space]:
        """Return keys with their children."""
        return self.spaces.items()

    def __getitem__(self, key: str) -> Space:
        return self.spaces[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, value: object) -> bool:
        return value in self.spaces if isinstance(value, str) else self.contains(value)

    def draw(self, generator: np.random.Generator, backend: Backend) -> dict[str, Any]:
        """Return a dictionary of examples."""
        return {key: child.draw(generator, backend) for key, child in self.spaces.items()}

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a mapping with a right value at each key; other keys do not matter."""
        if not isinstance(value, Mapping):
            raise invalid(path, f"must be a mapping with the keys {list(self.spaces)}")
        entries = cast("Mapping[object, object]", value)
        for key, child in self.spaces.items():
            if key not in entries:
                raise invalid(f"{path}.{key}", "is missing")
            child.check(entries[key], f"{path}.{key}")

    def __repr__(self) -> str:
        return f"Dict({', '.join(f'{key}={child!r}' for key, child in self.spaces.items())})"

    def _details(self) -> dict[str, object]:
        return {"spaces": {key: child.to_dict() for key, child in self.spaces.items()}}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return dict(self.spaces), True


class Tuple(Space):
    """Tuples of a given length, each item of a space of its own.

    Args:
        spaces: the space of each item.

    Raises:
        UnsupportedSpaceError: a child is no space.
    """

    __slots__ = ("spaces",)
    kind: ClassVar[str] = "tuple"
    spaces: tuple[Space, ...]

    def __init__(self, spaces: Iterable[Space] | Tuple) -> None:
        children = tuple(spaces.spaces if isinstance(spaces, Tuple) else spaces)
        for index, child in enumerate(cast("tuple[object, ...]", children)):
            checked_child(child, f"item {index} of a Tuple space")
        self._settle(children, spaces=children)

    @property
    def shape(self) -> list[int]:
        """No dimensions of its own."""
        return []

    @property
    def dtype(self) -> str:
        """A fixed word: containers have no elements of their own."""
        return "float32"

    def __getitem__(self, index: int) -> Space:
        return self.spaces[index]

    def __iter__(self) -> Iterator[Space]:
        return iter(self.spaces)

    def __len__(self) -> int:
        return len(self.spaces)

    def __bool__(self) -> bool:
        return True

    def draw(self, generator: np.random.Generator, backend: Backend) -> tuple[Any, ...]:
        """Return a tuple of examples."""
        return tuple(child.draw(generator, backend) for child in self.spaces)

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a tuple or list with a right value at each place."""
        if not isinstance(value, tuple | list):
            raise invalid(path, f"must be a tuple of {len(self.spaces)}, not {shown(value)}")
        items = cast("tuple[object, ...]", value)
        if len(items) != len(self.spaces):
            raise invalid(path, f"has {len(items)} items; it must have {len(self.spaces)}")
        for index, (child, item) in enumerate(zip(self.spaces, items, strict=True)):
            child.check(item, f"{path}[{index}]")

    def __repr__(self) -> str:
        return f"Tuple({', '.join(map(repr, self.spaces))})"

    def _details(self) -> dict[str, object]:
        return {"spaces": [child.to_dict() for child in self.spaces]}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return (self.spaces,)


def checked_child(child: object, where: str) -> None:
    """Do nothing for a space.

    Raises:
        UnsupportedSpaceError: it is none.
    """
    if not isinstance(child, Space):
        raise UnsupportedSpaceError(f"{where} must be a space of rlmesh, not {shown(child)}")
