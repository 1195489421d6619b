"""`trajectory_based`: which tools were called, and in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import cast

from rleaas.verify import logic as read
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import DEFAULT_POLICY, Check, FailurePolicy, Verdict
from rleaas.verify.work import Work

KEYS = (
    "required_actions",
    "ordering_constraints",
    "forbidden_actions",
    "partial_credit_rubric",
    "max_allowed_steps",
    "explanation_required",
)
WRONG_ORDER = "required_actions_met_ordering_violated"
SOME_REQUIRED = "partial_required_actions"


@dataclass(frozen=True, slots=True)
class Order:
    """Judges by the tools that were called.

    A forbidden one scores 0. All required ones in their order score 1 and pass; all of them in a
    wrong order score `wrong_order`; some of them score `some_required` times their share. An
    episode with more steps than `most_steps` does not pass, and scores at most `wrong_order`.
    """

    required: tuple[str, ...] = ()
    ordering: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[str, ...] = ()
    wrong_order: float = 0.5
    some_required: float = 0.3
    most_steps: int | None = None
    policy: FailurePolicy = DEFAULT_POLICY
    verifier: str = ""
    version: int | None = None

    @property
    def looks_at_observations(self) -> bool:
        """It looks at names of tools only."""
        return False

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say how far the episode did what it was to do."""
        # Where each tool was called first, and so each is looked up once.
        called: dict[str, int] = {}
        for place, tool in enumerate(trajectory.tool_calls):
            called.setdefault(tool, place)
        checks = [Check(f"{tool} is called", tool in called) for tool in self.required]
        done = sum(check.passed for check in checks)
        broken = False
        for before, after in self.ordering:
            kept = after not in called or (before in called and called[before] < called[after])
            broken = broken or not kept
            checks.append(Check(f"{before} comes before {after}", kept))
        used = False
        for tool in self.forbidden:
            used = used or tool in called
            checks.append(Check(f"{tool} is not called", tool not in called))
        long = self.most_steps is not None and trajectory.length > self.most_steps
        if self.most_steps is not None:
            checks.append(
                Check(f"at most {self.most_steps} steps", not long, f"{trajectory.length} steps")
            )
        score, summary = self._score(done, broken, used, long)
        passed = not (used or long or broken) and done == len(self.required)
        reward = score if passed else score + self.policy.penalty
        return Verdict(
            score, passed, reward, tuple(checks), self.policy, summary, self.verifier, self.version
        )

    def _score(self, done: int, broken: bool, used: bool, long: bool) -> tuple[float, str]:
        if used:
            return 0.0, "a forbidden tool was called"
        if done < len(self.required):
            share = self.some_required * done / len(self.required)
            score, said = share, f"{done} of {len(self.required)} required tools were called"
        elif broken:
            score, said = self.wrong_order, "the tools were called in a wrong order"
        else:
            score, said = 1.0, "the tools were called as required"
        if long:
            return min(score, self.wrong_order), f"{said}, in too many steps"
        return score, said


def read_order(
    logic: Mapping[str, object],
    policy: FailurePolicy,
    *,
    where: str,
    verifier: str,
    version: int | None,
) -> Order:
    """The verifier that a record describes.

    Raises:
        ConfigurationError: a part of it is wrong.
    """
    read.require_known(logic, KEYS, where)
    rubric = logic.get("partial_credit_rubric")
    if rubric is not None and not isinstance(rubric, Mapping):
        raise read.refused(where, "partial_credit_rubric is an object")
    shares = cast("Mapping[str, object]", rubric or {})
    read.require_known(shares, (WRONG_ORDER, SOME_REQUIRED), f"{where}: partial_credit_rubric")
    most = logic.get("max_allowed_steps")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise read.refused(where, f"max_allowed_steps is a whole number above 0, not {most!r}")
    required, forbidden = (
        tuple(dict.fromkeys(read.texts(logic, key, where)))
        for key in ("required_actions", "forbidden_actions")
    )
    both = set(required) & set(forbidden)
    if both:
        raise read.refused(where, f"{min(both)!r} is required and forbidden")
    ordering = tuple(
        _pair(one, where) for one in read.objects(logic, "ordering_constraints", where)
    )
    _require_possible(ordering, where)
    return Order(
        required,
        ordering,
        forbidden,
        read.share(shares, WRONG_ORDER, 0.5, where),
        read.share(shares, SOME_REQUIRED, 0.3, where),
        most,
        policy,
        verifier,
        version,
    )


def _pair(constraint: Mapping[str, object], where: str) -> tuple[str, str]:
    read.require_known(constraint, ("before", "after"), f"{where}: ordering_constraints")
    before, after = constraint.get("before"), constraint.get("after")
    if not isinstance(before, str) or not isinstance(after, str) or not before or not after:
        raise read.refused(where, "an ordering constraint names the tools 'before' and 'after'")
    if before == after:
        raise read.refused(where, f"{before!r} cannot come before itself")
    return before, after


def _require_possible(ordering: Sequence[tuple[str, str]], where: str) -> None:
    """Refuse constraints that go in a circle, which no episode that calls their tools can keep."""
    after: dict[str, list[str]] = {}
    for before, later in ordering:
        after.setdefault(before, []).append(later)
    sorter = TopologicalSorter(after)
    try:
        sorter.prepare()
    except CycleError as error:
        circle = cast("Sequence[str]", error.args[1])[::-1]
        raise read.refused(
            where,
            f"ordering_constraints go in a circle: {' before '.join(map(repr, circle))}",
            "Take one of them out",
        ) from error
