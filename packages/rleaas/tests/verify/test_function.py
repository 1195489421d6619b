"""Verifiers that are Python functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import rleaas
from rlcore import ConfigurationError, GraderError
from rleaas.training.rewards import python_verifier
from rleaas.verify import (
    Definition,
    FailurePolicy,
    FunctionVerifier,
    Means,
    Trajectory,
    Ungraded,
    Verdict,
    check,
    judge_of,
)

EPISODE = Trajectory.of([{"tool": "kyc"}, {"tool": "wire"}], {"amount": 5})


@rleaas.verifier
def checked(trajectory: Trajectory) -> bool:
    return "kyc" in trajectory.tool_calls


@rleaas.verifier(name="small", weight=0.5, threshold=0.8, penalty=-2.0, hard_fail=True)
def small(trajectory: Trajectory) -> float:
    return float(1 - trajectory.state["amount"] / 10)


def test_a_function_judges_what_it_is_shown() -> None:
    yes, no = checked.judge(EPISODE), checked.judge(Trajectory())
    half = small.judge(EPISODE)

    assert (yes.score, yes.passed, yes.verifier) == (1.0, True, "checked")
    assert (no.score, no.passed, no.reward) == (0.0, False, 0.0)
    assert (half.score, half.passed, half.failed_hard) == (0.5, False, True)
    assert half.reward == pytest.approx(0.5 - 2.0)
    assert (small.name, small.weight) == ("small", 0.5)
    assert checked(EPISODE) is True


def test_a_function_may_give_numbers_of_numpy_or_a_verdict_of_its_own() -> None:
    number = rleaas.verifier(lambda _: np.float32(0.25))
    own = rleaas.verifier(lambda _: Verdict(0.7, True, 3.0, (), summary="fine"))

    assert number.judge(EPISODE).score == 0.25
    verdict = own.judge(EPISODE)
    assert (verdict.score, verdict.reward, verdict.verifier) == (0.7, 3.0, "<lambda>")


def broken(trajectory: Trajectory) -> bool:
    return bool(trajectory.state["nothing"])


def gives(value: object) -> Callable[[Trajectory], object]:
    return lambda _: value


@pytest.mark.parametrize(
    ("function", "reason", "said"),
    [
        (broken, "exception", "KeyError: 'nothing'"),
        (gives(None), "invalid_answer", "NoneType"),
        (gives("yes"), "invalid_answer", "str"),
        (gives(float("nan")), "out_of_scale", "nan"),
        (gives(1.01), "out_of_scale", "1.01"),
        (gives(Verdict(2.0, True, 0.0, ())), "out_of_scale", "2.0"),
        (gives(Verdict(1.0, True, float("inf"), ())), "invalid_answer", "inf"),
    ],
)
def test_a_function_that_fails_gives_no_score(
    function: Callable[[Trajectory], object], reason: str, said: str
) -> None:
    judge = rleaas.verifier(name="it")(function)

    with pytest.raises(GraderError, match=said) as caught:
        judge.judge(EPISODE)
    assert (caught.value.reason, caught.value.verifier) == (reason, "it")


def test_what_a_function_changes_nobody_else_sees() -> None:
    def spoil(trajectory: Trajectory) -> bool:
        trajectory.state["amount"] = 0  # type: ignore[index]  # what a careless author would do
        return True

    rleaas.verifier(spoil).judge(EPISODE)

    assert EPISODE.state == {"amount": 5}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"weight": 0}, {"threshold": 2}, {"penalty": float("nan")}),
        *({"name": ""}, {"name": "x" * 10_000}),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        rleaas.verifier(**wrong)  # type: ignore[call-overload]


def definition(source: str, function: str = "judge") -> Definition:
    return Definition(
        type="python",
        id="verif_pyth_1",
        version=2,
        logic={"source": source, "function": function},
        failure_policy={"penalty": -1.0},
    )


def test_the_source_of_a_function_makes_the_same_verifier_elsewhere() -> None:
    found = small.source()
    sent = Definition(type="python", id="v", version=7, logic=found)
    check(sent)

    judge = judge_of(sent, means=Means(load=python_verifier.load))

    verdict = judge.judge(EPISODE)
    assert (verdict.score, verdict.passed, verdict.version) == (0.5, False, 7)
    assert isinstance(judge, FunctionVerifier)
    assert judge.policy == FailurePolicy()


def test_no_function_runs_where_code_is_not_allowed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        judge_of(definition("def judge(t): return True"))
    assert caught.value.code == "code_not_allowed"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def judge(t) return 1", "no Python"),
        ("def other(t): return 1", "no function 'judge'"),
        ("", "has a 'source'"),
    ],
)
def test_a_source_that_cannot_run_is_refused_when_it_is_written(source: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check(definition(source))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def judge(t):\n    while True: pass", "timeout"),
        ("def judge(t):\n    raise SystemExit(3)", "exception"),
        ("def judge(t):\n    return 1 / 0", "exception"),
    ],
)
def test_a_function_that_never_returns_or_leaves_gives_no_score(source: str, reason: str) -> None:
    judge = judge_of(definition(source), means=Means(load=python_verifier.load))

    with pytest.raises(GraderError) as caught:
        judge.judge(EPISODE)
    assert caught.value.reason == reason


def test_a_source_that_fails_gives_no_judge() -> None:
    with pytest.raises(GraderError, match="ZeroDivisionError"):
        judge_of(
            definition("1 / 0\ndef judge(t): return 1"), means=Means(load=python_verifier.load)
        )


def test_a_function_is_tested_and_audited_where_it_is_written() -> None:
    @rleaas.verifier
    def checked(trajectory: Trajectory) -> bool:
        return "run_aml_check" in trajectory.tool_calls

    good, bad = Trajectory.of([{"tool": "run_aml_check"}]), Trajectory.of([{"tool": "wire"}])
    verdict, whole = checked.test({"amount": 3}, [{"tool": "wire"}]), checked.test(trajectory=good)
    report = checked.audit(good=[good], bad=[bad])

    assert isinstance(verdict, Verdict)
    assert isinstance(whole, Verdict)
    assert (verdict.passed, whole.passed, report.passed) == (False, True, True)
    with pytest.raises(ConfigurationError, match="a state of its own"):
        checked.test({"amount": 3}, good)


def test_a_function_that_fails_says_so_when_it_is_tested() -> None:
    @rleaas.verifier
    def broken(trajectory: Trajectory) -> bool:
        return bool(trajectory.state["amount"])

    outcome = broken.test()

    assert isinstance(outcome, Ungraded)
    assert outcome.reason == "exception"


@pytest.mark.parametrize("wrong", [{"penalty": 1.0}, {"hard_fail": "yes"}])
def test_the_policy_of_a_function_is_read_as_that_of_any_verifier(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="failure_policy"):
        rleaas.verifier(**wrong)  # type: ignore[call-overload]
