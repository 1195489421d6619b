"""Cohen's kappa: how far two raters agree beyond what chance alone would give."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two raters agree on the same items.

    Attributes:
        judged: how many items both have judged.
        observed: the share of them on which they say the same.
        expected: the share on which chance would make them say the same.
        kappa: (observed - expected) / (1 - expected); None where that is no number: nothing was
            judged, or both have always said one and the same.
        interval: its 95 % interval by the standard error of Cohen (1960), within [-1, 1]; None
            where all items agree, or none, for which that error is nought whatever their number.
    """

    judged: int
    observed: float | None
    expected: float | None
    kappa: float | None
    interval: tuple[float, float] | None

    def to_dict(self) -> dict[str, object]:
        """The agreement as JSON."""
        return {
            "judged": self.judged,
            "observed": self.observed,
            "expected": self.expected,
            "kappa": self.kappa,
            "interval": None if self.interval is None else list(self.interval),
        }


def cohens_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Agreement:
    """Return the agreement of two raters, a pair of categories for each item."""
    count = len(pairs)
    if not count:
        return Agreement(judged=0, observed=None, expected=None, kappa=None, interval=None)
    observed = sum(one == other for one, other in pairs) / count
    first = Counter(one for one, _ in pairs)
    second = Counter(other for _, other in pairs)
    # In whole numbers, so that certainty is exactly 1.
    by_chance = sum(first[category] * second[category] for category in first)
    expected = by_chance / count**2
    if by_chance == count**2:
        return Agreement(
            judged=count, observed=observed, expected=expected, kappa=None, interval=None
        )
    kappa = (observed - expected) / (1 - expected)
    error = math.sqrt(observed * (1 - observed) / (count * (1 - expected) ** 2))
    half = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * error
    return Agreement(
        judged=count,
        observed=observed,
        expected=expected,
        kappa=kappa,
        interval=(max(-1.0, kappa - half), min(1.0, kappa + half)) if half > 0 else None,
    )
