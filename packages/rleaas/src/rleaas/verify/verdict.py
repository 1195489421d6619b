"""What a verifier says of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePolicy:
    """What follows when an episode fails.

    Attributes:
        hard_fail: the episode is no success, whatever else is said of it; a composite that has
            the verifier as a component scores 0.
        penalty: added to the reward; negative numbers take away.
        log_failure: whether it is told.
    """

    hard_fail: bool = False
    penalty: float = 0.0
    log_failure: bool = True


DEFAULT_POLICY = FailurePolicy()
SCORED = "scored"
GRADER_ERROR = "grader_error"
"""What a verifier's answer can be; an episode that it could not judge has no score."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: the condition, the rule or the component.
        passed: whether it holds.
        detail: what was found, where there is more to say.
        error: why it could not be told; then it did not pass.
        score: how far, where that is more than yes or no.
        weight: its share, of a component.
        verdict: what the component said.
    """

    name: str
    passed: bool
    detail: str | None = None
    error: str | None = None
    score: float | None = None
    weight: float | None = None
    verdict: Verdict | None = None

    def to_dict(self) -> dict[str, object]:
        """The check as JSON."""
        found: dict[str, object] = {"name": self.name, "passed": self.passed}
        for key in ("detail", "error", "score", "weight"):
            value = getattr(self, key)
            if value is not None:
                found[key] = value
        if self.verdict is not None:
            found["verdict"] = self.verdict.to_dict()
        return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score from 0 to 1, whether the episode passed, and why.

    Attributes:
        score: from 0 to 1.
        passed: whether it is good enough.
        reward: what training adds for it, the penalty of a failure included.
        checks: what was looked at, one by one.
        policy: what follows when it failed.
        summary: the outcome in a sentence.
        verifier: the id of the verifier; empty: it has none.
        version: its version.
        raw_score: of a composite, the weighted sum before it was divided by the weights.
        usage: what language models cost for it: `calls`, `cached`, `input_tokens` and
            `output_tokens`; None: none was asked.
    """

    score: float
    passed: bool
    reward: float
    checks: tuple[Check, ...]
    policy: FailurePolicy = DEFAULT_POLICY
    summary: str = ""
    verifier: str = ""
    version: int | None = None
    raw_score: float | None = None
    usage: Mapping[str, int] | None = None

    @property
    def failed_hard(self) -> bool:
        """Whether the episode failed for good."""
        return self.policy.hard_fail and not self.passed

    @property
    def explanation(self) -> str:
        """Why, in words."""
        said = self.summary or ("passed" if self.passed else "failed")
        missed = [_why(check) for check in self.checks if not check.passed]
        return f"{said}: {'; '.join(missed)}" if missed else said

    def to_dict(self) -> dict[str, object]:
        """The verdict as JSON."""
        breakdown: dict[str, object] = {"checks": [check.to_dict() for check in self.checks]}
        if self.raw_score is not None:
            breakdown["raw_score"] = self.raw_score
        found: dict[str, object] = {
            "outcome": SCORED,
            "score": self.score,
            "passed": self.passed,
            "reward": self.reward,
            "hard_fail": self.failed_hard,
            "breakdown": breakdown,
            "summary": self.summary,
            "explanation": self.explanation,
            "failure_policy": asdict(self.policy),
        }
        if self.verifier:
            found["verifier_id"] = self.verifier
        if self.version is not None:
            found["version"] = self.version
        if self.usage is not None:
            found["usage"] = dict(self.usage)
        return found


def usage_of(verdicts: Iterable[Mapping[str, int] | None]) -> dict[str, int] | None:
    """What several cost together; None: no language model was asked for any of them."""
    total: dict[str, int] | None = None
    for one in verdicts:
        if one is not None:
            total = {key: (total or {}).get(key, 0) + count for key, count in one.items()}
    return total


def verdict_of(said: Mapping[str, Any]) -> Verdict:
    """The verdict that `to_dict` told.

    Raises:
        KeyError: it is none.
    """
    breakdown: Mapping[str, Any] = said["breakdown"]
    policy: Mapping[str, Any] = said["failure_policy"]
    return Verdict(
        said["score"],
        said["passed"],
        said["reward"],
        tuple(_check_of(one) for one in breakdown["checks"]),
        FailurePolicy(**policy),
        said["summary"],
        said.get("verifier_id", ""),
        said.get("version"),
        breakdown.get("raw_score"),
        said.get("usage"),
    )


def _check_of(said: Mapping[str, Any]) -> Check:
    inner = said.get("verdict")
    return Check(
        said["name"],
        said["passed"],
        said.get("detail"),
        said.get("error"),
        said.get("score"),
        said.get("weight"),
        None if inner is None else verdict_of(inner),
    )


def _why(check: Check) -> str:
    more = check.error or check.detail
    return f"{check.name} ({more})" if more else check.name
