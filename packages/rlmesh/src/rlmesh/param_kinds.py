"""What the types of parameters mean: which values they have, and as what a function gets them."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Final, cast

from rlcore import ConfigurationError

UNIT_TOLERANCE: Final = 1e-3


class Mismatch(Exception):
    """A value is none of a kind; the text says why."""


class Kind:
    """A kind of values; this one has all of them.

    Attributes:
        label: how it is described.
        numeric: whether its items are numbers.
    """

    numeric = False

    def __init__(self, label: str) -> None:
        self.label = label

    def checked(self, value: object) -> object:
        """Return the value as functions get it.

        Raises:
            Mismatch: it is none of this kind.
        """
        return value

    @property
    def leaf(self) -> Kind:
        """The kind of what choices and ranges are about."""
        return self

    def items(self, value: object) -> Sequence[object]:
        """Return what choices and ranges are about in a checked value."""
        return (value,)


class Whole(Kind):
    """Integers; floats without a fraction are taken for them."""

    numeric = True

    def checked(self, value: object) -> int:
        """Return an int."""
        if isinstance(value, bool) or not isinstance(value, Integral | float):
            raise _other("int", value)
        if isinstance(value, float) and not value.is_integer():
            raise Mismatch(f"expected int, got {value!r}")
        return int(value)


class Number(Kind):
    """Finite numbers."""

    numeric = True

    def checked(self, value: object) -> float:
        """Return a float."""
        if isinstance(value, bool) or not isinstance(value, Real):
            raise _other("float", value)
        try:
            number = float(value)
        except OverflowError as error:
            raise Mismatch("expected a float, got an int that is too large for one") from error
        if not math.isfinite(number):
            raise Mismatch(f"expected a finite float, got {number!r}")
        return number


class Exactly(Kind):
    """Instances of one built-in class."""

    def __init__(self, kind: type) -> None:
        super().__init__(kind.__name__)
        self._kind = kind

    def checked(self, value: object) -> object:
        """Return the value."""
        if not isinstance(value, self._kind):
            raise _other(self.label, value)
        return value


class Optionally(Kind):
    """Values of another kind, or None."""

    def __init__(self, inner: Kind) -> None:
        super().__init__(f"{inner.label}|None")
        self.numeric = inner.numeric
        self.inner = inner

    def checked(self, value: object) -> object:
        """Return the value as the other kind has it."""
        return None if value is None else self.inner.checked(value)

    @property
    def leaf(self) -> Kind:
        """That of the other kind."""
        return self.inner.leaf

    def items(self, value: object) -> Sequence[object]:
        """Return what is not None."""
        return () if value is None else self.inner.items(value)


class Listed(Kind):
    """Lists, and tuples in their place, of another kind."""

    def __init__(self, inner: Kind) -> None:
        super().__init__("list" if inner is ANYTHING else f"list[{inner.label}]")
        self.numeric = inner.numeric
        self.inner = inner

    def checked(self, value: object) -> list[object]:
        """Return a list."""
        if not isinstance(value, list | tuple):
            raise _other(self.label, value)
        checked: list[object] = []
        for place, item in enumerate(cast("Sequence[object]", value)):
            try:
                checked.append(self.inner.checked(item))
            except Mismatch as error:
                raise Mismatch(f"item {place}: {error}") from error
        return checked

    @property
    def leaf(self) -> Kind:
        """That of an item."""
        return self.inner.leaf

    def items(self, value: object) -> Sequence[object]:
        """Return the items of the items."""
        values = cast("Sequence[object]", value)
        return [each for item in values for each in self.inner.items(item)]


@dataclass(frozen=True)
class Vector:
    """The type of a parameter that is so many finite floats; functions get a tuple.

    Attributes:
        dim: how many.
        unit: whether its length has to be 1, within 0.001.

    Raises:
        ConfigurationError: there are none.
    """

    dim: int
    unit: bool = False

    def __post_init__(self) -> None:
        dim: object = getattr(self, "dim")  # noqa: B009  # callers without types
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
            raise ConfigurationError(f"dim of a Vector is {dim!r}", hint="Give 1 or more.")


class Vectors(Kind):
    """Vectors of one dimension."""

    numeric = True

    def __init__(self, vector: Vector) -> None:
        super().__init__(f"vec{vector.dim}")
        self.vector = vector

    def checked(self, value: object) -> tuple[float, ...]:
        """Return a tuple of floats."""
        if not isinstance(value, list | tuple):
            raise _other(f"a {self.vector.dim}-vector", value)
        found = cast("Sequence[object]", value)
        if len(found) != self.vector.dim:
            raise Mismatch(f"expected a {self.vector.dim}-vector, got length {len(found)}")
        number = Number("float")
        numbers = tuple(number.checked(item) for item in found)
        length = math.hypot(*numbers)
        if self.vector.unit and abs(length - 1) > UNIT_TOLERANCE:
            raise Mismatch(f"expected a vector of length 1, got one of length {length:g}")
        return numbers

    @property
    def leaf(self) -> Kind:
        """Numbers."""
        return FLOAT

    def items(self, value: object) -> Sequence[object]:
        """Return the numbers."""
        return cast("Sequence[object]", value)


ANYTHING: Final = Kind("any")
INT: Final = Whole("int")
FLOAT: Final = Number("float")
STR: Final = Exactly(str)
BOOL: Final = Exactly(bool)
SCALARS: Final[dict[object, Kind]] = {
    int: INT, float: FLOAT, str: STR, bool: BOOL,
    "int": INT, "float": FLOAT, "str": STR, "bool": BOOL,
}  # fmt: skip
_OPTIONAL: Final = re.compile(r"Optional\[(.+)\]|(.+)\|None|None\|(.+)")
_LIST: Final = re.compile(r"[Ll]ist\[(.+)\]")


def kind_of(declared: object) -> Kind:
    """Return what a declared type means; a text that means nothing here is a label."""
    if isinstance(declared, Vector):
        return Vectors(declared)
    if isinstance(declared, str):
        return _named(declared)
    scalar = SCALARS.get(declared) if isinstance(declared, type) else None
    if scalar is not None:
        return scalar
    if declared is list:
        return Listed(ANYTHING)
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin is list:
        return Listed(kind_of(arguments[0]))
    if origin in (typing.Union, types.UnionType):
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) == 1 and len(arguments) > 1:
            return Optionally(kind_of(others[0]))
    return Kind(getattr(declared, "__name__", None) or str(declared))


def optional_scalar(annotation: object) -> Kind:
    """Return what an annotation means where it is a scalar, or one or None; else anything."""
    kind = kind_of(annotation)
    inner = kind.inner if isinstance(kind, Optionally) else kind
    return kind if inner in (INT, FLOAT, STR, BOOL) else ANYTHING


def _named(text: str) -> Kind:
    name = text.replace(" ", "").removeprefix("typing.")
    if name in SCALARS:
        return SCALARS[name]
    if name == "list":
        return Listed(ANYTHING)
    if (found := _OPTIONAL.fullmatch(name)) is not None:
        return Optionally(_named(next(filter(None, found.groups()))))
    if (found := _LIST.fullmatch(name)) is not None:
        return Listed(_named(found[1]))
    return Kind(text)


def _other(expected: str, value: Any) -> Mismatch:  # Any: whatever was given
    return Mismatch(f"expected {expected}, got {type(value).__name__}")
