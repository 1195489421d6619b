"""Grader tests: what a verifier says of episodes whose worth is known, and of tricks on them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rlcore import ConfigurationError

from rleaas.verify.composite import Composite
from rleaas.verify.judge import Judge
from rleaas.verify.llm_judge import LlmJudge
from rleaas.verify.outcome import Ungraded, judged
from rleaas.verify.probes import Probe, Read, probes_of
from rleaas.verify.rates import Rate
from rleaas.verify.rule import Rule
from rleaas.verify.syntax import Literal, Node, parts_of
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.values import Value
from rleaas.verify.verdict import Verdict

MOST_KNOWN = 1_000
LEAST_KNOWN = 5
"""So many different good and so many different bad episodes make a verifier audited. They are few:
with none wrong, the true rate of errors is up to 43 %; but one of each shows next to nothing."""
PROBED = 3
"""So many good and so many bad episodes are played tricks with, where no other number is asked."""
REPEATS = 3
MOST_VALUES = 20
"""Constants of conditions that tricks are played with."""
_CRASH = "crash"
SLOWEST_SECONDS = 10.0
"""A verdict of a huge episode that takes longer is a fault, unless a model was asked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a verifier does wrong.

    Attributes:
        probe: `known_good`, `known_bad`, `empty`, `truncated`, `reordered`, `duplicated`, `nan`,
            `huge`, `injection`, `agent_writable` or `repeatability`.
        case: with which episode.
        detail: what it said.
    """

    probe: str
    case: str
    detail: str

    def to_dict(self) -> dict[str, object]:
        """The finding as JSON."""
        return {"probe": self.probe, "case": self.case, "detail": self.detail}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """One kind of trick: how often it was played, and what came of it.

    Attributes:
        cases: how many episodes.
        passed: how many of these passed; of those that were made of good ones, that is no fault.
        errors: how many could not be judged, which is no fault either.
        faults: how many verdicts were wrong.
    """

    cases: int = 0
    passed: int = 0
    errors: int = 0
    faults: int = 0

    def to_dict(self) -> dict[str, object]:
        """The counts as JSON."""
        return {
            "cases": self.cases,
            "passed": self.passed,
            "grader_errors": self.errors,
            "faults": self.faults,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit found.

    Attributes:
        verifier: the id of the verifier; empty: it has none.
        version: its version.
        false_positives: bad episodes that passed, of those that were judged.
        false_negatives: good episodes that failed, of those that were judged.
        grader_errors: known episodes that could not be judged.
        spread: the largest difference between scores of the same episode.
        probes: the tricks, by kind.
        findings: what was wrong.
        seconds: how long it took.
        good: how many different good episodes there were.
        bad: how many different bad ones.
    """

    verifier: str
    version: int | None
    false_positives: Rate
    false_negatives: Rate
    grader_errors: int
    spread: float
    probes: dict[str, Probed]
    findings: tuple[Finding, ...]
    seconds: float
    good: int
    bad: int

    @property
    def passed(self) -> bool:
        """Whether nothing was wrong."""
        return not self.findings

    @property
    def is_enough(self) -> bool:
        """Whether there were as many episodes as make a verifier audited."""
        return min(self.good, self.bad) >= LEAST_KNOWN

    def to_dict(self) -> dict[str, object]:
        """The report as JSON."""
        return {
            "verifier_id": self.verifier,
            "version": self.version,
            "passed": self.passed,
            "false_positive_rate": self.false_positives.to_dict(),
            "false_negative_rate": self.false_negatives.to_dict(),
            "grader_errors": self.grader_errors,
            "score_spread": self.spread,
            "probes": {kind: one.to_dict() for kind, one in self.probes.items()},
            "findings": [one.to_dict() for one in self.findings],
            "seconds": round(self.seconds, 3),
            "evidence": {
                "good": self.good,
                "bad": self.bad,
                "least": LEAST_KNOWN,
                "enough": self.is_enough,
            },
        }

    def __str__(self) -> str:
        lines = [
            f"audit of {self.verifier or 'the verifier'}: {'passed' if self.passed else 'FAILED'}",
            f"  false positives: {self.false_positives}",
            f"  false negatives: {self.false_negatives}",
        ]
        lines += [
            f"  {kind}: {one.cases} episodes, {one.faults} faults"
            for kind, one in self.probes.items()
        ]
        if not self.is_enough:
            lines.append(
                f"  {self.good} good and {self.bad} bad episodes are too few to call it audited: "
                f"give {LEAST_KNOWN} different ones of each"
            )
        lines += [f"  ! {one.probe}, {one.case}: {one.detail}" for one in self.findings]
        return "\n".join(lines)


def audit(
    judge: Judge,
    *,
    good: Iterable[Trajectory],
    bad: Iterable[Trajectory],
    repeats: int = REPEATS,
    probed: int = PROBED,
    allow_empty: bool = False,
    most_wrong: float = 0.0,
) -> AuditReport:
    """Test a verifier with episodes whose worth is known.

    Each known episode is judged `repeats` times, which have to say the same. Then tricks are played
    with the first `probed` good and bad ones: an episode that is still bad may not pass, nor one in
    which nothing happened. Language models are asked anew, whatever was kept.

    Args:
        judge: the verifier.
        good: episodes that have to pass.
        bad: episodes that have to fail.
        repeats: how often each is judged, from 1 on.
        probed: how many of each are played tricks with.
        allow_empty: whether an episode in which nothing happened may pass, as for a verifier that
            only forbids.
        most_wrong: the share of the known good, and of the known bad ones, that may be judged
            wrongly; 0 is what a rule can do.

    Raises:
        ConfigurationError: there is no good or no bad episode, or more than a thousand.
    """
    known_good, known_bad = list(good), list(bad)
    _require_known(known_good, known_bad, repeats)
    return _Audit(fresh(judge), allow_empty, most_wrong).run(known_good, known_bad, repeats, probed)


def fresh(judge: Judge) -> Judge:
    """The judge without answers that were kept."""
    if isinstance(judge, LlmJudge):
        return replace(judge, cache=None)
    if isinstance(judge, Composite):
        parts = tuple(replace(one, judge=fresh(one.judge)) for one in judge.components)
        return replace(judge, components=parts)
    return judge


class _Audit:
    def __init__(self, judge: Judge, allow_empty: bool, most_wrong: float) -> None:
        self._judge = judge
        self._allow_empty = allow_empty
        self._most_wrong = most_wrong
        self._findings: list[Finding] = []
        self._probes: dict[str, Probed] = {}
        self._spread = 0.0
        self._errors = 0

    def run(
        self,
        good: Sequence[Trajectory],
        bad: Sequence[Trajectory],
        repeats: int,
        probed: int,
    ) -> AuditReport:
        began = time.monotonic()
        negatives = self._known("known_good", good, True, repeats)
        positives = self._known("known_bad", bad, False, repeats)
        for probe in probes_of(good[:probed], bad[:probed], read_by(self._judge)):
            self._probe(probe)
        return AuditReport(
            verifier=self._judge.verifier,
            version=self._judge.version,
            false_positives=positives,
            false_negatives=negatives,
            grader_errors=self._errors,
            spread=self._spread,
            probes=self._probes,
            findings=tuple(self._findings),
            seconds=time.monotonic() - began,
            good=_different(good),
            bad=_different(bad),
        )

    def _known(
        self, probe: str, episodes: Sequence[Trajectory], expected: bool, repeats: int
    ) -> Rate:
        wrong: list[Finding] = []
        judged_ones = 0
        for number, episode in enumerate(episodes, 1):
            case = f"{probe.removeprefix('known_')} {number}"
            outcomes = [self._outcome(episode) for _ in range(repeats)]
            self._compare(case, outcomes)
            first = outcomes[0]
            if isinstance(first, Ungraded):
                self._errors += 1
                self._findings.append(Finding(probe, case, first.explanation))
                continue
            judged_ones += 1
            self._require_sound(probe, case, first)
            if first.passed is not expected:
                word = "it passed" if first.passed else "it failed"
                wrong.append(Finding(probe, case, f"{word}: {first.explanation[:500]}"))
        if judged_ones and len(wrong) / judged_ones > self._most_wrong:
            self._findings += wrong
        return Rate(len(wrong), judged_ones)

    def _compare(self, case: str, outcomes: Sequence[Verdict | Ungraded]) -> None:
        verdicts = [one for one in outcomes if isinstance(one, Verdict)]
        if not verdicts:
            return
        scores = [one.score for one in verdicts]
        self._spread = max(self._spread, max(scores) - min(scores))
        if len({one.passed for one in verdicts}) > 1 or len(verdicts) < len(outcomes):
            told = [one.passed if isinstance(one, Verdict) else one.reason for one in outcomes]
            self._findings.append(
                Finding("repeatability", case, f"asked again, it says something else: {told}")
            )

    def _probe(self, probe: Probe) -> None:
        before = self._probes.get(probe.kind, Probed())
        found = len(self._findings)
        began = time.monotonic()
        outcome = self._outcome(probe.trajectory)
        took = time.monotonic() - began
        passed = isinstance(outcome, Verdict) and outcome.passed
        if isinstance(outcome, Ungraded) and outcome.reason == _CRASH:
            self._findings.append(Finding(probe.kind, probe.case, outcome.explanation))
        if isinstance(outcome, Verdict):
            self._require_sound(probe.kind, probe.case, outcome)
            if passed and not self._may_pass(probe):
                self._findings.append(
                    Finding(probe.kind, probe.case, f"it passed: {outcome.explanation[:500]}")
                )
            if took > SLOWEST_SECONDS and not _asks_a_model(self._judge):
                self._findings.append(Finding(probe.kind, probe.case, f"it took {took:.1f} s"))
        self._probes[probe.kind] = Probed(
            cases=before.cases + 1,
            passed=before.passed + passed,
            errors=before.errors + isinstance(outcome, Ungraded),
            faults=before.faults + (len(self._findings) - found),
        )

    def _may_pass(self, probe: Probe) -> bool:
        return probe.may_pass or (probe.kind == "empty" and self._allow_empty)

    def _outcome(self, trajectory: Trajectory) -> Verdict | Ungraded:
        try:
            return judged(self._judge, trajectory)
        except Exception as error:
            # A verifier that breaks is what an audit is there to find.
            return Ungraded(
                self._judge.verifier,
                self._judge.version,
                _CRASH,
                f"{type(error).__name__}: {error}",
            )

    def _require_sound(self, probe: str, case: str, verdict: Verdict) -> None:
        if not (math.isfinite(verdict.score) and 0 <= verdict.score <= 1):
            self._findings.append(Finding(probe, case, f"its score is {verdict.score!r}"))
        if not math.isfinite(verdict.reward):
            self._findings.append(Finding(probe, case, f"its reward is {verdict.reward!r}"))


def read_by(judge: Judge) -> Read:
    """What a verifier's conditions read, with those of its components."""
    if isinstance(judge, Composite):
        parts = [read_by(one.judge) for one in judge.components]
        names = frozenset[str]().union(*(one.names for one in parts))
        return Read(names, tuple(value for one in parts for value in one.values)[:MOST_VALUES])
    if not isinstance(judge, Rule):
        return Read()
    names = frozenset[str]().union(*(one.names for one in judge.conditions))
    values = [value for one in judge.conditions for value in constants(one.node)]
    return Read(names, tuple(values)[:MOST_VALUES])


def constants(node: Node) -> Iterator[Value]:
    """The constants in a condition."""
    if isinstance(node, Literal):
        yield node.value
    for part in parts_of(node):
        yield from constants(part)


def _asks_a_model(judge: Judge) -> bool:
    if isinstance(judge, Composite):
        return any(_asks_a_model(one.judge) for one in judge.components)
    return isinstance(judge, LlmJudge)


def _require_known(good: Sequence[Trajectory], bad: Sequence[Trajectory], repeats: int) -> None:
    for word, episodes in (("good", good), ("bad", bad)):
        if not episodes:
            raise ConfigurationError(
                f"an audit needs at least one episode that is known to be {word}",
                code="audit_without_episodes",
                hint="Give trajectories, or an environment whose scenarios have a reference and a "
                "known-bad solution",
            )
        if len(episodes) > MOST_KNOWN:
            raise ConfigurationError(f"{len(episodes)} {word} episodes are over {MOST_KNOWN}")
    if repeats < 1:
        raise ConfigurationError(f"repeats is from 1 on, not {repeats}")


def _different(episodes: Sequence[Trajectory]) -> int:
    return len({repr(one) for one in episodes})
