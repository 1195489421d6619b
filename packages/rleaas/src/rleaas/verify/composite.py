"""`composite`: verifiers that count together."""

from __future__ import annotations

from dataclasses import dataclass

from rlcore import GraderError

from rleaas.verify.judge import Judge
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import DEFAULT_POLICY, Check, FailurePolicy, Verdict, usage_of
from rleaas.verify.work import MOST_OF_A_VERDICT, Work


@dataclass(frozen=True, slots=True)
class Component:
    """One verifier of several, with its share; below `floor` nothing else helps."""

    verifier_id: str
    judge: Judge
    weight: float = 1.0
    floor: float = 0.0


@dataclass(frozen=True, slots=True)
class Composite:
    """Judges by the weighted mean of its components' scores.

    It passes when the mean reaches `threshold` and each component its floor; a component that
    fails hard makes the score 0. Components that are disabled are left out (`skipped`), and the
    weights of the others count for the whole.
    """

    components: tuple[Component, ...]
    threshold: float = 0.75
    skipped: tuple[str, ...] = ()
    policy: FailurePolicy = DEFAULT_POLICY
    verifier: str = ""
    version: int | None = None

    @property
    def looks_at_observations(self) -> bool:
        """Whether a component does."""
        return any(one.judge.looks_at_observations for one in self.components)

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say what the components say together.

        Raises:
            GraderError: one of them could not judge; what the others say is no score of all.
        """
        checks: list[Check] = []
        raw = weights = 0.0
        hard = low = False
        account = work or Work(MOST_OF_A_VERDICT)
        for one in self.components:
            try:
                verdict = one.judge.judge(trajectory, account)
            except GraderError as error:
                raise GraderError(
                    self.verifier or "composite",
                    error.reason,
                    f"its component {one.verifier_id!r} could not: {error.detail}",
                    retryable=error.retryable,
                ) from error
            reached = verdict.score >= one.floor
            raw += one.weight * verdict.score
            weights += one.weight
            low = low or not reached
            hard = hard or verdict.failed_hard
            checks.append(
                Check(
                    one.verifier_id,
                    reached and not verdict.failed_hard,
                    _said(verdict, one.floor),
                    None,
                    verdict.score,
                    one.weight,
                    verdict,
                )
            )
        score = 0.0 if hard else raw / weights
        passed = not hard and not low and score >= self.threshold
        summary = f"score {score:.3g} where {self.threshold:g} passes"
        if self.skipped:
            summary += f", without the disabled {', '.join(self.skipped)}"
        reward = score if passed else score + self.policy.penalty
        return Verdict(
            score,
            passed,
            reward,
            tuple(checks),
            self.policy,
            summary,
            self.verifier,
            self.version,
            raw,
            usage_of(one.verdict.usage for one in checks if one.verdict is not None),
        )


def _said(verdict: Verdict, floor: float) -> str:
    if verdict.failed_hard:
        return f"failed hard: {verdict.explanation}"
    if verdict.score < floor:
        return f"score {verdict.score:.3g} below its floor {floor:g}: {verdict.explanation}"
    return verdict.explanation
