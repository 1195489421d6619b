"""Verifiers that judge an episode together, each with its weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rleaas.verify.judge import Judge
from rleaas.verify.outcome import Ungraded, judged
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class WeightedVerifier:
    """A verifier with its weight among others."""

    id: str
    weight: float
    judge: Judge


@dataclass(frozen=True, slots=True)
class Decision:
    """What the verifiers of an episode say together.

    Where one of them could not judge, there is no score, no pass and no reward: what the others say
    is no answer to what was asked.

    Attributes:
        outcomes: of each verifier, in their order.
        score: the weighted mean of the scores; 0 where one failed hard; None: one could not judge.
        passed: whether all passed; None: one could not judge.
        reward: the weighted sum of the rewards, penalties included; None: one could not judge.
        failed_hard: whether one failed the episode for good.
    """

    outcomes: tuple[Verdict | Ungraded, ...]
    score: float | None
    passed: bool | None
    reward: float | None
    failed_hard: bool

    @property
    def ungraded(self) -> tuple[Ungraded, ...]:
        """The verifiers that could not judge."""
        return tuple(one for one in self.outcomes if isinstance(one, Ungraded))

    @property
    def to_log(self) -> tuple[Verdict, ...]:
        """The failures that are to be told, as their verifiers' policies say."""
        return tuple(
            one
            for one in self.outcomes
            if isinstance(one, Verdict) and not one.passed and one.policy.log_failure
        )


def decide(verifiers: Sequence[WeightedVerifier], trajectory: Trajectory) -> Decision:
    """Let each verifier judge the episode, and put together what they say."""
    outcomes: list[Verdict | Ungraded] = []
    verdicts: list[tuple[float, Verdict]] = []
    for one in verifiers:
        outcome = judged(one.judge, trajectory)
        outcomes.append(outcome)
        if isinstance(outcome, Verdict):
            verdicts.append((one.weight, outcome))
    hard = any(verdict.failed_hard for _, verdict in verdicts)
    if len(verdicts) < len(outcomes) or not verdicts:
        return Decision(tuple(outcomes), None, None, None, hard)
    weights = sum(weight for weight, _ in verdicts)
    score = sum(weight * verdict.score for weight, verdict in verdicts) / weights
    return Decision(
        tuple(outcomes),
        0.0 if hard else score,
        all(verdict.passed for _, verdict in verdicts),
        sum(weight * verdict.reward for weight, verdict in verdicts),
        hard,
    )
