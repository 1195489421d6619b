"""Any number of values of one space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from rlmesh.spaces.coerce import invalid, items_of, shown
from rlmesh.spaces.containers import checked_child
from rlmesh.spaces.space import Space
from rlmesh.spaces.stacking import stacked, unstacked
from rlmesh.values import NUMPY, Backend

LIKELY_END = 0.25  # gymnasium's: the chance that a sampled sequence ends after an item


class Sequence(Space):
    """Tuples of any length, each item of the same space.

    Args:
        space: the space of an item.
        stack: whether a value is one array with the items along its first dimension, or the
            space's tree of such arrays, rather than a tuple.

    Raises:
        UnsupportedSpaceError: the item's space is no space.
    """

    __slots__ = ("feature_space", "stack")
    kind: ClassVar[str] = "sequence"
    feature_space: Space
    stack: bool

    def __init__(self, space: Space, stack: bool = False) -> None:
        checked_child(space, "the items of a Sequence space")
        self._settle(space, bool(stack), feature_space=space, stack=bool(stack))

    @property
    def shape(self) -> list[int]:
        """No dimensions of its own."""
        return []

    @property
    def dtype(self) -> str:
        """A fixed word: containers have no elements of their own."""
        return "float32"

    def draw(self, generator: np.random.Generator, backend: Backend) -> Any:  # Any: by `stack`
        """Return examples of at least one item, four on average."""
        length = int(generator.geometric(LIKELY_END))
        if not self.stack:
            return tuple(self.feature_space.draw(generator, backend) for _ in range(length))
        items = [self.feature_space.draw(generator, NUMPY) for _ in range(length)]
        return stacked(self.feature_space, items, backend)

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a tuple or list of right items, or the stack of them."""
        items = unstacked(self.feature_space, value, path) if self.stack else items_of(value)
        if items is None:
            raise invalid(path, f"must be a tuple, not {shown(value)}")
        for index, item in enumerate(items):
            self.feature_space.check(item, f"{path}[{index}]")

    def __repr__(self) -> str:
        return f"Sequence({self.feature_space!r}, stack={self.stack})"

    def _details(self) -> dict[str, object]:
        return {"space": self.feature_space.to_dict(), "stack": self.stack}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self.feature_space, self.stack
