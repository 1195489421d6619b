"""How sure the episodes of an evaluation let us be of what they say of the agent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rlmesh.runs.statistics import Interval

CONFIDENCE: Final = 0.95


class Played(NamedTuple):
    """What of an episode tells whether it is evidence beside another one."""

    scenario_id: str | None
    seed: int | None
    actions_digest: str | None
    outcome: str | None
    reward: float | None
    score: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Episodes by what makes them alike.

    Episodes of one scenario are alike, where there are two scenarios or more; else those of one
    seed; and those that are the same to the letter, whatever their seeds, are one.

    Attributes:
        by: what the clusters are: `scenario`, `seed` or `episode`.
        clusters: of which one each episode is.
        distinct: how many episodes are no copy of another one.
    """

    by: str
    clusters: tuple[Hashable, ...]
    distinct: int

    @property
    def is_plain(self) -> bool:
        """Whether each episode is evidence of its own."""
        return len(set(self.clusters)) == len(self.clusters)

    def told(self) -> dict[str, object]:
        """What a report says of it."""
        return {
            "confidence": CONFIDENCE,
            "clustered_by": self.by,
            "clusters": len(set(self.clusters)),
            "episodes": len(self.clusters),
            "distinct_episodes": self.distinct,
        }

    def of_rate(self, passed: Sequence[bool]) -> list[float] | None:
        """The interval of a rate over these episodes; None: there are none."""
        if not passed:
            return None
        from rlmesh.runs.clustered import clustered_rate_interval
        from rlmesh.runs.statistics import wilson_interval

        if self.is_plain:
            return list(wilson_interval(sum(passed), len(passed), CONFIDENCE))
        found = clustered_rate_interval(passed, self.clusters, CONFIDENCE, distinct=self.distinct)
        return list(found)

    def of_mean(
        self, values: Sequence[float], within: tuple[float, float] | None = None
    ) -> list[float] | None:
        """The interval of a mean over these episodes; no further than the values can be.

        Of noughts and ones it is that of their rate. None: there is one cluster, or nothing
        differs, which tells nothing of how much it might.
        """
        if not values:
            return None
        if all(value in (0.0, 1.0) for value in values):
            return self.of_rate([value == 1.0 for value in values])
        found = self._of_mean(values)
        if found is None or found.low == found.high:
            return None
        low, high = within or found
        return [max(low, found.low), min(high, found.high)]

    def _of_mean(self, values: Sequence[float]) -> Interval | None:
        from rlmesh.runs.clustered import clustered_mean_interval
        from rlmesh.runs.statistics import bootstrap_mean_interval

        if not self.is_plain:
            return clustered_mean_interval(values, self.clusters, CONFIDENCE)
        # Sorted: the same values have the same interval, in whatever order they are read.
        return bootstrap_mean_interval(sorted(values), CONFIDENCE) if len(values) > 1 else None


def evidence_of(episodes: Sequence[Played]) -> Evidence:
    """What these episodes are evidence of."""
    copies = [_copy(place, one) for place, one in enumerate(episodes)]
    distinct = len(set(copies))
    scenarios = [one.scenario_id for one in episodes]
    if len(set(scenarios)) > 1:
        return Evidence("scenario", tuple(scenarios), distinct)
    seeds = [one.seed for one in episodes]
    if 1 < len(set(seeds)) < len(seeds):
        return Evidence("seed", tuple(seeds), distinct)
    return Evidence("episode", tuple(copies), distinct)


def _copy(place: int, one: Played) -> Hashable:
    """What the episodes share that are the same to the letter."""
    if one.actions_digest is None:
        return place
    return one.scenario_id, one.actions_digest, one.outcome, one.reward, one.score
