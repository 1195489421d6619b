"""What checks have found, as values: one finding for each check, one report for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from rlcore import ConfigurationError


class Verdict(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOTED = "noted"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a play something was seen, and how to get there again.

    Attributes:
        seed: what the episode was reset with.
        action_seed: what the action space, whose samples were the actions, was seeded with.
        step: the number of the step, from 1; 0 is the reset.
    """

    seed: int
    action_seed: int
    step: int

    def to_dict(self) -> dict[str, int]:
        """Return the place as plain data."""
        return {"seed": self.seed, "action_seed": self.action_seed, "step": self.step}

    def __str__(self) -> str:
        if self.step == 0:
            return f"reset(seed={self.seed})"
        return (
            f"step {self.step} after reset(seed={self.seed}), action_space.seed({self.action_seed})"
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check has found.

    Attributes:
        verdict: passed, failed, noted (legal, and worth knowing) or skipped.
        seen: what was seen.
        fix: what to do about it; empty where there is nothing to do.
        place: where it was seen, if it was seen at one place.
        name: the check.
    """

    verdict: Verdict
    seen: str
    fix: str = ""
    place: Place | None = None
    name: str = ""

    def named(self, name: str) -> Finding:
        """Return the finding under the name of its check."""
        return replace(self, name=name)

    def to_dict(self) -> dict[str, object]:
        """Return the finding as plain data."""
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "seen": self.seen,
            "fix": self.fix,
            "reproduce": None if self.place is None else self.place.to_dict(),
        }

    def __str__(self) -> str:
        parts = [f"{self.name} {self.verdict}: {self.seen}"]
        if self.place is not None:
            parts.append(f"at {self.place}")
        if self.fix:
            parts.append(self.fix)
        return "\n".join(parts)


def passed(seen: str) -> Finding:
    """Return the finding that all is well."""
    return Finding(Verdict.PASSED, seen)


def failed(seen: str, fix: str, place: Place | None = None) -> Finding:
    """Return the finding that something is wrong."""
    return Finding(Verdict.FAILED, seen, fix, place)


def noted(seen: str, fix: str = "", place: Place | None = None) -> Finding:
    """Return the finding that something legal is worth knowing."""
    return Finding(Verdict.NOTED, seen, fix, place)


def skipped(reason: str) -> Finding:
    """Return the finding that there was nothing to judge."""
    return Finding(Verdict.SKIPPED, reason)


@dataclass(frozen=True, slots=True)
class Report:
    """The findings about one environment.

    Attributes:
        target: what was checked, as it was named.
        environment: its id.
        digest: the digest of its contract; None where it has none.
        seeds: the seeds of the plays.
        steps: the steps of each play.
        seconds: how long the checks took.
        findings: one for each check, in the order of the checks.
    """

    target: str
    environment: str
    digest: str | None
    seeds: tuple[int, ...]
    steps: int
    seconds: float
    findings: tuple[Finding, ...]

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of a check.

        Raises:
            ConfigurationError: the report has no check of that name.
        """
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise ConfigurationError(
            f"the report about {self.target!r} has no check {name!r}",
            hint=f"It has {', '.join(finding.name for finding in self.findings)}.",
        )

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def of(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Return the findings with a verdict."""
        return tuple(finding for finding in self.findings if finding.verdict is verdict)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings of what is wrong."""
        return self.of(Verdict.FAILED)

    def conforms(self, *, strict: bool = False) -> bool:
        """Return whether nothing failed; with `strict`, whether nothing was noted either."""
        return not self.failed and not (strict and self.of(Verdict.NOTED))

    def counts(self) -> dict[str, int]:
        """Return how many checks ended with each verdict."""
        return {verdict.value: len(self.of(verdict)) for verdict in Verdict}

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain data."""
        return {
            "target": self.target,
            "environment": self.environment,
            "digest": self.digest,
            "seeds": list(self.seeds),
            "steps": self.steps,
            "seconds": self.seconds,
            "counts": self.counts(),
            "checks": [finding.to_dict() for finding in self.findings],
        }

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items())
        return f"{self.environment} ({self.target}): {counts}"
