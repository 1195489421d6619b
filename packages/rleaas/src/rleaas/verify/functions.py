"""The functions that expressions may call: these, and no others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from rleaas.verify.values import NOT_A_NUMBER, Fault, Value, bounded, equal, is_nan, kind, number

Work = Callable[[Sequence[Value]], Value]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: how it is written, how many arguments it takes, what it does.

    `compares` says that it looks at what lies in its arguments' items.
    """

    shown: str
    least: int
    most: int
    work: Work
    compares: bool = False

    @property
    def takes(self) -> str:
        """How many arguments, in words."""
        if self.least == self.most:
            return f"{self.least} argument{'' if self.least == 1 else 's'}"
        return f"{self.least} to {self.most} arguments"


def _len(arguments: Sequence[Value]) -> Value:
    value = arguments[0]
    if not isinstance(value, str | list | tuple | Mapping):
        raise Fault(f"{kind(value)} has no length")
    return len(cast("Sequence[Value]", value))


def _count(arguments: Sequence[Value]) -> Value:
    if isinstance(arguments[0], str) and isinstance(arguments[1], str):
        return arguments[0].count(arguments[1])
    return sum(1 for one in _items(arguments[0], "count") if equal(one, arguments[1]))


def _index(arguments: Sequence[Value]) -> Value:
    for place, one in enumerate(_items(arguments[0], "index")):
        if equal(one, arguments[1]):
            return place
    return -1


def _get(arguments: Sequence[Value]) -> Value:
    value, key = arguments[0], arguments[1]
    default = arguments[2] if len(arguments) > 2 else None
    if isinstance(value, Mapping):
        return cast("Mapping[str, Value]", value).get(key, default) if _hashable(key) else default
    items = _items(value, "get")
    return items[key] if isinstance(key, int) and -len(items) <= key < len(items) else default


def _hashable(key: Value) -> bool:
    return isinstance(key, str)


def _any(arguments: Sequence[Value]) -> Value:
    return any(_items(arguments[0], "any"))


def _all(arguments: Sequence[Value]) -> Value:
    return all(_items(arguments[0], "all"))


def _sum(arguments: Sequence[Value]) -> Value:
    total: Value = 0
    for one in _items(arguments[0], "sum"):
        total = bounded(total + number(one, "sum"))
    return total


def _mean(arguments: Sequence[Value]) -> Value:
    items = _items(arguments[0], "mean")
    if not items:
        raise Fault("there is no mean of nothing")
    return _sum([items]) / len(items)


def _extreme(name: str, choose: Callable[[Sequence[Value]], Value]) -> Work:
    def work(arguments: Sequence[Value]) -> Value:
        items = _items(arguments[0], name) if len(arguments) == 1 else arguments
        if not items:
            raise Fault(f"there is no {name} of nothing")
        if any(map(is_nan, items)):
            raise Fault(NOT_A_NUMBER)
        try:
            return choose(items)
        except TypeError:
            raise Fault(f"{name} takes only numbers, or only texts") from None

    return work


def _abs(arguments: Sequence[Value]) -> Value:
    return abs(number(arguments[0], "abs"))


def _round(arguments: Sequence[Value]) -> Value:
    digits = arguments[1] if len(arguments) > 1 else None
    if digits is not None and (not isinstance(digits, int) or abs(digits) > 20):
        raise Fault("round takes from -20 to 20 digits")
    return bounded(round(number(arguments[0], "round"), digits))


def _clip(arguments: Sequence[Value]) -> Value:
    value, low, high = (number(one, "clip") for one in arguments)
    if any(map(is_nan, (value, low, high))):
        raise Fault(NOT_A_NUMBER)
    if low > high:
        raise Fault("clip takes the lower limit before the upper one")
    return min(max(value, low), high)


def _sign(arguments: Sequence[Value]) -> Value:
    value = number(arguments[0], "sign")
    if is_nan(value):
        raise Fault(NOT_A_NUMBER)
    return (value > 0) - (value < 0)


def _norm(arguments: Sequence[Value]) -> Value:
    return math.hypot(*(number(one, "norm") for one in _items(arguments[0], "norm")))


def _real(name: str, work: Callable[[float], float]) -> Work:
    return lambda arguments: bounded(work(number(arguments[0], name)))


def _lower(arguments: Sequence[Value]) -> Value:
    return _text(arguments[0], "lower").lower()


def _starts(arguments: Sequence[Value]) -> Value:
    return _text(arguments[0], "starts_with").startswith(_text(arguments[1], "starts_with"))


def _ends(arguments: Sequence[Value]) -> Value:
    return _text(arguments[0], "ends_with").endswith(_text(arguments[1], "ends_with"))


def _number(arguments: Sequence[Value]) -> Value:
    value = arguments[0]
    if isinstance(value, str) and len(value) <= 100:
        try:
            return float(value)
        except ValueError:
            raise Fault(f"{value!r} is no number") from None
    return float(number(value, "number"))


def _text(value: Value, name: str) -> str:
    if not isinstance(value, str):
        raise Fault(f"{name} takes text, not {kind(value)}")
    return value


def _items(value: Value, name: str) -> Sequence[Value]:
    if not isinstance(value, list | tuple):
        raise Fault(f"{name} takes a list, not {kind(value)}")
    return cast("Sequence[Value]", value)


MOST_ARGUMENTS = 100

FUNCTIONS: Mapping[str, Function] = {
    "len": Function("len(x)", 1, 1, _len),
    "count": Function("count(list, value)", 2, 2, _count, compares=True),
    "index": Function("index(list, value)", 2, 2, _index, compares=True),
    "get": Function("get(object, key, default)", 2, 3, _get),
    "any": Function("any(list)", 1, 1, _any),
    "all": Function("all(list)", 1, 1, _all),
    "sum": Function("sum(list)", 1, 1, _sum),
    "mean": Function("mean(list)", 1, 1, _mean),
    "min": Function("min(list)", 1, MOST_ARGUMENTS, _extreme("min", min), compares=True),
    "max": Function("max(list)", 1, MOST_ARGUMENTS, _extreme("max", max), compares=True),
    "abs": Function("abs(x)", 1, 1, _abs),
    "round": Function("round(x, digits)", 1, 2, _round),
    "clip": Function("clip(x, low, high)", 3, 3, _clip),
    "sign": Function("sign(x)", 1, 1, _sign),
    "norm": Function("norm(list)", 1, 1, _norm),
    "sqrt": Function("sqrt(x)", 1, 1, _real("sqrt", math.sqrt)),
    "exp": Function("exp(x)", 1, 1, _real("exp", math.exp)),
    "log": Function("log(x)", 1, 1, _real("log", math.log)),
    "sin": Function("sin(x)", 1, 1, _real("sin", math.sin)),
    "cos": Function("cos(x)", 1, 1, _real("cos", math.cos)),
    "tanh": Function("tanh(x)", 1, 1, _real("tanh", math.tanh)),
    "floor": Function("floor(x)", 1, 1, _real("floor", math.floor)),
    "ceil": Function("ceil(x)", 1, 1, _real("ceil", math.ceil)),
    "number": Function("number(x)", 1, 1, _number),
    "lower": Function("lower(text)", 1, 1, _lower),
    "starts_with": Function("starts_with(text, text)", 2, 2, _starts),
    "ends_with": Function("ends_with(text, text)", 2, 2, _ends),
}
