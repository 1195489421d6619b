"""What values expressions see, and what may be done with them, within limits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, cast

LARGEST_INTEGER = 2**1024
"""Whole numbers stay below this; floating-point numbers end there anyway."""
LONGEST = 100_000
"""Characters or items that an operator may make."""
MAX_ITEMS = 1_000_000
"""Numbers of one observation or action that an expression may look at."""

NOT_A_NUMBER = "NaN compares with nothing: which number it would be is not known"
_LONGEST_NAME = 100

# Whatever an environment says: what it is, is looked at where it is used.
Value = Any


class Fault(Exception):
    """An operation has no result; whoever knows the place tells of it."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class Record:
    """A value of ours whose fields expressions may read: those listed, and no others."""

    __slots__ = ()
    fields: ClassVar[Mapping[str, Callable[[Any], Value]]] = {}

    def parts(self) -> Sequence[Value]:
        """All that it holds: what comparing it looks at."""
        raise NotImplementedError


def field(value: Value, name: str) -> Value:
    """The part of a value with this name."""
    if isinstance(value, Mapping):
        try:
            return cast("Mapping[str, Value]", value)[name]
        except KeyError:
            known = cast("Mapping[str, Value]", value)
            raise Fault(f"there is no {name!r}{_near(name, known)}") from None
    if isinstance(value, Record):
        read = value.fields.get(name)
        if read is None:
            raise Fault(f"there is no {name!r}{_near(name, value.fields)}")
        return read(value)
    raise Fault(f"{kind(value)} has no {name!r}")


def item(value: Value, key: Value) -> Value:
    """The part of a value with this number or key."""
    if isinstance(value, Mapping):
        if isinstance(key, str) and key in value:
            return cast("Mapping[str, Value]", value)[key]
        raise Fault(f"there is no {shown(key)}")
    if not isinstance(value, list | tuple | str):
        raise Fault(f"{kind(value)} has no items")
    if not isinstance(key, int):
        raise Fault(f"the index of {kind(value)} is a whole number, not {kind(key)}")
    items = cast("Sequence[Value]", value)
    if not -len(items) <= key < len(items):
        raise Fault(f"there is no item {shown(key)} among {len(items)}")
    return items[key]


def run_of(value: Value, begin: Value, end: Value) -> Value:
    """The items of a value from one number to another."""
    if not isinstance(value, list | tuple | str):
        raise Fault(f"{kind(value)} has no items")
    for bound in (begin, end):
        if bound is not None and not isinstance(bound, int):
            raise Fault(f"the index of {kind(value)} is a whole number, not {kind(bound)}")
    return cast("Sequence[Value]", value)[begin:end]


def add(left: Value, right: Value) -> Value:
    """`left + right`, of numbers, texts or lists."""
    if isinstance(left, str) and isinstance(right, str):
        _fits(len(left) + len(right))
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        first, second = cast("list[Value]", left), cast("list[Value]", right)
        _fits(len(first) + len(second))
        return [*first, *second]
    return _numeric("+", operator.add, left, right)


def multiply(left: Value, right: Value) -> Value:
    """`left * right`, of numbers, or of a text or list of plain values and a count."""
    if isinstance(left, int) and isinstance(right, str | list | tuple):
        left, right = cast("Value", right), left
    if isinstance(left, str | list | tuple) and isinstance(right, int):
        items = cast("Sequence[Value]", left)
        _fits(len(items) * max(0, right))
        if any(isinstance(one, list | tuple | Mapping) for one in items):
            raise Fault("only a list of plain values can be repeated")
        return cast("Value", items) * right
    return _numeric("*", operator.mul, left, right)


def subtract(left: Value, right: Value) -> Value:
    """`left - right`."""
    return _numeric("-", operator.sub, left, right)


def divide(left: Value, right: Value) -> Value:
    """`left / right`."""
    return _numeric("/", _truediv, left, right)


def floor_divide(left: Value, right: Value) -> Value:
    """`left // right`."""
    return _numeric("//", _floordiv, left, right)


def remainder(left: Value, right: Value) -> Value:
    """`left % right`, of numbers: texts are not filled in."""
    return _numeric("%", operator.mod, left, right)


def power(left: Value, right: Value) -> Value:
    """`left ** right`, while it stays a number that a computer has room for."""
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and right > 0
        and left.bit_length() * right > 2_048
        and abs(left) > 1
    ):
        raise Fault("the number is too large")
    return _numeric("**", _pow, left, right)


def negate(value: Value) -> Value:
    """`-value`."""
    return -number(value, "-")


def confirm(value: Value) -> Value:
    """`+value`."""
    return +number(value, "+")


def equal(left: Value, right: Value) -> Value:
    """`left == right`, which NaN neither equals nor differs from."""
    if is_nan(left) or is_nan(right):
        raise Fault(NOT_A_NUMBER)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        first, second = cast("Sequence[Value]", left), cast("Sequence[Value]", right)
        if any(map(is_nan, first)) or any(map(is_nan, second)):
            raise Fault(NOT_A_NUMBER)
        return len(first) == len(second) and list(first) == list(second)
    return left == right


def unequal(left: Value, right: Value) -> Value:
    """`left != right`."""
    return not equal(left, right)


def contains(value: Value, within: Value) -> Value:
    """`value in within`, of a list, a text or the keys of an object."""
    if isinstance(within, list | tuple):
        items = cast("Sequence[Value]", within)
        if value in items and not is_nan(value):
            return True
        # What NaN would have been may be the value.
        if isinstance(value, int | float) and any(map(is_nan, (value, *items))):
            raise Fault(NOT_A_NUMBER)
        return False
    if isinstance(within, str):
        if isinstance(value, str):
            return value in within
        raise Fault(f"only text can be in a text, not {kind(value)}")
    if isinstance(within, Mapping):
        return isinstance(value, str) and value in within
    raise Fault(f"nothing can be in {kind(within)}")


def lacks(value: Value, within: Value) -> Value:
    """`value not in within`."""
    return not contains(value, within)


def ordered(sign: str, compare: Callable[[Value, Value], bool]) -> Callable[[Value, Value], Value]:
    """An operator that orders numbers, texts or lists."""

    def run(left: Value, right: Value) -> Value:
        if is_nan(left) or is_nan(right):
            raise Fault(NOT_A_NUMBER)
        try:
            return compare(left, right)
        except TypeError:
            raise Fault(f"{kind(left)} {sign} {kind(right)} compares nothing") from None

    return run


def is_nan(value: Value) -> bool:
    """Whether it is a number of which nobody knows which."""
    return type(value) is float and value != value


def number(value: Value, what: str) -> Value:
    """The value, if it is a number."""
    if not isinstance(value, int | float):
        raise Fault(f"{what} takes a number, not {kind(value)}")
    return value


def bounded(result: Value) -> Value:
    """A number that came out of an operation, if it is one and not too large."""
    if isinstance(result, int):
        if not -LARGEST_INTEGER < result < LARGEST_INTEGER:
            raise Fault("the number is too large")
    elif not isinstance(result, float):
        raise Fault("the result is no real number")
    return result


def kind(value: Value) -> str:
    """What a value is, in a word for people."""
    match value:
        case None:
            return "none"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__.lower()}"


def shown(value: Value) -> str:
    """A value as text for people, shortened."""
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        return "a huge number"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:60]}…")
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:60]}…"
    if isinstance(value, list | tuple | Mapping):
        return f"{kind(value)} of {len(cast('Sequence[Value]', value))}"
    return kind(value)


def data(value: object) -> Value:
    """A value as plain data: arrays become lists, their scalars numbers, bytes text.

    Raises:
        TypeError: it is something else, which no expression may touch.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {str(key): data(part) for key, part in pairs.items()}
    if isinstance(value, list | tuple):
        return [data(part) for part in cast("Sequence[object]", value)]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, bool | int | float | str):
        # numpy's float64 is a float, and an enumeration's member may be a str.
        return _plain(value)
    size = getattr(value, "size", None)
    convert = getattr(value, "tolist", None)
    if callable(convert) and isinstance(size, int):
        if size > MAX_ITEMS:
            raise TypeError(f"{size} numbers are more than an expression may look at ({MAX_ITEMS})")
        return data(convert())
    raise TypeError(f"{type(value).__name__} is no plain data")


def _plain(value: bool | int | float | str) -> Value:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return int.__int__(value)


def _numeric(sign: str, work: Callable[[Value, Value], Value], left: Value, right: Value) -> Value:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise Fault(f"{kind(left)} {sign} {kind(right)} means nothing")
    try:
        result = work(left, right)
    except ZeroDivisionError:
        raise Fault("division by zero") from None
    except OverflowError:
        raise Fault("the number is too large") from None
    return bounded(result)


def _truediv(left: Value, right: Value) -> Value:
    return left / right


def _floordiv(left: Value, right: Value) -> Value:
    return left // right


def _pow(left: Value, right: Value) -> Value:
    return left**right


def _fits(length: int) -> None:
    if length > LONGEST:
        raise Fault(f"the result would be longer than {LONGEST}")


def _near(name: str, known: Mapping[str, object]) -> str:
    import difflib

    if len(name) > _LONGEST_NAME:
        return ""
    names = [one for one in islice(known, 1_000) if len(one) <= _LONGEST_NAME]
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
