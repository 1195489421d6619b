"""One moment after which nobody waits any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment in monotonic time, or never.

    One deadline travels through a whole call, so that its parts share the patience of the whole.
    """

    moment: float | None
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)

    @classmethod
    def after(
        cls, seconds: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> Deadline:
        """Return the deadline that many seconds from now; None means never."""
        return cls(None if seconds is None else clock() + seconds, clock)

    def remaining(self) -> float | None:
        """Return the seconds left, never below zero, or None when there is no limit."""
        if self.moment is None:
            return None
        return max(0.0, self.moment - self.clock())

    def expired(self) -> bool:
        """Tell whether the moment has passed."""
        return self.moment is not None and self.clock() >= self.moment

    def at_most(self, seconds: float) -> float:
        """Return `seconds`, or what is left when that is less: how long the next wait may be."""
        remaining = self.remaining()
        return seconds if remaining is None else min(seconds, remaining)
