"""One integer out of a range."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, cast

import numpy as np
from rlcore import ConfigurationError

from rlmesh.spaces.coerce import as_integer, dtype_named, integer_range, invalid
from rlmesh.spaces.space import Space
from rlmesh.values import DTYPES, Backend


class Discrete(Space):
    """The integers `start`, `start + 1`, ..., `start + n - 1`.

    Args:
        n: how many there are, at least one.
        start: the least of them.
        dtype: the integer type of arrays of them.
        wire_dtype: the integer type in which they travel; none given, 64-bit integers, which every
            published peer reads.

    Raises:
        ConfigurationError: there are none, or a type cannot hold them.
    """

    __slots__ = ("_dtype", "_wire", "n", "start")
    kind: ClassVar[str] = "discrete"
    n: int
    start: int
    _dtype: np.dtype[Any]
    _wire: np.dtype[Any]

    def __init__(
        self,
        n: int | Discrete,
        start: int = 0,
        dtype: object = "int64",
        wire_dtype: object = None,
    ) -> None:
        if isinstance(n, Discrete):
            n, start, dtype, wire_dtype = n._arguments()
        element = dtype_named(dtype)
        count, first = operator.index(cast("int", n)), operator.index(start)
        if count < 1:
            raise ConfigurationError(f"a Discrete space needs at least one value, not {count}")
        if element.kind not in "iu":
            raise ConfigurationError(f"a Discrete space is of integers, not of {element.name}")
        last = first + count - 1
        if wire_dtype is None:
            wire = element if element.name == "uint64" and last >= 2**63 else DTYPES["int64"]
        else:
            wire = dtype_named(wire_dtype)
        for kind in (element, wire):
            low, high = integer_range(kind)
            # The count travels as a signed 64-bit number, whatever the values' type.
            if first < low or last > high or count >= 2**63 or first >= 2**63:
                raise ConfigurationError(
                    f"{count} values from {first} on do not fit into {kind.name}"
                )
        self._settle(count, first, element.name, n=count, start=first, _dtype=element, _wire=wire)

    @property
    def shape(self) -> list[int]:
        """No dimensions."""
        return []

    @property
    def dtype(self) -> str:
        """The name of the integer type."""
        return self._dtype.name

    @property
    def value_dtype(self) -> str:
        """The name of the integer type of decoded arrays."""
        return self._dtype.name

    @property
    def wire_dtype(self) -> str:
        """The name of the integer type in which values travel."""
        return self._wire.name

    def draw(self, generator: np.random.Generator, backend: Backend) -> int:
        """Return one of the integers, each as likely as any other."""
        return self.start + int(generator.integers(self.n))

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for an integer in the range."""
        number = as_integer(value, path)
        if not self.start <= number < self.start + self.n:
            raise self.outside(number, path)

    def outside(self, number: int, path: str) -> Exception:
        """Return the error about an integer beyond the range."""
        return invalid(path, f"is {number}; it must be {self.start} to {self.start + self.n - 1}")

    def __repr__(self) -> str:
        start = f", start={self.start}" if self.start else ""
        return f"Discrete({self.n}{start})"

    def _details(self) -> dict[str, object]:
        return {"n": self.n, "start": self.start}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self.n, self.start, self._dtype.name, self._wire.name
