"""How much there is to look at, and how much of it may be looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import cast

from rleaas.verify.values import Fault, Record, Value

MOST_WORK = 2_000_000
"""Items that one evaluation may look at, over all of its functions and comparisons."""
MOST_OF_A_VERDICT = 5 * MOST_WORK
"""The same of all conditions together that one verdict takes."""
_LETTERS = 64
"""Letters of a text that are compared in the time of one number."""
_PLAIN = frozenset((int, float, bool, NoneType))
_WITH_PARTS = (list, tuple, dict, Record)


class Work:
    """What may still be looked at.

    Args:
        most: how many items, with all that lies in them.
        within: a larger account that this one counts against as well.
    """

    __slots__ = ("_most", "_within", "left")

    def __init__(self, most: int = MOST_WORK, within: Work | None = None) -> None:
        self._most = most
        self._within = within
        self.left: int = most if within is None else min(most, within.left)

    def charge(self, items: int) -> None:
        """Count items that are looked at.

        Raises:
            Fault: they are too many.
        """
        self.left -= items
        if self._within is not None:
            self._within.left -= items
        if self.left < 0:
            raise self._too_much()

    def _too_much(self) -> Fault:
        within = self._within
        if within is not None and within.left < 0:
            return Fault(f"the conditions together look at more than {within._most} items")
        return Fault(f"it looks at more than {self._most} items")

    def charge_length(self, value: Value) -> None:
        """Count the items of a value that is gone through once, without what lies in them."""
        if isinstance(value, list | tuple | str | dict):
            self.charge(len(cast("Sequence[Value]", value)))

    def charge_whole(self, value: Value) -> None:
        """Count a value with all that lies in it, as comparing it may look at all of that."""
        self.charge(weight(value, self.left + 1))

    def charge_pair(self, left: Value, right: Value) -> None:
        """Count a comparison of two values: it ends with the smaller one."""
        if type(left) in _PLAIN or type(right) in _PLAIN:
            return
        if _length(left) > _length(right):
            left, right = right, left
        smaller = weight(left, self.left + 1)
        self.charge(min(smaller, weight(right, smaller)))

    def charge_search(self, value: Value, within: Value) -> None:
        """Count looking for a value among those of a list, in a text or an object."""
        if isinstance(value, _WITH_PARTS):
            self.charge_whole(within)
        else:
            self.charge_length(within)
            if isinstance(value, str) and isinstance(within, list | tuple):
                self.charge(len(value) // _LETTERS * len(cast("Sequence[Value]", within)))


def weight(value: Value, limit: int) -> int:
    """How many items a value has with all that lies in them; from `limit` on it may be less."""
    if type(value) in _PLAIN:
        return 1
    if isinstance(value, str):
        return 1 + len(value) // _LETTERS
    if isinstance(value, dict):
        pairs = cast("Mapping[str, Value]", value)
        if len(pairs) >= limit:
            return limit
        total = sum(1 + len(key) // _LETTERS for key in pairs)
        return total + _weights(tuple(pairs.values()), limit - total)
    if isinstance(value, list | tuple):
        return 1 + _weights(cast("Sequence[Value]", value), limit)
    if isinstance(value, Record):
        return 1 + _weights(value.parts(), limit)
    return 1


def _weights(items: Sequence[Value], limit: int) -> int:
    if len(items) >= limit:
        return max(limit, 1)
    if _PLAIN.issuperset(map(type, items)):
        return len(items)
    total = 0
    for one in items:
        total += weight(one, limit - total)
        if total >= limit:
            break
    return total


def _length(value: Value) -> int:
    if isinstance(value, list | tuple | dict | str):
        return len(cast("Sequence[Value]", value))
    return 1
