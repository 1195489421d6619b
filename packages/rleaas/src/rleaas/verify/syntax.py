"""What an expression consists of, once it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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


def parts_of(node: Node) -> Iterable[Node]:
    """What a part consists of; nothing, of a constant or a variable."""
    return _PARTS[type(node)](node)


# Each takes the class that it stands beside.
_PARTS: Mapping[type[Node], Callable[[Any], Iterable[Node]]] = {
    Literal: lambda node: (),
    Name: lambda node: (),
    Field: lambda node: (node.of,),
    Item: lambda node: (node.of, node.key),
    Slice: lambda node: [one for one in (node.of, node.begin, node.end) if one is not None],
    Call: lambda node: node.arguments,
    Items: lambda node: node.items,
    Signed: lambda node: (node.of,),
    Negation: lambda node: (node.of,),
    Junction: lambda node: node.terms,
    Comparison: lambda node: (node.first, *(other for _, _, other in node.links)),
    Sum: lambda node: (node.first, *(other for _, _, other in node.links)),
    Power: lambda node: (node.base, node.exponent),
    Choice: lambda node: (node.condition, node.yes, node.no),
}
