"""JSON that remembers where each value stood, so that an error can point there."""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn

DEEPEST = 64
"""How deep objects and arrays may be nested; nothing that is meant is deeper."""

_SPACE = " \t\r\n"
_VALUES_END = ",]} \t\r\n"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """A value, and where it began; `members` and `items` are what it is made of.

    Attributes:
        value: the plain value.
        at: where it begins.
        members: of an object, by key; of a repeated key the last one, as in `value`.
        keys: of an object, where each key begins.
        items: of an array.
    """

    value: object
    at: Position
    members: dict[str, Node] = field(default_factory=dict["str", "Node"])
    keys: dict[str, Position] = field(default_factory=dict[str, Position])
    items: list[Node] = field(default_factory=list["Node"])


class NotJson(ValueError):
    """A text is no JSON; `at` is where that shows."""

    def __init__(self, message: str, at: Position) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole text: its value, and the keys that an object has more than once, by their path."""

    root: Node
    repeated: list[tuple[str, Position]]


def parse(text: str) -> Parsed:
    """Return the value that a text holds.

    Raises:
        NotJson: it holds none.
    """
    reader = _Reader(text)
    root = reader.whole()
    return Parsed(root, reader.repeated)


def member_path(path: str, key: str) -> str:
    """Return the path of a member, such as `training[1].simulation`."""
    if key.isidentifier():
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key)}]"


def unsendable(node: Node, path: str = "") -> Iterator[tuple[str, Position, str]]:
    """Yield the texts, keys among them, that no server takes: path, place, and what they hold."""
    told = _unsendable(node.value)
    if told:
        yield path, node.at, told
    for key, member in node.members.items():
        below = member_path(path, key)
        told = _unsendable(key)
        if told:
            yield below, node.keys[key], told
        yield from unsendable(member, below)
    for index, item in enumerate(node.items):
        yield from unsendable(item, f"{path}[{index}]")


def _unsendable(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    if "\0" in value:
        return "holds a NUL character"
    if any("\ud800" <= one <= "\udfff" for one in value):
        return "holds half of a surrogate pair, which is no character"
    return None


class _Reader:
    """Reads one text; structure is read here, single values by the library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = [0, *(n + 1 for n, one in enumerate(text) if one == "\n")]
        self._scalars = json.JSONDecoder(parse_constant=_refuse_constant)
        self.repeated: list[tuple[str, Position]] = []

    def whole(self) -> Node:
        if not self._text.strip(_SPACE):
            raise NotJson("the file is empty", Position(1, 1))
        node = self._value("", 0)
        self._skip()
        if self._at < len(self._text):
            self._fail("there is more after the end of the value")
        return node

    def _value(self, path: str, depth: int) -> Node:
        self._skip()
        if depth > DEEPEST:
            self._fail(f"objects and arrays are nested deeper than {DEEPEST}")
        one = self._text[self._at : self._at + 1]
        if one == "{":
            return self._object(path, depth)
        if one == "[":
            return self._array(path, depth)
        return self._scalar()

    def _object(self, path: str, depth: int) -> Node:
        value: dict[str, object] = {}
        node = Node(value, self._position(self._at))
        for _ in self._parts("}", "an object"):
            at = self._position(self._at)
            if self._text[self._at] != '"':
                self._fail("a key in double quotes is missing")
            key = self._scalar().value
            if not isinstance(key, str):
                raise TypeError(f"the library read {key!r} from quotes")
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                self._fail(f"the colon after the key {key!r} is missing")
            self._at += 1
            below = member_path(path, key)
            if key in value:
                self.repeated.append((below, at))
            member = self._value(below, depth + 1)
            value[key], node.members[key], node.keys[key] = member.value, member, at
        return node

    def _array(self, path: str, depth: int) -> Node:
        value: list[object] = []
        node = Node(value, self._position(self._at))
        for _ in self._parts("]", "an array"):
            item = self._value(f"{path}[{len(value)}]", depth + 1)
            value.append(item.value)
            node.items.append(item)
        return node

    def _parts(self, end: str, what: str) -> Iterator[None]:
        """Stop at the beginning of each part of an object or an array, and step over its end."""
        began = self._position(self._at)
        self._at += 1
        self._skip()
        first = True
        while (one := self._text[self._at : self._at + 1]) != end:
            if not first:
                if one != ",":
                    self._unfinished(one, what, began)
                self._at += 1
                self._skip()
                if self._text[self._at : self._at + 1] == end:
                    self._fail(f"a comma before {end!r} is one too many")
            if self._at >= len(self._text):
                self._unfinished("", what, began)
            first = False
            yield
            self._skip()
        self._at += 1

    def _unfinished(self, one: str, what: str, began: Position) -> NoReturn:
        if one:
            self._fail("a comma is missing")
        self._fail(f"{what} that begins in line {began.line} has no end")

    def _scalar(self) -> Node:
        at = self._at
        if self._text[at : at + 1] == "'":
            self._fail("texts are written in double quotes")
        if self._text.startswith(("//", "/*", "#"), at):
            self._fail("JSON has no comments")
        try:
            value, self._at = self._scalars.raw_decode(self._text, at)
        except json.JSONDecodeError as error:
            inside = error.pos if self._text[at : at + 1] == '"' else at
            self._at = inside
            self._fail(_plainly(error.msg))
        except _NoConstant as error:
            self._fail(str(error))
        except ValueError:  # an integer beyond what Python reads
            self._fail(f"a number is too long: more than {sys.get_int_max_str_digits()} digits")
        if self._text[self._at : self._at + 1] not in _VALUES_END and not isinstance(value, str):
            self._at = at
            self._fail(f"{self._word(at)!r} is no value")
        return Node(value, self._position(at))

    def _word(self, at: int) -> str:
        end = at
        while end < len(self._text) and self._text[end] not in _VALUES_END:
            end += 1
        return self._text[at : min(end, at + 40)]

    def _skip(self) -> None:
        text, at = self._text, self._at
        while at < len(text) and text[at] in _SPACE:
            at += 1
        self._at = at

    def _position(self, at: int) -> Position:
        line = bisect_right(self._lines, at)
        return Position(line, at - self._lines[line - 1] + 1)

    def _fail(self, message: str) -> NoReturn:
        raise NotJson(message, self._position(min(self._at, len(self._text))))


class _NoConstant(ValueError):
    """A word such as NaN stands where a number should."""


def _refuse_constant(name: str) -> NoReturn:
    raise _NoConstant(f"{name} is no JSON number")


_PLAINLY: dict[str, str] = {
    "Expecting value": "a value is missing, or is none that JSON knows",
    "Unterminated string starting at": "a text has no closing quote",
    "Invalid control character at": "a text holds a line break or another control character",
}


def _plainly(message: str) -> str:
    return _PLAINLY.get(message, message[:1].lower() + message[1:])


Check = Callable[[object], object]
