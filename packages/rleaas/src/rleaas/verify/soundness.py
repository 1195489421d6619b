"""What can be told of a condition before any episode is there, and is refused then."""

from __future__ import annotations

from dataclasses import dataclass

from rlcore import ExpressionError

from rleaas.verify import syntax
from rleaas.verify.closures import Frame, compiled
from rleaas.verify.sorts import (
    BOOLEAN,
    NONE,
    NUMBER,
    TEXT,
    TOOL,
    UNKNOWN,
    Sort,
    Unknown,
    sort_of,
    takes_values_of,
)
from rleaas.verify.syntax import Node, parts_of
from rleaas.verify.values import Fault, Value, kind

_ORDERS = frozenset(("<", "<=", ">", ">="))
_SEARCHES = frozenset(("in", "not in"))


@dataclass(frozen=True, slots=True)
class Mention:
    """The name of a tool that a condition compares with what was called, and where it is."""

    tool: str
    position: int


def require_sound(text: str, node: Node) -> tuple[Mention, ...]:
    """Refuse a condition that can only fail, or only hold; give the tools that it names.

    Raises:
        ExpressionError: a trajectory has no such field, a part of constants has no value, or a
            text, a number or a list stands where something is true or false. A caret shows where.
    """
    walk = _Walk(text)
    walk.truth(node)
    return tuple(walk.mentions)


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self.mentions: list[Mention] = []

    def truth(self, node: Node) -> None:
        """Look at a part that is to be true or false."""
        match node:
            case syntax.Junction():
                self._junction(node, last_is_truth=True)
            case syntax.Choice():
                self.truth(node.condition)
                self.truth(node.yes)
                self.truth(node.no)
            case _:
                self.value(node)
                self._require_truth(node)

    def value(self, node: Node) -> None:
        """Look at a part that may be any value."""
        if is_constant(node):
            self._require_value(node)
            if not isinstance(node, syntax.Junction):
                return
        match node:
            case syntax.Junction():
                self._junction(node, last_is_truth=False)
                return
            case syntax.Negation():
                self.truth(node.of)
                return
            case syntax.Choice():
                self.truth(node.condition)
                self.value(node.yes)
                self.value(node.no)
                return
            case _:
                pass
        for part in parts_of(node):
            self.value(part)
        self._sort(node)
        if isinstance(node, syntax.Comparison):
            self._comparison(node)
        elif isinstance(node, syntax.Call) and takes_values_of(node.function):
            self._named(self._sort(node.arguments[0]).inside, node.arguments[1])

    def _junction(self, node: syntax.Junction, *, last_is_truth: bool) -> None:
        last = len(node.terms) - 1
        for place, term in enumerate(node.terms):
            if last_is_truth or place < last:
                self._meant(node, place)
            # Of `a or b` as a value, a may be any that is not always the same.
            if last_is_truth or (place < last and is_constant(term)):
                self.truth(term)
            else:
                self.value(term)

    def _meant(self, node: syntax.Junction, place: int) -> None:
        """Refuse `'a' or 'b' in x`, and say how that is written."""
        term = node.terms[place]
        if not isinstance(term, syntax.Literal) or sort_of(term) not in (TEXT, NUMBER):
            return
        beside = [node.terms[at] for at in (place + 1, place - 1) if 0 <= at < len(node.terms)]
        for other in beside:
            if isinstance(other, syntax.Comparison) and len(other.links) == 1:
                raise self._refused(
                    f"{_said(kind(term.value))} alone is always {_truth_of(term.value)}",
                    term.position,
                    f"Write {self._repeated(node.operator, term, other)}",
                )

    def _repeated(self, operator: str, term: syntax.Literal, comparison: syntax.Comparison) -> str:
        ((sign, _, right),) = comparison.links
        left, other, said = shown(comparison.first), shown(right), repr(term.value)
        if sign in _SEARCHES:
            return f"{said} {sign} {other} {operator} {left} {sign} {other}"
        return f"{left} {sign} {other} {operator} {left} {sign} {said}"

    def _require_truth(self, node: Node) -> None:
        sort = self._sort(node)
        if is_constant(node):
            value = self._require_value(node)
            if isinstance(value, bool):
                return
            reason = f"{_said(kind(value))} alone is always {_truth_of(value)}"
            hint = "Compare it with something, or write true or false"
        elif sort in (UNKNOWN, BOOLEAN, TOOL):  # a step may have called none
            return
        else:
            reason = f"this is {_said(sort.word)}, not true or false"
            hint = _compared(node, sort)
        raise self._refused(reason, start_of(node), hint)

    def _comparison(self, node: syntax.Comparison) -> None:
        left = node.first
        for sign, position, right in node.links:
            before, after = self._sort(left), self._sort(right)
            if sign in _SEARCHES:
                if after in (NUMBER, BOOLEAN, NONE):
                    raise self._refused(f"nothing can be in {after.word}", position)
                self._named(after.inside, left)
                if before is TOOL and isinstance(right, syntax.Items):
                    self._named(before, *right.items)
            else:
                if sign in _ORDERS and {before, after} in ({NUMBER, TEXT}, {NUMBER, TOOL}):
                    reason = f"{before.word} {sign} {after.word} compares nothing"
                    raise self._refused(reason, position)
                for one, other_node in ((before, right), (after, left)):
                    self._named(one, other_node)
                    if one.inside is TOOL and isinstance(other_node, syntax.Items):
                        self._named(TOOL, *other_node.items)
            left = right

    def _named(self, sort: Sort | None, *nodes: Node) -> None:
        """Remember the texts that are compared with the name of a tool."""
        if sort is not TOOL:
            return
        for node in nodes:
            if isinstance(node, syntax.Literal) and isinstance(node.value, str):
                self.mentions.append(Mention(node.value, node.position))

    def _require_value(self, node: Node) -> Value:
        """Work a part of constants out: it has a value, or no episode could give it one."""
        try:
            return compiled(node)(Frame({}))
        except Fault as fault:
            raise self._refused(fault.reason, fault.position) from None
        except (RecursionError, MemoryError) as error:
            raise self._refused("it is too large to work out", start_of(node)) from error

    def _sort(self, node: Node) -> Sort:
        try:
            return sort_of(node)
        except Unknown as fault:
            # The caret belongs under the name, not under the dot before it.
            raise self._refused(
                fault.reason, _after(self._text, fault.position), fault.hint
            ) from None
        except Fault as fault:
            raise self._refused(fault.reason, fault.position) from None

    def _refused(
        self, reason: str, position: int | None, hint: str | None = None
    ) -> ExpressionError:
        return ExpressionError(reason, expression=self._text, position=position, hint=hint)


def is_constant(node: Node) -> bool:
    """Whether no variable is in it."""
    return not isinstance(node, syntax.Name) and all(map(is_constant, parts_of(node)))


def start_of(node: Node) -> int:
    """Where a part begins."""
    return min([node.position, *map(start_of, parts_of(node))])


def shown(node: Node) -> str:
    """A constant, a variable or a field of one, as it is written; dots for other parts."""
    match node:
        case syntax.Literal(value=str() | int() | float() as value):
            return repr(value)
        case syntax.Name():
            return node.name
        case syntax.Field():
            return f"{shown(node.of)}.{node.name}"
        case _:
            return "..."


def _said(word: str) -> str:
    return "a text" if word == TEXT.word else word


def _truth_of(value: Value) -> str:
    return "true" if value else "false"


def _compared(node: Node, sort: Sort) -> str:
    written = shown(node)
    if sort.inside is TOOL:
        return f"Write 'name_of_a_tool' in {written}"
    if sort.inside is not None:
        return f"Write len({written}) > 0, or == 0"
    if sort is NUMBER:
        return f"Compare it, as in {written} > 0"
    return "Compare a part of it with something"


def _after(text: str, position: int | None) -> int | None:
    """The first letter behind the dot at this place."""
    if position is None:
        return None
    rest = text[position + 1 :]
    return position + 1 + len(rest) - len(rest.lstrip())
