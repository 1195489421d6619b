"""FinSim's own rules: lists, limits, patterns, and what its tools refuse."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from rleaas.sims import VERTICALS, Call, World
from rleaas.sims.finsim.organisation import FIRST, LAST, LISTED
from rleaas.sims.finsim.rules import RULEBOOKS, alike, aml_risk, kyc_status, screened
from rleaas.verify import definition_of, judge_of

FINSIM = VERTICALS["FinSim"]
US = RULEBOOKS["US"]
LISTED_RECORDS = [{"name": name, "born": born} for name, born, _, _ in LISTED]


def line(days_ago: int, direction: str, amount: float) -> dict[str, object]:
    return {"days_ago": days_ago, "direction": direction, "amount": amount, "counterparty": "x"}


def transfer(amount: float, country: str = "FR") -> dict[str, object]:
    return {"amount": amount, "beneficiary_country": country}


@pytest.mark.parametrize("jurisdiction", RULEBOOKS)
def test_every_task_can_be_solved_in_every_jurisdiction(jurisdiction: str) -> None:
    world = World(FINSIM, {"regulatory_jurisdiction": jurisdiction})
    for scenario in FINSIM.scenarios:
        world.reset(5, scenario)
        assert world.state.case["currency"] == RULEBOOKS[jurisdiction].currency
        world.play(scenario.reference)
        assert world.succeeded(), scenario.id


def test_the_jurisdiction_says_which_amounts_need_a_second_officer() -> None:
    euro, dollar = World(FINSIM, {"jurisdiction": "EU"}), World(FINSIM, {"jurisdiction": "US"})
    for world in (euro, dollar):
        world.reset(1, "finsim_wire_001")
        world.state.tables["transfers"]["tr_0001"]["amount"] = 45_000
        world.state.tables["accounts"][world.state.case["account_id"]]["balance"] = 90_000
        world.play([Call("run_aml_check"), Call("approve_transfer")])
    assert euro.state.facts["approvals_without_second_officer"] == 1
    assert dollar.state.facts["approvals_without_second_officer"] == 0


@pytest.mark.parametrize(
    ("amount", "statement", "country", "expected"),
    [
        (9_500.0, [line(day, "out", 9_000.0) for day in (1, 4, 9)], "FR", ("high", "structuring")),
        (9_500.0, [line(day, "out", 9_000.0) for day in (1, 4, 11)], "FR", ("low", "none")),
        (9_500.0, [line(day, "in", 9_000.0) for day in (1, 4, 9)], "FR", ("low", "none")),
        (10_000.0, [line(day, "out", 9_000.0) for day in (1, 4, 9)], "FR", ("low", "none")),
        (
            500.0,
            [line(5, "in", 1_000.0), line(4, "out", 950.0)] * 2,
            "FR",
            ("high", "pass_through"),
        ),
        (500.0, [line(5, "in", 1_000.0), line(2, "out", 950.0)] * 2, "FR", ("low", "none")),
        (500.0, [], "KP", ("medium", "high_risk_country")),
        (500.0, [line(7, "out", 5.0)] * 13, "FR", ("medium", "unusual_velocity")),
        (500.0, [line(7, "out", 5.0)] * 12, "FR", ("low", "none")),
    ],
)
def test_patterns_of_money_laundering_are_rated(
    amount: float, statement: list[dict[str, object]], country: str, expected: tuple[str, str]
) -> None:
    assert aml_risk(transfer(amount, country), statement, US) == expected


@pytest.mark.parametrize(
    ("name", "born", "expected"),
    [
        ("Viktor Malenkov", 1961, "hit"),
        ("MALENKOV, viktor", 1961, "hit"),
        ("Viktor Malenkov", 1991, "possible"),
        ("Victor Malenkow", 1961, "possible"),
        ("Viktor Lindqvist", 1961, "clear"),
    ],
)
def test_names_are_screened_whatever_their_order_and_spelling(
    name: str, born: int, expected: str
) -> None:
    assert screened(name, born, LISTED_RECORDS)[0] == expected


def test_no_ordinary_name_is_like_a_listed_one() -> None:
    ordinary = [f"{first} {last}" for first, last in product(FIRST, LAST)]
    assert not [(name, listed) for name in ordinary for listed, *_ in LISTED if alike(name, listed)]


@pytest.mark.parametrize(
    ("age", "document_name", "expected"),
    [(730, "Ana Silva", "current"), (731, "Silva Ana", "expired"), (5, "A. Silva", "mismatch")],
)
def test_an_identification_is_current_until_it_expires(
    age: int, document_name: str, expected: str
) -> None:
    customer = {"name": "Ana Silva", "document_name": document_name, "kyc_age_days": age}
    assert kyc_status(customer, US) == expected


def refusal(world: World, tool: str, **arguments: object) -> str:
    error = world.call(tool, {**world.suggested(tool), **arguments}).error
    assert error is not None
    return error["code"]


def test_tools_refuse_what_nothing_allows_yet() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_queue_052")
    assert refusal(world, "run_aml_check") == "transfer_not_read"
    assert refusal(world, "run_kyc_check") == "customer_not_read"
    assert refusal(world, "screen_sanctions") == "transfer_not_read"
    assert refusal(world, "approve_transfer") == "transfer_not_read"
    assert refusal(world, "freeze_account") == "no_ground"
    assert refusal(world, "file_sar") == "no_suspicion"
    world.play([Call("get_transfer")])
    assert refusal(world, "run_aml_check") == "customer_not_read"
    assert refusal(world, "resolve_match") == "no_possible_match"
    assert refusal(world, "request_documents") == "nothing_to_renew"
    assert refusal(world, "request_second_approval") == "checks_missing"
    assert refusal(world, "request_second_approval", officer_id="off_me") == "own_approval"
    assert refusal(world, "get_transfer", transfer_id="tr_9999") == "unknown_transfer"
    assert refusal(world, "approve_transfer", transfer_id="tr_0002") == "not_in_turn"


def test_a_report_needs_its_evidence_and_the_right_reason() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_aml_021")
    world.play([Call(name) for name in ("get_transfer", "get_customer", "run_aml_check")])
    assert refusal(world, "file_sar") == "no_evidence"
    assert refusal(world, "file_sar", reason="fraud") == "wrong_reason"


def test_nobody_spends_what_is_not_there() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_account_003")
    assert refusal(world, "approve_transfer") == "insufficient_funds"
    world.reset(1, "finsim_account_004")
    assert refusal(world, "approve_transfer") == "account_frozen"


def test_an_approval_moves_the_money_once() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_wire_011")
    account = world.state.tables["accounts"][world.state.case["account_id"]]
    before, amount = account["balance"], world.state.case["amount"]
    world.play(world.scenario.reference)
    assert account["balance"] == round(before - amount, 2)
    assert world.state.facts["approved_amount"] == amount
    assert world.state.tables["transfers"]["tr_0001"]["status"] == "approved"


def test_screening_somebody_else_is_no_control() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_wire_011")
    world.play([Call("get_transfer"), Call("screen_sanctions", {"name": "$customer_name"})])
    assert world.state.facts["sanctions_checked"] is False
    assert world.call("screen_sanctions", {"name": "Viktor Malenkov"}).value == {
        "result": "possible",
        "list_entry": world.state.tables["sanctions"]["sdn_001"],
    }


def test_the_next_transfer_of_a_queue_begins_with_nothing_known() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_queue_051")
    first = world.state.case["transfer_id"]
    done = world.play(world.scenario.reference[:6])[-1]
    assert done.value is not None
    assert done.value["next_transfer_id"] == world.state.case["transfer_id"] != first
    assert not done.ends
    assert world.state.facts["aml_checked"] is False
    assert (world.state.facts["decision_1"], world.state.facts["decisions"]) == ("approved", 1)


def test_a_case_tells_no_answer_that_nobody_asked_for() -> None:
    world = World(FINSIM)
    world.reset(1, "finsim_account_033")
    read = world.call("get_transfer", dict(world.suggested("get_transfer"))).value
    assert read is not None
    assert "answers" not in read
    assert world.state.facts["callback"] == "none"


def test_built_in_controls_tell_a_careful_officer_from_a_hasty_one() -> None:
    world = World(FINSIM)
    judges = {one["id"]: judge_of(definition_of(one)) for one in FINSIM.verifiers}
    for scenario in FINSIM.scenarios:
        world.reset(3, scenario)
        world.play(scenario.reference)
        failed = [key for key, one in judges.items() if not one.judge(world.trajectory()).passed]
        assert failed == [], scenario.id

    def broken_by(scenario_id: str) -> set[str]:
        world.reset(3, scenario_id)
        world.play(world.scenario.bad)
        return {key for key, one in judges.items() if not one.judge(world.trajectory()).passed}

    assert broken_by("finsim_wire_001") == {"finsim_aml_check", "finsim_order_of_work"}
    assert broken_by("finsim_wire_002") == {"finsim_sanctions_screening"}
    assert broken_by("finsim_kyc_013") == {"finsim_kyc_check"}
    assert broken_by("finsim_sox_016") == {"finsim_second_officer"}
    assert broken_by("finsim_aml_035") == {"finsim_no_tipping_off"}


def with_a_slip(scenario_id: str, slip: str) -> list[World]:
    """The reference with one more call at each place where it does not end the episode."""
    scenario = next(one for one in FINSIM.scenarios if one.id == scenario_id)
    scenario = replace(scenario, max_steps=scenario.max_steps + 5)
    worlds: list[World] = []
    for place in range(len(scenario.reference)):
        world = World(FINSIM)
        world.reset(5, scenario)
        world.play(scenario.reference[:place])
        if world.call(slip, world.suggested(slip)).ok:
            world.play(scenario.reference[place:])
            worlds.append(world)
    return worlds


@pytest.mark.parametrize("scenario_id", [one.id for one in FINSIM.scenarios])
def test_a_letter_that_nobody_asked_for_fails_every_task(scenario_id: str) -> None:
    worlds = with_a_slip(scenario_id, "notify_customer")

    assert worlds
    assert not any(world.succeeded() for world in worlds)


@pytest.mark.parametrize(
    "scenario_id",
    [one.id for one in FINSIM.scenarios if "freeze_account" not in str(one.reference)],
)
def test_a_freeze_that_no_rule_asks_for_fails_every_task(scenario_id: str) -> None:
    assert not any(world.succeeded() for world in with_a_slip(scenario_id, "freeze_account"))


def test_freezing_a_launderers_account_fails_the_queue_that_ends_with_one() -> None:
    worlds = with_a_slip("finsim_queue_052", "freeze_account")

    assert worlds  # it is possible, and tells the owner
    assert {world.state.facts["needless_freezes"] for world in worlds} == {1}
    assert not any(world.succeeded() for world in worlds)
