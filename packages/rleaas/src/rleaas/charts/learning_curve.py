"""How a training went, episode by episode: pure numbers, drawn elsewhere."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

from rlcore import ConfigurationError

Axis = Literal["episode", "timestep", "wall_seconds"]

AXES: Final[Mapping[Axis, str]] = {
    "episode": "episode",
    "timestep": "environment steps",
    "wall_seconds": "seconds of training",
}
LARGEST_WINDOW: Final = 100


@dataclass(frozen=True, slots=True)
class Episode:
    """One finished episode; None is what nobody told."""

    episode: int
    reward: float
    timestep: float | None = None
    wall_seconds: float | None = None
    success_rate: float | None = None
    tier: int | None = None

    def at(self, axis: Axis) -> float:
        """Return where it lies on an axis; without a number there, nowhere."""
        place = self.episode if axis == "episode" else getattr(self, axis)
        return math.nan if place is None else float(place)


@dataclass(frozen=True, slots=True)
class Band:
    """A running mean, and how far the episodes lie around it.

    `low` and `high` are one standard deviation (of the episodes in the window, divided by their
    number) below and above the mean.
    """

    mean: list[float]
    low: list[float]
    high: list[float]


class LearningCurve:
    """The episodes of a training so far, in their order; a later word on an episode counts.

    Args:
        points: what was measured after each, in the words of the platform: `episode`,
            `episode_reward` and, where told, `timestep`, `wall_seconds`, `success_rate`, `tier`.
    """

    def __init__(self, points: Iterable[Mapping[str, object]] = ()) -> None:
        self._by_number: dict[int, Episode] = {}
        self._order: list[int] = []
        for point in points:
            self.add(point)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def episodes(self) -> list[Episode]:
        """The episodes, the first one first."""
        return [self._by_number[number] for number in self._order]

    def add(self, point: Mapping[str, object]) -> bool:
        """Take a point; return whether it was the end of an episode."""
        number, reward = point.get("episode"), _number(point.get("episode_reward"))
        if not isinstance(number, int) or isinstance(number, bool) or reward is None:
            return False
        if number not in self._by_number:
            insort(self._order, number)
        tier = point.get("tier")
        self._by_number[number] = Episode(
            number,
            reward,
            _number(point.get("timestep")),
            _number(point.get("wall_seconds")),
            _number(point.get("success_rate")),
            tier if isinstance(tier, int) and not isinstance(tier, bool) else None,
        )
        return True

    def forget_after(self, episode: int) -> None:
        """Forget later episodes: the training was set back to this one."""
        keep = bisect_left(self._order, episode + 1)
        for number in self._order[keep:]:
            del self._by_number[number]
        del self._order[keep:]

    def window(self) -> int:
        """Return how many episodes a running mean is over by default: a tenth, at most 100."""
        return max(1, min(LARGEST_WINDOW, len(self) // 10))

    def band(self, window: int, every: int = 1) -> Band:
        """Return the running mean over so many episodes, or over all while there are fewer.

        Args:
            window: how many.
            every: a value for the first episode, and for each so many further on.

        Raises:
            ConfigurationError: the window is no whole number from 1.
        """
        require_window(window)
        rewards = [one.reward for one in self.episodes]
        band = Band([], [], [])
        for end in range(1, len(rewards) + 1, every):
            part = rewards[max(0, end - window) : end]
            mean = math.fsum(part) / len(part)
            deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in part) / len(part))
            band.mean.append(mean)
            band.low.append(mean - deviation)
            band.high.append(mean + deviation)
        return band

    def tiers(self) -> list[tuple[Episode, int]]:
        """Return the first episode of each tier that follows another, with that tier."""
        told = [(one, one.tier) for one in self.episodes if one.tier is not None]
        return [(later, tier) for (_, before), (later, tier) in pairwise(told) if tier != before]


def require_window(window: object) -> None:
    """Refuse what is no number of episodes.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ConfigurationError(
            f"window {window!r} is not a whole number from 1",
            hint="It is how many episodes the running mean is over.",
        )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
