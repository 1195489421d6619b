"""What an evaluation plays: each scenario with each seed, as often as was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rleaas.training.scenarios import Scenario

SEEDING: Final = 2
"""How policies' randomness is drawn now; 1 gave all scenarios of a seed the same one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodePlan:
    """One episode that is asked for.

    Attributes:
        index: its number, from 0.
        seed: the environment's seed.
        repetition: which time it is that scenario and seed are played.
        scenario: the task; None: whatever the environment does by itself.
        seeding: how `run_seed` is drawn; an evaluation that is played again keeps its own.
    """

    index: int
    seed: int
    repetition: int = 0
    scenario: Scenario | None = None
    seeding: int = SEEDING

    @property
    def run_seed(self) -> int:
        """What a policy's randomness follows: another one for each scenario and repetition.

        Episodes that share it are no independent evidence of what a policy does. Without scenarios
        the first repetition has the environment's own seed, as in a run without either.
        """
        told = "" if self.scenario is None or self.seeding == 1 else f" in {self.scenario.id}"
        if not self.repetition and not told:
            return self.seed
        drawn = hashlib.sha256(
            f"repetition {self.repetition} of {self.seed}{told}".encode()
        ).digest()
        return int.from_bytes(drawn[:4], "big")

    @property
    def pair(self) -> tuple[str | None, int, int]:
        """What the same episode of another evaluation has as well."""
        return (None if self.scenario is None else self.scenario.id, self.seed, self.repetition)


def episode_plans(
    seeds: Sequence[int],
    *,
    scenarios: Sequence[Scenario] = (),
    repetitions: int = 1,
    seeding: int = SEEDING,
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
        EpisodePlan(
            index=index, seed=seed, repetition=repetition, scenario=scenario, seeding=seeding
        )
        for index, (seed, repetition, scenario) in enumerate(asked)
    )
