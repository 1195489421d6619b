"""Reading JSON that a stranger wrote: every value has the type that it should have, or is told."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from rlcore import BundleError

LARGEST_INT: Final = 2**128
LARGEST_NUMBER: Final = 1e300
"""Beyond this, sums of numbers that are finite would not be."""


class Row:
    """An object of a JSON document, whose values are read by their type.

    Args:
        data: what should be an object.
        what: how errors call it.

    Raises:
        BundleError: it is none; likewise of every method, where a value is missing or of another
            type.
    """

    def __init__(self, data: object, what: str) -> None:
        if not isinstance(data, dict):
            raise BundleError(f"{what} is {_brief(data)}, and no JSON object")
        self.data = cast("dict[str, Any]", data)  # Any: JSON
        self._what = what

    @classmethod
    def of(cls, data: Row | Mapping[str, Any], what: str) -> Row:  # Any: JSON
        """Return the row that something is, or is the data of."""
        return data if isinstance(data, Row) else cls(data, what)

    def text(self, key: str) -> str:
        """Return a text."""
        value: object = self._get(key)
        if not isinstance(value, str):
            raise self._odd(key, value, "a text")
        return value

    def maybe_text(self, key: str) -> str | None:
        """Return a text; None where it is null or missing, as in the other ones of this name."""
        return None if self.data.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value: object = self._get(key)
        if not isinstance(value, bool):
            raise self._odd(key, value, "true or false")
        return value

    def maybe_flag(self, key: str) -> bool | None:
        """Return true, false, or None."""
        return None if self.data.get(key) is None else self.flag(key)

    def integer(self, key: str) -> int:
        """Return an integer below 2**128."""
        value: object = self._get(key)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= LARGEST_INT:
            raise self._odd(key, value, "an integer")
        return value

    def count(self, key: str) -> int:
        """Return an integer of at least 0."""
        value = self.integer(key)
        if value < 0:
            raise self._odd(key, value, "a count")
        return value

    def maybe_integer(self, key: str) -> int | None:
        """Return an integer, or None."""
        return None if self.data.get(key) is None else self.integer(key)

    def number(self, key: str) -> float:
        """Return a finite number of at most 1e300."""
        value: object = self._get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._odd(key, value, "a number")
        if not abs(value) <= LARGEST_NUMBER:
            raise self._odd(key, value, "a finite number")
        return float(value)

    def maybe_number(self, key: str) -> float | None:
        """Return a number, or None."""
        return None if self.data.get(key) is None else self.number(key)

    def mapping(self, key: str) -> dict[str, Any]:  # Any: JSON
        """Return an object as it is; an empty one where it is null or missing."""
        value: object = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._odd(key, value, "an object")
        return cast("dict[str, Any]", value)

    def rows(self, key: str) -> Iterator[Row]:
        """Return the objects of a list."""
        value: object = self._get(key)
        if not isinstance(value, list):
            raise self._odd(key, value, "a list")
        listed = cast("list[object]", value)
        return (Row(item, f"{self._what}.{key}[{at}]") for at, item in enumerate(listed))

    def maybe_rows(self, key: str) -> Iterator[Row]:
        """Return the objects of a list; none where it is null or missing."""
        return iter(()) if self.data.get(key) is None else self.rows(key)

    def _get(self, key: str) -> object:
        if key not in self.data:
            raise BundleError(f"{self._what} has no {key!r}")
        return self.data[key]

    def _odd(self, key: str, value: object, wanted: str) -> BundleError:
        return BundleError(f"{key!r} of {self._what} is {_brief(value)}, and not {wanted}")


def _brief(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return f"{value!r:.80}" if not isinstance(value, int) or abs(value) < LARGEST_INT else "huge"
