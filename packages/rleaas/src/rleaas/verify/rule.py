"""`rule_based`: conditions that hold or do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlcore import ExpressionError

from rleaas.verify import logic as read
from rleaas.verify.expression import Expression
from rleaas.verify.soundness import require_sound
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.values import NOT_A_NUMBER, is_nan
from rleaas.verify.verdict import DEFAULT_POLICY, Check, FailurePolicy, Verdict
from rleaas.verify.work import MOST_OF_A_VERDICT, Work

MOST_CONDITIONS = 100
KEYS = (
    "conditions",
    "condition_logic",
    "reward_on_pass",
    "reward_on_fail",
    "compliance_tags",
    "explanation_required",
)
_SEEN_BY = frozenset(("steps", "observations", "observation"))


@dataclass(frozen=True, slots=True)
class Rule:
    """Judges by conditions: all of them must hold (`AND`), or one of them (`OR`).

    The score is 1 or 0; the reward is `reward_on_pass` or `reward_on_fail`. A condition that has
    no value, as a name in it is not there, does not hold, and the check says why.
    """

    conditions: tuple[Expression, ...]
    needs_all: bool = True
    reward_on_pass: float = 1.0
    reward_on_fail: float = 0.0
    policy: FailurePolicy = DEFAULT_POLICY
    verifier: str = ""
    version: int | None = None

    @property
    def looks_at_observations(self) -> bool:
        """Whether a condition may ask for what was observed."""
        return any(one.fields & _SEEN_BY or "steps" in one.names for one in self.conditions)

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say whether the episode keeps the conditions."""
        names = trajectory.names
        account = work or Work(MOST_OF_A_VERDICT)
        checks: list[Check] = []
        held = 0
        for condition in self.conditions:
            try:
                value = condition.evaluate(names, account)
            except ExpressionError as error:
                checks.append(Check(condition.text, False, None, error.reason))
            else:
                if is_nan(value):
                    checks.append(Check(condition.text, False, None, NOT_A_NUMBER))
                    continue
                holds = bool(value)
                held += holds
                checks.append(Check(condition.text, holds))
        passed = held == len(checks) if self.needs_all else held > 0
        reward = self.reward_on_pass if passed else self.reward_on_fail + self.policy.penalty
        return Verdict(
            1.0 if passed else 0.0,
            passed,
            reward,
            tuple(checks),
            self.policy,
            f"{held} of {len(checks)} conditions hold",
            self.verifier,
            self.version,
        )


def read_rule(
    logic: Mapping[str, object],
    policy: FailurePolicy,
    *,
    where: str,
    verifier: str,
    version: int | None,
) -> Rule:
    """The verifier that a record describes.

    Raises:
        ExpressionError: a condition cannot be read; a caret shows where.
        ConfigurationError: another part is wrong.
    """
    read.require_known(logic, KEYS, where)
    texts = read.texts(logic, "conditions", where)
    if len(texts) > MOST_CONDITIONS:
        raise read.refused(where, f"{len(texts)} conditions are more than {MOST_CONDITIONS}")
    word = logic.get("condition_logic") or "AND"
    if not isinstance(word, str) or word.upper() not in ("AND", "OR"):
        raise read.refused(where, f"condition_logic is AND or OR, not {word!r}")
    read.texts(logic, "compliance_tags", where)
    conditions = tuple(_condition(text, index, where) for index, text in enumerate(texts, 1))
    return Rule(
        conditions,
        word.upper() == "AND",
        read.number(logic, "reward_on_pass", 1.0, where),
        read.number(logic, "reward_on_fail", 0.0, where),
        policy,
        verifier,
        version,
    )


def _condition(text: str, number: int, where: str) -> Expression:
    try:
        condition = Expression(text)
        require_sound(text, condition.node)
        return condition
    except ExpressionError as error:
        raise ExpressionError(
            f"{where}: condition {number}: {error.reason}",
            expression=error.expression,
            position=error.position,
            hint=error.hint,
        ) from error
