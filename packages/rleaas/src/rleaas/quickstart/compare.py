"""Whether the platform and this machine saw the same episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol


class Played(Protocol):
    """What is compared of an episode; the platform's records and rlmesh's results both have it."""

    @property
    def seed(self) -> int | None:
        """What the episode was reset with."""
        ...

    @property
    def steps(self) -> int:
        """How many steps it took."""
        ...

    @property
    def reward(self) -> float | None:
        """Its return; None for an episode without a score."""
        ...

    @property
    def outcome(self) -> str:
        """How it ended."""
        ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One seed, played on the platform and here; None where one side has no such episode."""

    platform: Played | None
    local: Played | None

    @property
    def seed(self) -> int | None:
        """The seed of either side."""
        present = self.platform or self.local
        return None if present is None else present.seed

    @property
    def agrees(self) -> bool:
        """Whether seed, steps, reward and outcome are the same; rewards to the last bit."""
        one, other = self.platform, self.local
        if one is None or other is None:
            return False
        return _facts(one) == _facts(other)

    def __str__(self) -> str:
        if self.agrees and self.platform is not None:
            return f"seed {self.seed}: {_short(self.platform)} on both"
        return f"seed {self.seed}: platform {_short(self.platform)}, local {_short(self.local)}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Every seed's pair, in order."""

    pairs: tuple[Pair, ...]

    @classmethod
    def between(cls, platform: Sequence[Played], local: Sequence[Played]) -> Agreement:
        """Pair the episodes by their place."""
        return cls(tuple(Pair(one, other) for one, other in zip_longest(platform, local)))

    @property
    def differing(self) -> tuple[Pair, ...]:
        """The pairs that do not agree."""
        return tuple(pair for pair in self.pairs if not pair.agrees)

    @property
    def complete(self) -> bool:
        """Whether there are episodes and every one agrees."""
        return bool(self.pairs) and not self.differing


def _facts(episode: Played) -> tuple[int | None, int, float | None, str]:
    return episode.seed, episode.steps, episode.reward, str(episode.outcome)


def _short(episode: Played | None) -> str:
    if episode is None:
        return "missing"
    reward = "no score" if episode.reward is None else f"{episode.reward:g}"
    return f"{reward} in {episode.steps} steps, {episode.outcome!s}"
