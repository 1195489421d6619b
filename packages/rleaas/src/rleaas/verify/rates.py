"""Rates of errors, with the interval in which the true rate lies with 95 % confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959963984540054
"""The quantile of the normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many, with Wilson's score interval; without any there is no rate."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lower and the upper bound."""
        if not self.of:
            return None
        share, n = self.count / self.of, self.of
        spread = 1 + _Z * _Z / n
        centre = (share + _Z * _Z / (2 * n)) / spread
        half = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n)) / spread
        low = 0.0 if self.count == 0 else max(0.0, centre - half)
        high = 1.0 if self.count == n else min(1.0, centre + half)
        return low, high

    def __str__(self) -> str:
        if self.value is None or self.interval is None:
            return "none were judged"
        low, high = self.interval
        return f"{self.value:.1%} ({self.count} of {self.of}; 95 %: {low:.1%} to {high:.1%})"

    def to_dict(self) -> dict[str, object]:
        """The rate as JSON."""
        interval = self.interval
        return {
            "value": self.value,
            "count": self.count,
            "of": self.of,
            "interval": None if interval is None else list(interval),
        }
