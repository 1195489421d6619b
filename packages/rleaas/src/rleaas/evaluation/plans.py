"""What an evaluation plays: each scenario with each seed, as often as was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from rleaas.training.scenarios import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodePlan:
    """One episode that is asked for.

    Attributes:
        index: its number, from 0.
        seed: the environment's seed.
        repetition: which time it is that scenario and seed are played.
        scenario: the task; None: whatever the environment does by itself.
    """

    index: int
    seed: int
    repetition: int = 0
    scenario: Scenario | None = None

    @property
    def run_seed(self) -> int:
        """What a policy's randomness follows: another one for each repetition.

        The first has the environment's own seed, as in a run without repetitions.
        """
        if not self.repetition:
            return self.seed
        drawn = hashlib.sha256(f"repetition {self.repetition} of {self.seed}".encode()).digest()
        return int.from_bytes(drawn[:4], "big")

    @property
    def pair(self) -> tuple[str | None, int, int]:
        """What the same episode of another evaluation has as well."""
        return (None if self.scenario is None else self.scenario.id, self.seed, self.repetition)


def episode_plans(
    seeds: Sequence[int], *, scenarios: Sequence[Scenario] = (), repetitions: int = 1
) -> tuple[EpisodePlan, ...]:
    """Return the episodes in their order: all scenarios with the first seed, then the second.

    Whatever ends it early, scenarios have been played about equally often.
    """
    chosen: Sequence[Scenario | None] = scenarios or (None,)
    asked = [
        (seed, repetition, scenario)
        for repetition in range(repetitions)
        for seed in seeds
        for scenario in chosen
    ]
    return tuple(
        EpisodePlan(index=index, seed=seed, repetition=repetition, scenario=scenario)
        for index, (seed, repetition, scenario) in enumerate(asked)
    )
