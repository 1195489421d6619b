"""Whether a run is good enough: what `rlmesh run` ends with."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlcore.command_line import Misuse

if TYPE_CHECKING:
    from rlmesh.runs.results import RunResult

PASSED, FAILED, MISSED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run has to reach; `confident` holds the lower ends of intervals against it."""

    min_success: float | None = None
    min_reward: float | None = None
    confident: bool = False
    allow_failures: int = 0

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Gate":
        """Return the gate that a command line asks for.

        Raises:
            Misuse: it asks to be confident of nothing.
        """
        gate = cls(
            options.min_success, options.min_reward, options.confident, options.allow_failures
        )
        if gate.confident and not gate.asks:
            raise Misuse("--confident needs --min-success or --min-reward")
        return gate

    @property
    def asks(self) -> bool:
        """Whether a score has to be reached at all."""
        return self.min_success is not None or self.min_reward is not None

    def judge(self, result: "RunResult") -> tuple[int, list[str]]:
        """Return the exit code, and a sentence for each condition.

        Raises:
            Misuse: a success rate is asked for, and an episode does not say whether it succeeded.
        """
        coverage = result.coverage
        missing = coverage.asked - coverage.scored
        said: list[str] = []
        if missing:
            verb = "allowed" if missing <= self.allow_failures else "too many"
            said.append(f"{missing} of {coverage.asked} episodes have no score: {verb}")
        held = list(self._held(result))
        for what, found, asked in held:
            verb = "passed" if found >= asked else "missed"
            said.append(f"{verb}: {what} is {found:.4g}, asked for {asked:g}")
        if missing > self.allow_failures or not coverage.scored:
            return FAILED, said
        return (PASSED if all(found >= asked for _, found, asked in held) else MISSED), said

    def _held(self, result: "RunResult") -> Iterator[tuple[str, float, float]]:
        from rlmesh.runs.statistics import wilson_interval

        asked = result.coverage.asked
        if self.min_success is not None and result.scored_episodes:
            if result.success_rate is None:
                raise Misuse(
                    "--min-success: the environment does not say which episodes succeeded",
                    hint="give --success-key or --success-threshold",
                )
            successes = sum(episode.success is True for episode in result.episodes)
            # What has no score counts into the rate: a failure is never a success.
            if self.confident:
                low = wilson_interval(successes, asked).low
                yield "the lower end of the success rate", low, self.min_success
            else:
                yield "the success rate", successes / asked, self.min_success
        if self.min_reward is not None and result.scored_episodes:
            interval = result.mean_reward_interval
            if not self.confident:
                yield "the mean reward", result.mean_reward, self.min_reward
            elif interval is None:
                raise Misuse("--confident needs at least two episodes")
            else:
                yield "the lower end of the mean reward", interval.low, self.min_reward
