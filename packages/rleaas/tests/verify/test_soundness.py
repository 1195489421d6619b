"""Conditions that can only fail, or only hold, are refused before any episode is there."""

import math
from typing import cast

import pytest
from rlcore import ExpressionError
from rleaas.sims import VERTICALS
from rleaas.verify import Definition, Step, ToolCall, Trajectory, check, judge_of
from rleaas.verify.sorts import RECORDS


def rule(condition: str) -> Definition:
    return Definition(type="rule_based", name="r", logic={"conditions": [condition]})


def refusal(condition: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as refused:
        check(rule(condition))
    return refused.value


@pytest.mark.parametrize(
    ("condition", "at", "nearest"),
    [
        ("'a' not in trajectory.tool_callz", "tool_callz", "tool_calls"),
        ("trajectory.steps[0].tol == 'a'", "tol ", "tool"),
        ("trajectory.calls[-1].argument.amount > 3", "argument.", "arguments"),
        ("'a' in trajectory . toolcalls", "toolcalls", "tool_calls"),
    ],
)
def test_a_field_that_trajectories_do_not_have_is_refused_with_the_nearest_one(
    condition: str, at: str, nearest: str
) -> None:
    error = refusal(condition)

    assert error.position == condition.index(at)
    assert error.hint == f"Did you mean {nearest!r}?"
    assert f"\n  {' ' * condition.index(at)}^" in str(error)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("1/0 > x", "division by zero"),
        ("x and 1/0", "division by zero"),
        ("2**99999999 > x", "the number is too large"),
        ("len([1]*999999999) > x", "the result would be longer than 100000"),
        ("s in 5", "nothing can be in a number"),
        ("trajectory.length > '5'", "a number > text compares nothing"),
        ("'5' < trajectory.length", "text < a number compares nothing"),
        ("trajectory.tool_calls.length > 1", "a list has no 'length'"),
        ("trajectory.tool_calls['a'] == 'b'", "the index of a list is a whole number, not text"),
        ("trajectory['tool_calls'] == 'b'", "a trajectory has no items"),
        ("trajectory.length[0] == 1", "a number has no items"),
    ],
)
def test_what_no_episode_could_give_a_value_is_refused(condition: str, reason: str) -> None:
    error = refusal(condition)

    assert error.reason == f"rule_based: condition 1: {reason}".replace(
        "rule_based", "verifier 'r'"
    )
    assert error.position is not None


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        (
            "'run_aml_check' or 'x' in trajectory.tool_calls",
            "Write 'run_aml_check' in trajectory.tool_calls or 'x' in trajectory.tool_calls",
        ),
        (
            "'x' in trajectory.tool_calls AND 'run_aml_check'",
            "Write 'run_aml_check' in trajectory.tool_calls and 'x' in trajectory.tool_calls",
        ),
        ("decision == 'a' or 'b'", "Write decision == 'a' or decision == 'b'"),
        (
            "('a' or 'b') in trajectory.tool_calls",
            "Compare it with something, or write true or false",
        ),
        ("'yes'", "Compare it with something, or write true or false"),
        ("1", "Compare it with something, or write true or false"),
        ("1 + 1", "Compare it with something, or write true or false"),
        ("none", "Compare it with something, or write true or false"),
        ("approved and []", "Compare it with something, or write true or false"),
        ("x if y else 'a'", "Compare it with something, or write true or false"),
        ("trajectory.tool_calls", "Write 'name_of_a_tool' in trajectory.tool_calls"),
        ("not trajectory.steps[1:]", "Write len(...) > 0, or == 0"),
        ("trajectory.length", "Compare it, as in trajectory.length > 0"),
        ("state", "Compare a part of it with something"),
    ],
)
def test_what_is_neither_true_nor_false_is_refused_with_what_is_likely_meant(
    condition: str, meant: str
) -> None:
    error = refusal(condition)

    assert error.hint == meant
    assert error.position is not None


@pytest.mark.parametrize(
    "condition",
    [
        # Those of the seed's README and of the published contract.
        "'run_aml_check' in trajectory.tool_calls",
        "transfer_amount <= 200000",
        "transfer_amount <= 200000 OR 'request_approval' in trajectory.tool_calls",
        "NOT ('a' in trajectory.tool_calls) and trajectory.steps[0].tool == 'b'",
        "approved",
        "state.approved and not blocked",
        "true",
        "1 == 1",
        "(name or 'none') == 'x'",
        "(x or 3) > 2",
        "trajectory.steps[-1].tool",
        "trajectory.steps[-1].result.ok and trajectory.calls[0].arguments.amount < 5",
        "count(trajectory.tool_calls, 'x')",
        "trajectory.actions[0]['key'].inner == 1 and trajectory.tool_calls[:2] == ['a', 'b']",
        "('a' if x > 1 else 'b') == y",
        "any([x > 1, y]) and not trajectory.truncated",
    ],
)
def test_conditions_that_an_episode_decides_are_accepted(condition: str) -> None:
    check(rule(condition))


def test_all_conditions_of_the_built_in_worlds_are_accepted() -> None:
    for vertical in VERTICALS.values():
        for scenario in vertical.scenarios:
            logic = cast("dict[str, object]", scenario.success["logic"])
            check(Definition(type="rule_based", name=scenario.id, logic=logic))


def test_sorts_know_every_field_that_conditions_may_read() -> None:
    told = {kind: set(sort.fields or ()) for kind, sort in RECORDS.items()}

    assert told == {kind: set(kind.fields) for kind in (Trajectory, Step, ToolCall)}


@pytest.mark.parametrize(
    "condition",
    [
        "not (risk > 0.8)",
        "risk != 0",
        "not (risk == 0)",
        "risk not in [1, 2]",
        "1 not in [2, risk]",
        "[risk] != [1]",
        "max(0, risk) < 1",
        "clip(risk, 0, 1) < 2",
        "sign(risk) != 1",
        "0 < 1 < risk or not (0 < risk < 1)",
        "not (not risk)",
        "risk or true",
        "true if risk else true",
        "risk",
    ],
)
def test_what_nobody_knows_decides_nothing(condition: str) -> None:
    verdict = judge_of(rule(condition)).judge(Trajectory.of([], {"risk": math.nan}))

    assert not verdict.passed
    assert verdict.checks[0].error is not None
    assert "NaN compares with nothing" in verdict.checks[0].error


def test_a_value_beside_one_that_nobody_knows_is_found() -> None:
    judge = judge_of(rule("1 in [risk, 1] and 'a' not in [risk, 'b']"))

    assert judge.judge(Trajectory.of([], {"risk": math.nan})).passed
