"""A curve of bounded size, however many points it was given."""

from __future__ import annotations

MOST_POINTS = 256


class Trace:
    """Keeps a curve: every value at first, then the last of every 2, 4, 8 … values.

    Adding costs constant time on average, and there are never more than 256 points.
    """

    def __init__(self) -> None:
        self._points: list[float] = []
        self._every = 1
        self._count = 0

    def add(self, value: float) -> None:
        """Add the next value."""
        self._count += 1
        if self._count % self._every == 0:
            self._points.append(value)
            if len(self._points) == MOST_POINTS:
                self._points = self._points[1::2]
                self._every *= 2

    @property
    def every(self) -> int:
        """How many values one point stands for."""
        return self._every

    def points(self) -> list[float]:
        """Return the points as they are now."""
        return list(self._points)
