"""What is said about values that could not travel as they are."""

from __future__ import annotations

from collections.abc import Iterable
from logging import Logger
from typing import Final

MOST: Final = 16
"""How many places one session is warned of: keys may change with each step."""


class Simplified:
    """Warns of values that were simplified: once of each place, and of so many places.

    Args:
        what: what they are, such as `info values`.
        log: where the warnings go.
    """

    def __init__(self, what: str, log: Logger) -> None:
        self._what = what
        self._log = log
        self._told: set[str] = set()
        self._is_over = False

    def note(self, paths: Iterable[str]) -> None:
        """Warn of the places that have not been told of."""
        if self._is_over:
            return
        new = sorted(set(paths) - self._told)
        if not new:
            return
        room = MOST - len(self._told)
        self._is_over = len(new) > room
        self._told.update(new[:room])
        self._log.warning(
            "%s that cannot travel as they are were simplified: %s%s",
            self._what,
            new[:room],
            " and more, which are not told of any more" if self._is_over else "",
        )
