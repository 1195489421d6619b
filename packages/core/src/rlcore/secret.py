"""A text that does not print."""

from __future__ import annotations

import hmac
from typing import NoReturn, final


@final
class Secret:
    """Holds a key or token; only `reveal()` gives it back.

    Compares in constant time. It is not picklable, so it gets into no file or process by accident.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself, for the one line that sends it."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        # Four characters tell two keys apart; of a short secret they would be too much of it.
        return f"Secret('…{self._value[-4:] if len(self._value) >= 12 else ''}')"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Secret cannot be pickled; pass on the text of reveal() where it is needed"
        )
