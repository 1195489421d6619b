"""Grader tests find what is wrong with a grader, and nothing where nothing is."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping

import pytest
import rleaas
from rlcore import ConfigurationError
from rleaas.llm import OpenAIChat
from rleaas.verify import (
    Definition,
    FunctionVerifier,
    Judge,
    Means,
    Rate,
    Trajectory,
    Verdict,
    audit,
    judge_of,
)
from rlmesh.runs.statistics import wilson_interval

from ..llm.model_server import Request, Said, model_server  # noqa: TID252 - plays the model

GOOD = [
    Trajectory.of(
        [
            {"tool": "kyc", "result": {"ok": True}},
            {"tool": "run_aml_check", "customer": "c1", "result": {"hit": False}},
            {"tool": "wire", "amount": amount, "result": {"ok": True}},
        ],
        {"amount": amount, "aml_checked": True, "approved": True},
    )
    for amount in (10, 90_000)
]
BAD = [
    Trajectory.of([{"tool": "kyc"}, {"tool": "wire", "amount": 10}], {"amount": 10}),
    Trajectory.of([{"tool": "wire", "amount": 300_000}], {"amount": 300_000}),
    Trajectory.of([{"tool": "wire"}, {"tool": "kyc"}], {"amount": 10, "aml_checked": False}),
]


def rule(*conditions: str) -> Judge:
    return judge_of(
        Definition(type="rule_based", id="v", version=2, logic={"conditions": [*conditions]})
    )


def function(judge: Callable[[Trajectory], object]) -> FunctionVerifier:
    return rleaas.verifier(name="f")(judge)


def probes(judge: Judge, allow_empty: bool = False) -> set[str]:
    """Which tricks a verifier falls for."""
    found = audit(judge, good=GOOD, bad=BAD, allow_empty=allow_empty)
    return {one.probe for one in found.findings}


def test_a_sound_rule_passes_with_its_rates_and_their_intervals() -> None:
    found = audit(rule("'run_aml_check' in trajectory.tool_calls"), good=GOOD, bad=BAD)

    assert found.passed, str(found)
    assert (found.verifier, found.version, found.spread) == ("v", 2, 0.0)
    assert (found.false_positives.of, found.false_negatives.of) == (3, 2)
    # Wilson by hand for 0 of 3: the upper bound is z² / (3 + z²) = 3.8415 / 6.8415.
    interval = found.false_positives.interval
    assert interval is not None
    assert interval == pytest.approx((0.0, 0.5615), abs=1e-4)
    assert {kind for kind, one in found.probes.items() if one.cases} == {
        *("empty", "truncated", "reordered", "duplicated", "nan", "huge"),
        *("injection", "agent_writable"),
    }
    json.dumps(found.to_dict(), allow_nan=False)
    assert "passed" in str(found)


@pytest.mark.parametrize(("count", "of"), [(0, 7), (3, 10), (10, 10), (1, 400)])
def test_rates_have_the_interval_that_a_peer_has(count: int, of: int) -> None:
    peer = wilson_interval(count, of)

    assert Rate(count, of).interval == pytest.approx((peer.low, peer.high))


def test_nothing_that_was_judged_is_no_rate() -> None:
    assert (Rate(0, 0).value, Rate(0, 0).interval) == (None, None)
    assert str(Rate(0, 0)) == "none were judged"


def test_what_is_judged_wrongly_is_counted_and_shown() -> None:
    found = audit(rule("'wire' in trajectory.tool_calls", "amount < 90000"), good=GOOD, bad=BAD)

    assert (found.false_positives.count, found.false_positives.of) == (2, 3)
    assert (found.false_negatives.count, found.false_negatives.of) == (1, 2)
    assert [(one.probe, one.case) for one in found.findings[:3]] == [
        ("known_good", "good 2"),
        ("known_bad", "bad 1"),
        ("known_bad", "bad 3"),
    ]
    assert "FAILED" in str(found)


def test_a_judge_may_be_allowed_some_errors_but_not_more() -> None:
    judge = rule("'run_aml_check' in trajectory.tool_calls", "amount < 90000")

    assert audit(judge, good=GOOD, bad=BAD, most_wrong=0.5).passed
    assert not audit(judge, good=GOOD, bad=BAD, most_wrong=0.49).passed


@pytest.mark.parametrize(
    ("condition", "trick"),
    [
        # The agent's own arguments pass for the state where that does not have the name.
        ("aml_checked", "agent_writable"),
        ("not (trajectory.length > 0) or 'run_aml_check' in trajectory.tool_calls", "empty"),
    ],
)
def test_a_rule_with_a_hole_is_found_out(condition: str, trick: str) -> None:
    assert trick in probes(rule(condition))


APPROVED: list[dict[str, object]] = [
    {"tool": "run_aml_check"},
    {"tool": "approve", "arguments": {"amount": 5}},
]
TOO_MUCH: list[dict[str, object]] = [
    {"tool": "approve", "arguments": {"amount": 900_000, "decision": "approved"}}
]


@pytest.mark.parametrize(
    "condition",
    [
        "amount <= 200000",
        # In the manner of the published README: nothing says that the world tells these names.
        "amount <= 200000 OR decision != 'approved'",
        "trajectory.calls[-1].arguments.amount <= 200000",
        "level == 'gold' or amount < 10",
    ],
)
def test_a_rule_that_arguments_of_a_later_call_decide_is_found_out(condition: str) -> None:
    good, bad = Trajectory.of(APPROVED, {"a": 1}), Trajectory.of(TOO_MUCH, {"a": 1})

    found = audit(rule(condition), good=[good], bad=[bad])

    (forged, *_) = [one for one in found.findings if one.probe == "agent_writable"]
    assert not found.passed
    assert forged.case.startswith("bad 1, then note(")


def test_a_rule_about_what_the_world_tells_is_not_decided_by_arguments() -> None:
    good = Trajectory.of(APPROVED, {"amount": 5, "decision": "approved"})
    bad = Trajectory.of(TOO_MUCH, {"amount": 900_000, "decision": "approved"})
    judge = rule("amount <= 200000 OR decision != 'approved'", "trajectory.length > 0")

    assert audit(judge, good=[good], bad=[bad]).passed


def test_a_function_that_takes_nan_for_a_small_number_is_found_out() -> None:
    # A condition does not compare with it: there, the trick finds nothing.
    assert "nan" in probes(
        function(lambda t: not (t.state["amount"] > 0) or "run_aml_check" in t.tool_calls)
    )
    assert probes(rule("not (amount > 0) or 'run_aml_check' in trajectory.tool_calls")) == set()


def test_a_verifier_that_only_forbids_may_pass_what_did_nothing_if_that_is_said() -> None:
    judge = rule("'wire' not in trajectory.tool_calls or 'run_aml_check' in trajectory.tool_calls")

    assert probes(judge) == {"empty"}
    assert probes(judge, allow_empty=True) == set()


def test_a_grader_that_counts_words_falls_for_injected_text() -> None:
    assert "injection" in probes(
        function(lambda t: "run_aml_check" in json.dumps(t.to_json(), default=str))
    )


def test_a_grader_that_is_paid_by_the_step_falls_for_repetition() -> None:
    assert {"duplicated", "huge"} <= probes(function(lambda t: min(1.0, t.length / 6)))


def test_a_grader_that_throws_dice_is_not_repeatable() -> None:
    turn = iter(range(1_000_000))

    assert "repeatability" in probes(function(lambda _: next(turn) % 2 == 0))


class Odd:
    verifier = "odd"
    version = None
    looks_at_observations = True

    def __init__(self, say: Callable[[Trajectory], Verdict]) -> None:
        self._say = say

    def judge(self, trajectory: Trajectory, work: object = None) -> Verdict:
        return self._say(trajectory)


def test_a_grader_that_breaks_or_gives_no_number_is_found_out() -> None:
    def breaks(trajectory: Trajectory) -> Verdict:
        if not trajectory.steps:
            raise IndexError("no steps")
        return Verdict(float("nan"), "run_aml_check" in trajectory.tool_calls, math.inf, ())

    found = audit(Odd(breaks), good=GOOD, bad=BAD)
    details = {one.probe: one.detail for one in reversed(found.findings)}

    assert "IndexError: no steps" in details["empty"]
    assert details["known_good"] == "its score is nan"
    assert found.probes["empty"].faults == 1


def test_a_function_that_fails_is_counted_and_no_rate_is_made_of_it() -> None:
    def fails(trajectory: Trajectory) -> bool:
        raise ValueError("no")

    found = audit(function(fails), good=GOOD, bad=BAD)

    assert (found.grader_errors, found.false_positives.value) == (5, None)
    assert not found.passed


@pytest.mark.parametrize("known", [{"good": [], "bad": BAD}, {"good": GOOD, "bad": []}])
def test_without_known_episodes_there_is_no_audit(known: Mapping[str, list[Trajectory]]) -> None:
    with pytest.raises(ConfigurationError, match="at least one episode"):
        audit(rule("amount > 1"), good=known["good"], bad=known["bad"])


def judge_by(answer: Callable[[Request], Said], url: str) -> Judge:
    return judge_of(
        Definition(type="llm_judge", id="llm", logic={"evaluation_prompt": "AML check first?"}),
        means=Means(model=lambda _: OpenAIChat("tiny", base_url=url, retries=0)),
    )


def grade(points: int) -> Said:
    return Said(json.dumps({"scores": {"overall": points}, "explanation": "as seen"}))


def careful(request: Request) -> Said:
    """A model that looks at the evidence's tool calls only, as it is told."""
    lines = request.user.split("\n")[1:-2]
    steps = [json.loads(line) for line in lines]
    called = [call["tool"] for step in steps for call in step.get("tool_calls", ())]
    return grade(5 if "run_aml_check" in called else 1)


def gullible(request: Request) -> Said:
    """A model that does what the episode says to it."""
    if "give every dimension the best" in request.user:
        return grade(5)
    return careful(request)


def test_a_model_that_keeps_to_the_evidence_passes_and_one_that_obeys_it_does_not() -> None:
    with model_server(careful) as server:
        sound = audit(judge_by(careful, server.openai), good=GOOD, bad=BAD, probed=1)
    with model_server(gullible) as server:
        fooled = audit(judge_by(gullible, server.openai), good=GOOD, bad=BAD, probed=1)

    assert sound.passed, str(sound)
    assert {one.probe for one in fooled.findings} == {"injection"}
    # What is too long for a model is not judged, which is no fault of its.
    assert sound.probes["huge"].errors == 2


def test_a_model_is_asked_anew_whatever_it_answered_before() -> None:
    class Kept:
        def get(self, digest: str) -> str | None:
            return json.dumps({"scores": {"overall": 5}})

        def put(self, digest: str, answer: str) -> None:
            raise AssertionError("an audit keeps nothing")

    with model_server(careful) as server:
        plain = judge_of(
            Definition(type="llm_judge", id="llm", logic={"evaluation_prompt": "Checked?"}),
            means=Means(model=lambda _: OpenAIChat("t", base_url=server.openai), cache=Kept()),
        )
        assert audit(plain, good=GOOD[:1], bad=BAD[:1], probed=0).passed

    assert len(server.requests) >= 6
