"""A value of one of several spaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import as_integer, invalid, items_of, shown
from rlmesh.spaces.containers import checked_child
from rlmesh.spaces.space import Space
from rlmesh.values import Backend


class OneOf(Space):
    """Pairs of a number and a value of the space of that number.

    Args:
        spaces: the spaces, at least one.

    Raises:
        UnsupportedSpaceError: a child is no space.
        ConfigurationError: there are none.
    """

    __slots__ = ("spaces",)
    kind: ClassVar[str] = "one_of"
    spaces: tuple[Space, ...]

    def __init__(self, spaces: Iterable[Space] | OneOf) -> None:
        children = tuple(spaces.spaces if isinstance(spaces, OneOf) else spaces)
        if not children:
            raise ConfigurationError("a OneOf space needs at least one space")
        for index, child in enumerate(children):
            checked_child(child, f"space {index} of a OneOf space")
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

    def draw(self, generator: np.random.Generator, backend: Backend) -> tuple[int, Any]:
        """Return an example of one of the spaces, each as likely as any other."""
        index = int(generator.integers(len(self.spaces)))
        return index, self.spaces[index].draw(generator, backend)

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a pair of a number and a value of the space of that number."""
        index, child = self.parts(value, path)
        self.spaces[index].check(child, f"{path}[1]")

    def parts(self, value: object, path: str) -> tuple[int, Any]:  # Any: of whichever space
        """Return the number and the value of a pair.

        Raises:
            InvalidValueError: it is no pair, or there is no space of that number.
        """
        pair = items_of(value, 2)
        if pair is None:
            raise invalid(path, f"must be a pair of a number and a value, not {shown(value)}")
        index = as_integer(pair[0], f"{path}[0]")
        if not 0 <= index < len(self.spaces):
            raise invalid(f"{path}[0]", f"is {index}; it must be 0 to {len(self.spaces) - 1}")
        return index, pair[1]

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self.spaces))})"

    def _details(self) -> dict[str, object]:
        return {"spaces": [child.to_dict() for child in self.spaces]}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return (self.spaces,)
