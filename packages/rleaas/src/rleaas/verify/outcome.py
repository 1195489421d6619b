"""What came of asking a verifier: a verdict, or that it could not judge."""

from __future__ import annotations

from dataclasses import dataclass

from rlcore import GraderError

from rleaas.verify.judge import Judge
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import GRADER_ERROR, Verdict


@dataclass(frozen=True, slots=True)
class Ungraded:
    """A verifier could not judge: there is no score, and neither a pass nor a failure.

    Attributes:
        verifier: its id; empty: it has none.
        version: its version.
        reason: `prose`, `invalid_answer`, `out_of_scale`, `timeout`, `unreachable`, `refused`,
            `too_large` or `exception`.
        detail: what happened.
    """

    verifier: str
    version: int | None
    reason: str
    detail: str

    @property
    def explanation(self) -> str:
        """Why, in words."""
        return f"no verdict ({self.reason}): {self.detail}"

    def to_dict(self) -> dict[str, object]:
        """The outcome as JSON, with the keys of a verdict."""
        found: dict[str, object] = {
            "outcome": GRADER_ERROR,
            "score": None,
            "passed": None,
            "reward": None,
            "hard_fail": False,
            "breakdown": {"checks": []},
            "error": {"reason": self.reason, "detail": self.detail},
            "explanation": self.explanation,
        }
        if self.verifier:
            found["verifier_id"] = self.verifier
        if self.version is not None:
            found["version"] = self.version
        return found


def judged(judge: Judge, trajectory: Trajectory) -> Verdict | Ungraded:
    """The verdict, or why there is none."""
    try:
        return judge.judge(trajectory)
    except GraderError as error:
        return Ungraded(judge.verifier, judge.version, error.reason, error.detail)
