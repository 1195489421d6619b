"""What an expression consists of, once it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true, false or none."""

    position: int
    value: object


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a value, by its name."""

    position: int
    of: Node
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a value, by its number or key."""

    position: int
    of: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Slice:
    """A run of a list or text."""

    position: int
    of: Node
    begin: Node | None
    end: Node | None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed list."""

    position: int
    function: str
    arguments: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    position: int
    items: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Signed:
    """`-x` or `+x`."""

    position: int
    operator: str
    of: Node


@dataclass(frozen=True, slots=True)
class Negation:
    """`not x`."""

    position: int
    of: Node


@dataclass(frozen=True, slots=True)
class Junction:
    """`a and b and c`, or with `or`."""

    position: int
    operator: str
    terms: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b <= c`: every link holds."""

    position: int
    first: Node
    links: Sequence[tuple[str, int, Node]]


@dataclass(frozen=True, slots=True)
class Sum:
    """A chain of operators of one rank, worked out from the left: `a + b - c`, `a * b / c`."""

    position: int
    first: Node
    links: Sequence[tuple[str, int, Node]]


@dataclass(frozen=True, slots=True)
class Power:
    """`a ** b`."""

    position: int
    base: Node
    exponent: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """`a if b else c`."""

    position: int
    condition: Node
    yes: Node
    no: Node


Node = (
    Literal
    | Name
    | Field
    | Item
    | Slice
    | Call
    | Items
    | Signed
    | Negation
    | Junction
    | Comparison
    | Sum
    | Power
    | Choice
)
