"""Makes a function of an expression's parts, once, so that working it out asks no questions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rleaas.verify import syntax, values
from rleaas.verify.functions import FUNCTIONS
from rleaas.verify.syntax import Node
from rleaas.verify.values import Fault, Value
from rleaas.verify.work import Work


class Frame:
    """One evaluation: its variables, and how much it may still look at."""

    __slots__ = ("names", "work")

    def __init__(self, names: Mapping[str, Value], within: Work | None = None) -> None:
        self.names = names
        self.work = Work(within=within)


Run = Callable[[Frame], Value]
Operator = Callable[[Value, Value], Value]
Charge = Callable[[Work, Value, Value], None]


def compiled(node: Node) -> Run:
    """The function that works a part out."""
    return _MAKERS[type(node)](node)


def _truth(node: Node) -> Run:
    """The function that works out a part which decides something: NaN decides nothing."""
    run = compiled(node)
    if isinstance(node, syntax.Comparison | syntax.Negation):
        return run
    position = node.position

    def decided(frame: Frame) -> Value:
        value = run(frame)
        if values.is_nan(value):
            raise Fault(values.NOT_A_NUMBER, position)
        return value

    return decided


def _items(node: syntax.Items) -> Run:
    parts = [compiled(one) for one in node.items]
    return lambda frame: [part(frame) for part in parts]


def _negation(node: syntax.Negation) -> Run:
    of = _truth(node.of)
    return lambda frame: not of(frame)


def _choice(node: syntax.Choice) -> Run:
    condition, yes, no = _truth(node.condition), compiled(node.yes), compiled(node.no)
    return lambda frame: yes(frame) if condition(frame) else no(frame)


def _literal(node: syntax.Literal) -> Run:
    value = node.value
    if isinstance(value, int) and abs(value) >= values.LARGEST_INTEGER:
        raise Fault("the number is too large", node.position)
    return lambda frame: value


def _name(node: syntax.Name) -> Run:
    name, position = node.name, node.position

    def run(frame: Frame) -> Value:
        try:
            return frame.names[name]
        except KeyError:
            raise Fault(f"there is no {name!r}", position) from None

    return run


def _field(node: syntax.Field) -> Run:
    of, name, position = compiled(node.of), node.name, node.position
    field = values.field

    def run(frame: Frame) -> Value:
        value = of(frame)
        try:
            return field(value, name)
        except Fault as fault:
            raise Fault(fault.reason, position) from None

    return run


def _item(node: syntax.Item) -> Run:
    of, key = compiled(node.of), compiled(node.key)
    return _placed(lambda frame: values.item(of(frame), key(frame)), node.position)


def _slice(node: syntax.Slice) -> Run:
    of = compiled(node.of)
    begin = None if node.begin is None else compiled(node.begin)
    end = None if node.end is None else compiled(node.end)

    def run(frame: Frame) -> Value:
        value = of(frame)
        frame.work.charge_length(value)
        return values.run_of(
            value,
            None if begin is None else begin(frame),
            None if end is None else end(frame),
        )

    return _placed(run, node.position)


def _call(node: syntax.Call) -> Run:
    function = FUNCTIONS[node.function]
    work, shown = function.work, function.shown
    charge = Work.charge_whole if function.compares else Work.charge_length
    parts = [compiled(one) for one in node.arguments]

    def run(frame: Frame) -> Value:
        arguments = [part(frame) for part in parts]
        for one in arguments:
            charge(frame.work, one)
        try:
            return work(arguments)
        except (ValueError, OverflowError, TypeError) as error:
            raise Fault(f"{shown} has no value here: {error}") from None

    return _placed(run, node.position)


def _junction(node: syntax.Junction) -> Run:
    *firsts, last_term = node.terms
    parts, last = [_truth(one) for one in firsts], compiled(last_term)
    stops = node.operator == "or"

    def run(frame: Frame) -> Value:
        for part in parts:
            value = part(frame)
            if bool(value) is stops:
                return value
        return last(frame)

    return run


def _comparison(node: syntax.Comparison) -> Run:
    first = compiled(node.first)
    links = [
        (_COMPARE[sign], _CHARGE.get(sign, Work.charge_pair), at, compiled(other))
        for sign, at, other in node.links
    ]
    if len(links) > 1:
        return _chained(first, links)
    ((compare, charge, position, other),) = links

    def run(frame: Frame) -> Value:
        left, right = first(frame), other(frame)
        try:
            if type(right) is not int and type(right) is not float:
                charge(frame.work, left, right)
            return compare(left, right)
        except Fault as fault:
            raise Fault(fault.reason, position) from None

    return run


def _chained(first: Run, links: Sequence[tuple[Operator, Charge, int, Run]]) -> Run:
    def run(frame: Frame) -> Value:
        left = first(frame)
        held: Value = True
        for compare, charge, position, other in links:
            right = other(frame)
            try:
                charge(frame.work, left, right)
                held = compare(left, right)
            except Fault as fault:
                raise Fault(fault.reason, position) from None
            if not held:
                break
            left = right
        return held

    return run


def _signed(node: syntax.Signed) -> Run:
    of = compiled(node.of)
    sign = values.negate if node.operator == "-" else values.confirm
    return _placed(lambda frame: sign(of(frame)), node.position)


def _power(node: syntax.Power) -> Run:
    base, exponent = compiled(node.base), compiled(node.exponent)
    return _placed(lambda frame: values.power(base(frame), exponent(frame)), node.position)


def _sum(node: syntax.Sum) -> Run:
    first = compiled(node.first)
    links = [(_ARITHMETIC[sign], at, compiled(other)) for sign, at, other in node.links]

    def run(frame: Frame) -> Value:
        value = first(frame)
        for work, position, other in links:
            right = other(frame)
            try:
                if type(value) not in _NUMBERS or type(right) not in _NUMBERS:
                    # Texts and lists are copied.
                    frame.work.charge_length(value)
                    frame.work.charge_length(right)
                value = work(value, right)
            except Fault as fault:
                raise Fault(fault.reason, position) from None
        return value

    return run


def _placed(run: Run, position: int) -> Run:
    def placed(frame: Frame) -> Value:
        try:
            return run(frame)
        except Fault as fault:
            if fault.position is not None:
                raise
            raise Fault(fault.reason, position) from None

    return placed


_COMPARE: Mapping[str, Operator] = {
    "==": values.equal,
    "!=": values.unequal,
    "<": values.ordered("<", operator.lt),
    "<=": values.ordered("<=", operator.le),
    ">": values.ordered(">", operator.gt),
    ">=": values.ordered(">=", operator.ge),
    "in": values.contains,
    "not in": values.lacks,
}
_CHARGE: Mapping[str, Charge] = {"in": Work.charge_search, "not in": Work.charge_search}
_NUMBERS = frozenset((int, float))
_ARITHMETIC: Mapping[str, Operator] = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "//": values.floor_divide,
    "%": values.remainder,
}
# Each maker takes the class that it stands beside.
_MAKERS: Mapping[type[Node], Callable[[Any], Run]] = {
    syntax.Literal: _literal,
    syntax.Name: _name,
    syntax.Field: _field,
    syntax.Item: _item,
    syntax.Slice: _slice,
    syntax.Call: _call,
    syntax.Items: _items,
    syntax.Signed: _signed,
    syntax.Negation: _negation,
    syntax.Junction: _junction,
    syntax.Comparison: _comparison,
    syntax.Sum: _sum,
    syntax.Power: _power,
    syntax.Choice: _choice,
}
