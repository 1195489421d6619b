import json
import pickle
import subprocess
import sys
from collections.abc import Mapping

import pytest
from rlcore import ConfigurationError, ExpressionError
from rleaas.verify import Definition, Trajectory, check, definition_of, judge_of
from rleaas.verify.definition import to_json

AML = "'run_aml_check' in trajectory.tool_calls"
WIRE = Trajectory.of(
    [
        {"tool": "verify_identity", "arguments": {"customer": "c1"}},
        {"tool": "run_aml_check", "customer": "c1", "reward": 0.5},
        {"tool": "submit_transfer", "params": {"transfer_amount": 5000}, "reward": 1.0},
    ],
    {"approved": True, "limits": {"daily": 10_000}},
)


def rule(
    *conditions: str, failure_policy: Mapping[str, object] | None = None, **more: object
) -> Definition:
    return Definition(
        type="rule_based",
        id="verif_rule_1",
        name="AML",
        version=3,
        logic={"conditions": list(conditions), **more},
        failure_policy=failure_policy or {},
    )


def order(**logic: object) -> Definition:
    return Definition(type="trajectory_based", id="verif_traj_1", logic=logic)


def test_the_rule_of_the_readme_passes_an_episode_that_called_the_tool() -> None:
    judge = judge_of(rule(AML, condition_logic="AND", reward_on_pass=2.0, reward_on_fail=-1.0))

    good, bad = judge.judge(WIRE), judge.judge(Trajectory.of([{"tool": "submit_transfer"}]))

    assert (good.score, good.passed, good.reward) == (1.0, True, 2.0)
    assert (bad.score, bad.passed, bad.reward) == (0.0, False, -1.0)
    assert (good.verifier, good.version) == ("verif_rule_1", 3)
    assert bad.explanation == f"0 of 1 conditions hold: {AML}"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("transfer_amount <= 200000", True),
        ("transfer_amount > 200000 OR 'request_approval' in trajectory.tool_calls", False),
        ("approved AND state.limits.daily >= transfer_amount", True),
        ("trajectory.length == 3 and trajectory.total_reward == 1.5", True),
        ("trajectory.steps[0].tool == 'verify_identity'", True),
        ("trajectory.steps[1].arguments.customer == 'c1'", True),
        ("trajectory.calls[-1].arguments.transfer_amount == 5000", True),
        ("trajectory.tool_calls[:2] == ['verify_identity', 'run_aml_check']", True),
        ("max(trajectory.rewards) > 1", False),
    ],
)
def test_conditions_see_the_calls_the_state_and_the_last_arguments(
    condition: str, holds: bool
) -> None:
    assert judge_of(rule(condition)).judge(WIRE).passed is holds


def test_one_condition_is_enough_where_the_rule_says_or() -> None:
    assert judge_of(rule("approved", "1 > 2", condition_logic="or")).judge(WIRE).passed
    assert not judge_of(rule("approved", "1 > 2")).judge(WIRE).passed


def test_an_unknown_name_fails_its_condition_and_is_explained() -> None:
    verdict = judge_of(rule("amount > 3", "approved")).judge(WIRE)

    assert [check.passed for check in verdict.checks] == [False, True]
    assert verdict.checks[0].error == "there is no 'amount'"
    assert "there is no 'amount'" in verdict.explanation
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_a_state_cannot_take_the_place_of_the_trajectory() -> None:
    forged = Trajectory.of([], {"trajectory": {"tool_calls": ["run_aml_check"]}})

    assert not judge_of(rule(AML)).judge(forged).passed


# Scores by hand, as facts 3.5 of the published contract puts them.
@pytest.mark.parametrize(
    ("called", "score", "passed"),
    [
        (["kyc", "aml", "wire"], 1.0, True),
        (["aml", "kyc", "wire"], 0.5, False),
        (["kyc"], 0.15, False),
        ([], 0.0, False),
        (["kyc", "aml", "skip"], 0.0, False),
        (["kyc", "aml", "wire", "wire", "wire"], 0.5, False),
    ],
)
def test_a_trajectory_scores_by_what_was_called_and_in_which_order(
    called: list[str], score: float, passed: bool
) -> None:
    judge = judge_of(
        order(
            required_actions=["kyc", "aml"],
            ordering_constraints=[{"before": "kyc", "after": "aml"}],
            forbidden_actions=["skip"],
            max_allowed_steps=4,
        )
    )

    verdict = judge.judge(Trajectory.of([{"tool": one} for one in called]))

    assert verdict.score == pytest.approx(score)
    assert verdict.passed is passed


def test_an_order_holds_where_the_later_tool_was_never_called() -> None:
    judge = judge_of(order(ordering_constraints=[{"before": "kyc", "after": "wire"}]))

    assert judge.judge(Trajectory.of([])).passed
    assert not judge.judge(Trajectory.of([{"tool": "wire"}])).passed


def composite(*parts: Mapping[str, object], threshold: float = 0.75, id: str = "all") -> Definition:
    return Definition(
        type="composite",
        id=id,
        logic={"components": list(parts), "overall_pass_threshold": threshold},
    )


def test_a_composite_divides_by_its_weights_and_keeps_its_floors() -> None:
    known = {
        "good": rule("approved"),
        "bad": rule("not approved"),
        "off": Definition(type="rule_based", logic={"conditions": ["1 > 2"]}, enabled=False),
        "inner": composite({"verifier_id": "good"}, id="inner"),
    }
    weights: list[dict[str, object]] = [
        {"verifier_id": "good", "weight": 0.4},
        {"verifier_id": "inner", "weight": 0.3},
        {"verifier_id": "bad", "weight": 0.2},
        {"verifier_id": "off", "weight": 5.0},
    ]

    verdict = judge_of(composite(*weights), known.__getitem__).judge(WIRE)
    weights[2]["floor"] = 0.1
    floored = judge_of(composite(*weights), known.__getitem__).judge(WIRE)

    assert verdict.raw_score == pytest.approx(0.7)
    assert verdict.score == pytest.approx(0.7 / 0.9)
    assert (verdict.passed, floored.passed) == (True, False)
    assert "without the disabled off" in verdict.summary
    assert "below its floor 0.1" in floored.explanation


def test_a_hard_failure_fails_the_whole_and_a_penalty_is_added() -> None:
    hard = rule("1 > 2", failure_policy={"hard_fail": True, "penalty": -2.0})
    known = {"good": rule("approved"), "hard": hard}
    whole = composite({"verifier_id": "good", "weight": 99}, {"verifier_id": "hard"})

    verdict = judge_of(whole, known.__getitem__).judge(WIRE)

    assert (verdict.score, verdict.passed) == (0.0, False)
    assert judge_of(hard).judge(WIRE).reward == -2.0
    assert judge_of(hard).judge(WIRE).failed_hard


def test_verifiers_that_contain_themselves_are_refused() -> None:
    known = {
        "a": composite({"verifier_id": "b"}, id="a"),
        "b": composite({"verifier_id": "a"}, id="b"),
    }

    with pytest.raises(ConfigurationError, match="a -> b -> a") as caught:
        judge_of(known["a"], known.__getitem__)
    assert caught.value.code == "verifier_cycle"


def test_composites_that_multiply_without_end_are_refused() -> None:
    known: dict[str, Definition] = {"0": rule("approved")}
    for level in range(1, 8):
        for twin in range(2):
            name = str(level) + "'" * twin
            below = [str(level - 1), str(level - 1) + "'"] if level > 1 else ["0"]
            known[name] = composite(*({"verifier_id": one} for one in below), id=name)

    with pytest.raises(ConfigurationError, match="over 100 components in all"):
        judge_of(known["7"], known.__getitem__)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (rule("approved", condition="x"), "Did you mean 'conditions'"),
        (rule("approved", condition_logic="XOR"), "condition_logic is AND or OR"),
        (rule("approved", reward_on_pass=float("nan")), "reward_on_pass is a finite number"),
        (Definition(type="rule_based", logic={"conditions": "x"}), "conditions is a list of texts"),
        (order(max_allowed_steps=0), "max_allowed_steps is a whole number above 0"),
        (order(required_actions=["a"], forbidden_actions=["a"]), "'a' is required and forbidden"),
        (order(ordering_constraints=[{"before": "a"}]), "'before' and 'after'"),
        (order(partial_credit_rubric={"partial_required_actions": 2}), "from 0 to 1"),
        (composite({"verifier_id": "all"}), "would judge by itself"),
        (composite({"verifier_id": "a", "weight": 0}), "is not above 0"),
        (composite({"weight": 1}), "each component has a verifier_id"),
        (composite({"verifier_id": "a"}, {"verifier_id": "a"}), "listed twice"),
        (composite(threshold=2.0), "overall_pass_threshold is from 0 to 1"),
    ],
)
def test_logic_that_makes_no_sense_is_refused_by_name(wrong: Definition, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check(wrong)


def test_a_condition_that_cannot_be_read_is_refused_with_its_number_and_a_caret() -> None:
    with pytest.raises(ExpressionError) as caught:
        check(rule("approved", "transfer_amount =< 3"))

    assert str(caught.value) == (
        "verifier 'AML': condition 2: '=' compares nothing here\n"
        "  transfer_amount =< 3\n"
        "                  ^\n"
        "To compare, write =="
    )


def test_nothing_to_judge_by_is_never_a_pass() -> None:
    nobody: dict[str, Definition] = {}
    for kind in ("rule_based", "trajectory_based", "composite"):
        empty = Definition(type=kind)
        check(empty)
        with pytest.raises(ConfigurationError) as caught:
            judge_of(empty, nobody.__getitem__)
        assert caught.value.code == "verifier_incomplete"


def test_a_type_that_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(
        ConfigurationError, match="human_evaluation verifiers are not built"
    ) as caught:
        judge_of(Definition(type="human_evaluation"))
    assert caught.value.code == "not_available"


def test_definitions_travel_as_json_and_judges_as_pickles() -> None:
    definition = rule(AML, failure_policy={"penalty": -1.0})
    again = definition_of(json.loads(json.dumps(to_json(definition))))

    judge = pickle.loads(pickle.dumps(judge_of(again)))

    assert again == definition
    assert judge.judge(WIRE).passed


@pytest.mark.parametrize(
    "step",
    [
        {"tool": 3},
        {"tool": "a", "arguments": [1]},
        {"reward": "1"},
        {"tool_calls": [1]},
        {"info": 1},
    ],
)
def test_a_step_that_makes_no_sense_is_refused_by_its_number(step: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="step 2 of the trajectory"):
        Trajectory.of([{"tool": "a"}, step])


def test_the_engine_loads_neither_server_nor_learning_libraries() -> None:
    code = (
        "import sys, rleaas.verify; print([m for m in sys.modules if m.split('.')[0] in "
        "('torch', 'numpy', 'gymnasium', 'fastapi', 'sqlalchemy', 'httpx', 'pydantic')])"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert said.stdout.strip() == "[]"


def test_the_conditions_of_a_verdict_share_one_limit_of_work() -> None:
    parts = [{"verifier_id": "r"}, {"verifier_id": "s"}]
    whole = definition_of({"type": "composite", "logic": {"components": parts}})
    judge = judge_of(whole, lambda _: rule(*["len(a) == 500000"] * 15))

    verdict = judge.judge(Trajectory.of([], {"a": [0] * 500_000}))

    said = [
        one.error
        for part in verdict.checks
        if part.verdict is not None
        for one in part.verdict.checks
    ]
    assert said[:20] == [None] * 20  # of half a million items each
    assert set(said[20:]) == {"the conditions together look at more than 10000000 items"}


def test_an_order_that_no_episode_can_keep_is_refused() -> None:
    pairs = [("a", "b"), ("b", "c"), ("c", "a")]
    logic = {"ordering_constraints": [{"before": one, "after": two} for one, two in pairs]}

    with pytest.raises(
        ConfigurationError, match=r"go in a circle: '.' before '.' before '.' before"
    ):
        check(Definition(type="trajectory_based", logic=logic))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"hrad_fail": True}, "unknown key 'hrad_fail'. Did you mean 'hard_fail'?"),
        ({"hard_fail": "true"}, "hard_fail is true or false, not 'true'"),
        ({"hard_fail": 1}, "hard_fail is true or false, not 1"),
        ({"log_failure": "no"}, "log_failure is true or false, not 'no'"),
        ({"penalty": 1e9}, "penalty is from -1000 to 0, not 1e+09"),
        ({"penalty": 0.5}, "penalty is from -1000 to 0, not 0.5"),
        ({"penalty": -1e300}, "penalty is from -1000 to 0, not -1e+300"),
        ({"penalty": True}, "penalty is a number, not True"),
        ({"penalty": "-1"}, "penalty is a number, not '-1'"),
    ],
)
def test_a_policy_is_read_strictly_whatever_the_verifier_is(
    policy: Mapping[str, object], said: str
) -> None:
    for kind in ("rule_based", "trajectory_based", "llm_judge", "composite", "python"):
        with pytest.raises(ConfigurationError, match="failure_policy") as caught:
            check(Definition(type=kind, failure_policy=policy))
        assert said in str(caught.value)
    with pytest.raises(ConfigurationError):
        judge_of(rule(AML, failure_policy=policy))


@pytest.mark.parametrize(
    ("kind", "logic"),
    [
        ("rule_based", {"conditions": []}),
        ("rule_based", {"condition_logic": "OR"}),
        ("trajectory_based", {"required_actions": [], "forbidden_actions": []}),
        ("composite", {"components": []}),
        ("llm_judge", {"evaluation_prompt": " "}),
    ],
)
def test_logic_that_judges_by_nothing_is_refused_where_it_is_written(
    kind: str, logic: Mapping[str, object]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check(Definition(type=kind, name="v", logic=logic))
    assert caught.value.code == "verifier_incomplete"
    check(Definition(type=kind, name="v"))
