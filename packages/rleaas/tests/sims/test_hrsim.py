"""HRSim's rules, one by one; and that only a policy that looks at the case succeeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from rleaas.sims import Scenario, World, calls, conditions
from rleaas.sims.hrsim import VERTICAL
from rleaas.sims.hrsim.cases import GOOD_IBAN, OTHER_IBAN, about, leave, pay, person
from rleaas.sims.hrsim.pay import LAWS, payslip, valid_iban
from rleaas.sims.hrsim.tools_access import CONFLICTS
from rleaas.sims.state import Json

from .policies import Seen, plays, seen


def begun(
    *requests: Mapping[str, Json],
    person: Mapping[str, Json],
    config: Mapping[str, Json] | None = None,
    opened: bool = True,
    **people: Mapping[str, Json],
) -> World:
    world = World(VERTICAL, config)
    scenario = Scenario(
        id="hrsim_test",
        vertical="HRSim",
        title="A test",
        tier=2,
        domain="test",
        prompt="Do it.",
        setup={
            "people": {"person": dict(person), **people},
            "requests": list(requests),
            "opened": ["person"] if opened else [],
        },
        tools=tuple(tool.name for tool in VERTICAL.tools),
        max_steps=50,
        success=conditions("open_requests == 0"),
        reference=calls(),
        bad=calls(),
    )
    world.reset(3, scenario)
    return world


def done(world: World, *names: str) -> World:
    for result in world.play(calls(*names)):
        assert result.ok, result.error
    return world


def refusal(world: World, name: str, **arguments: Json) -> str:
    given = {**world.suggested(name), **arguments}
    before = world.state.to_json()
    result = world.call(name, given)
    assert result.error is not None, result.value
    assert world.state.to_json() == before
    return result.error["code"]


def value(world: World, name: str, **arguments: Json) -> Mapping[str, Json]:
    result = world.call(name, {**world.suggested(name), **arguments})
    assert result.value is not None, result.error
    return result.value


def broken(world: World) -> list[str]:
    return [str(one) for one in world.state.facts["violations"]]


# Pay


def worker(**particulars: int) -> dict[str, Json]:
    zero = dict.fromkeys(("timesheet_overtime", "approved_bonus", "unpaid_days", "garnishment"), 0)
    return {"salary": 62_400, **zero, **particulars}


@pytest.mark.parametrize(
    ("jurisdiction", "gross", "pension", "tax", "social", "net"),
    [
        # 62,400 / 12 = 5,200; an hour is 62,400 / 2,080 = 30; 250 are garnished.
        # US: 12 h at 45 = 540; tax 22 % of 5,453; social 7.65 % of 5,740.
        ("US", 574_000, 28_700, 119_966, 43_911, 356_423),
        # UK: 12 h at 30 = 360; tax 20 % of 5,282; social 8 % of 5,560.
        ("UK", 556_000, 27_800, 105_640, 44_480, 353_080),
        # DE: 12 h at 37.50 = 450; tax 25 % of 5,367.50 = 1,341.875; social 20 % of 5,650.
        ("DE", 565_000, 28_250, 134_188, 113_000, 264_562),
    ],
)
def test_a_payslip_with_overtime_is_that_of_the_jurisdiction_to_the_cent(
    jurisdiction: str, gross: int, pension: int, tax: int, social: int, net: int
) -> None:
    slip = payslip(worker(timesheet_overtime=12, garnishment=250), LAWS[jurisdiction])
    assert slip == {
        "gross_cents": gross,
        "pension_cents": pension,
        "tax_cents": tax,
        "social_cents": social,
        "garnished_cents": 25_000,
        "net_cents": net,
    }


@pytest.mark.parametrize(
    ("particulars", "net"),
    [
        # 6,500 less 4 of 260 days at 300 each: 5,300 - 265 - 1,107.70 - 405.45.
        ({"salary": 78_000, "unpaid_days": 4}, 352_185),
        # 6,500 + 5,000: 11,500 - 575 - 2,403.50 - 879.75.
        ({"salary": 78_000, "approved_bonus": 5_000}, 764_175),
        # 4,166.67 - 208.33 - 22 % of 3,958.34 (870.83) - 318.75: each line rounded.
        ({"salary": 50_000}, 276_876),
    ],
)
def test_unpaid_days_bonuses_and_odd_cents_are_reckoned_as_by_hand(
    particulars: Mapping[str, int], net: int
) -> None:
    assert payslip(worker(**particulars), LAWS["US"])["net_cents"] == net


def test_only_the_amount_of_the_payslip_is_right() -> None:
    world = done(begun(pay(1), person=person(salary=78_000)), "calculate_payroll")
    # 6,500 - 325 - 22 % of 6,175 (1,358.50) - 497.25.
    assert world.suggested("run_payroll")["net_cents"] == 431_925
    value(world, "run_payroll", net_cents=431_924)
    assert broken(world) == ["wrong_amount"]


def test_paying_the_draft_without_a_payslip_breaks_two_rules() -> None:
    world = done(begun(pay(500_000), person=person()), "run_payroll")
    assert broken(world) == ["payroll_unchecked", "wrong_amount"]


@pytest.mark.parametrize(
    ("bonus", "limit", "violations"),
    [(1_000, 1_000, []), (1_001, 1_000, ["paid_unapproved"]), (1_001, 2_000, [])],
)
def test_a_bonus_above_the_limit_needs_finance(
    bonus: int, limit: int, violations: list[str]
) -> None:
    world = begun(pay(0), person=person(approved_bonus=bonus), config={"approval_limit": limit})
    done(world, "calculate_payroll", "run_payroll")
    assert broken(world) == violations


def test_an_approved_bonus_is_paid_and_a_refused_one_is_not() -> None:
    world = begun(pay(0), person=person(approved_bonus=9_000))
    done(world, "calculate_payroll", "request_approval", "run_payroll")
    assert broken(world) == []
    world = begun(pay(0, approval="refused"), person=person(approved_bonus=9_000))
    done(world, "calculate_payroll", "request_approval", "run_payroll")
    assert broken(world) == ["paid_unapproved"]


def test_paying_who_left_or_was_paid_is_noted() -> None:
    gone = person(status="left", paid_this_month=True)
    world = done(begun(pay(0), person=gone), "calculate_payroll", "run_payroll")
    assert broken(world) == ["paid_leaver", "paid_twice"]


# Approval


def test_nobody_approves_their_own_request_and_the_wrong_one_is_refused() -> None:
    world = begun(about("access", role="admin"), person=person())
    assert refusal(world, "request_approval", approver="finance") == "wrong_approver"
    assert refusal(world, "request_approval") == "nothing_to_approve"
    done(world, "check_access")
    value(world, "request_approval", approver="requester")
    assert broken(world) == ["self_approval"]
    assert refusal(begun(leave("annual", 1), person=person()), "request_approval") == (
        "approval_not_needed"
    )


# Files


def test_a_file_opens_by_its_number_only() -> None:
    world = begun(pay(0), person=person(number="E00001"), opened=False)
    assert refusal(world, "open_file", number="E00002") == "number_mismatch"
    assert refusal(world, "calculate_payroll") == "file_closed"
    assert refusal(world, "open_file", person_id="per_99999") == "person_not_found"
    done(world, "open_file", "calculate_payroll")


def test_a_full_file_never_leaves_the_house() -> None:
    world = done(begun(about("data"), person=person()), "verify_requester")
    value(world, "export_data", scope="full_file")
    assert broken(world) == ["third_party_data"]


def test_an_export_without_a_call_back_to_an_impostor_breaks_two_rules() -> None:
    world = done(begun(about("data", genuine=False), person=person()), "export_data")
    assert broken(world) == ["served_impostor", "requester_unchecked"]
    assert world.state.facts["requester_unchecked"] == 1


@pytest.mark.parametrize(
    ("jurisdiction", "years", "kept"),
    [
        ("US", 3, "retention"),
        ("US", 4, "nothing"),
        ("UK", 5, "retention"),
        ("UK", 6, "nothing"),
        ("DE", 9, "retention"),
        ("DE", 10, "nothing"),
    ],
)
def test_a_file_is_kept_for_the_years_of_the_jurisdiction(
    jurisdiction: str, years: int, kept: str
) -> None:
    gone = person(status="left", left_years_ago=years)
    world = begun(about("erasure"), person=gone, config={"jurisdiction": jurisdiction})
    assert value(world, "check_retention")["kept_for"] == kept


@pytest.mark.parametrize(
    ("particulars", "kept"),
    [
        ({}, "employment"),
        ({"status": "left", "left_years_ago": 30, "legal_hold": True}, "litigation"),
    ],
)
def test_erasing_what_is_kept_is_noted(particulars: Mapping[str, Json], kept: str) -> None:
    world = begun(about("erasure"), person=person(**particulars))
    done(world, "verify_requester")
    assert value(world, "check_retention")["kept_for"] == kept
    done(world, "erase_data")
    assert broken(world) == ["erased_what_is_kept"]


def test_erasing_unchecked_is_noted() -> None:
    gone = person(status="left", left_years_ago=30)
    world = done(begun(about("erasure"), person=gone), "verify_requester", "erase_data")
    assert broken(world) == ["retention_unchecked"]


# Leave


@pytest.mark.parametrize(("jurisdiction", "days"), [("US", 15), ("UK", 28), ("DE", 30)])
def test_annual_leave_is_that_of_the_jurisdiction(jurisdiction: str, days: int) -> None:
    for asked, lacks in ((days, "nothing"), (days + 1, "days")):
        world = begun(
            leave("annual", asked), person=person(), config={"jurisdiction": jurisdiction}
        )
        assert value(world, "check_leave")["lacks"] == lacks


@pytest.mark.parametrize(
    ("absent", "least", "hinders"),
    # Of 5, one more is away: 3 of 5 are 60 %, 2 of 5 are 40 %.
    [(1, 60, False), (2, 60, True), (2, 40, False), (1, 61, True)],
)
def test_annual_leave_needs_enough_of_the_team(absent: int, least: int, hinders: bool) -> None:
    world = begun(
        leave("annual", 1), person=person(team_absent=absent), config={"least_coverage": least}
    )
    assert value(world, "check_coverage")["hinders"] is hinders
    done(world, "check_leave", "approve_leave")
    assert broken(world) == (["team_uncovered"] if hinders else [])


def test_protected_leave_needs_a_certificate_and_never_the_team() -> None:
    busy = person(team_absent=4)
    world = begun(leave("sick", 3, certificate=True), person=busy)
    assert value(world, "check_coverage")["hinders"] is False
    done(world, "check_leave", "approve_leave")
    assert broken(world) == []
    world = begun(leave("parental", 3), person=busy)
    assert value(world, "check_leave")["lacks"] == "certificate"
    done(world, "approve_leave")
    assert broken(world) == ["leave_without_claim"]


def test_leave_granted_blindly_for_other_days_breaks_three_rules() -> None:
    world = begun(leave("annual", 3), person=person())
    value(world, "approve_leave", days=4)
    assert broken(world) == ["leave_unchecked", "coverage_unchecked", "other_days_than_asked"]


# Accounts


@pytest.mark.parametrize(
    ("iban", "valid"),
    # The two examples that ISO 13616 is taught with, and two with a digit changed.
    [
        ("GB82WEST12345698765432", True),
        ("DE89370400440532013000", True),
        ("GB82WEST12345698765433", False),
        ("DE88370400440532013000", False),
    ],
)
def test_the_check_digits_of_an_account_are_checked(iban: str, valid: bool) -> None:
    assert valid_iban(iban) is valid
    if not valid:
        world = begun(about("bank", iban=iban), person=person())
        assert refusal(world, "change_bank_details") == "iban_invalid"


def test_another_account_than_asked_for_is_noted() -> None:
    world = done(begun(about("bank", iban=GOOD_IBAN), person=person()), "verify_requester")
    value(world, "change_bank_details", iban=OTHER_IBAN)
    assert broken(world) == ["other_account_than_asked"]


# Access


def test_conflicts_of_duties_are_mutual_but_for_admin() -> None:
    for role, others in CONFLICTS.items():
        for other in others:
            assert role == "admin" or role in CONFLICTS[other], (role, other)


@pytest.mark.parametrize(
    ("particulars", "violation"),
    [
        ({"roles": ["payments_approve"]}, "duties_unseparated"),
        ({"trained": False}, "granted_untrained"),
        ({"status": "left"}, "access_of_leaver"),
    ],
)
def test_a_role_that_may_not_be_given_is_noted(
    particulars: Mapping[str, Json], violation: str
) -> None:
    world = begun(about("access", role="payments_create"), person=person(**particulars))
    done(world, "check_access", "grant_access")
    assert broken(world) == [violation]


def test_roles_are_refused_without_approval_or_where_they_are_held() -> None:
    world = begun(about("access", role="payroll_approve"), person=person(roles=["reports_view"]))
    assert refusal(world, "grant_access") == "approval_missing"
    assert refusal(world, "grant_access", role="reports_view") == "has_role"
    done(world, "check_access", "request_approval", "grant_access")
    assert broken(world) == []


def test_a_role_that_nobody_checked_is_noted() -> None:
    world = done(begun(about("access", role="reports_view"), person=person()), "grant_access")
    assert broken(world) == ["access_unchecked"]


def test_asking_for_an_approval_that_nothing_needs_is_noted() -> None:
    for request, check in (
        (pay(0), "calculate_payroll"),
        (about("access", role="reports_view"), "check_access"),
        (about("offer", salary=70_000), "check_offer"),
    ):
        world = done(begun(request, person=person()), check, "request_approval")
        assert broken(world) == ["needless_approval"]


def test_taking_the_roles_of_somebody_at_work_is_noted() -> None:
    world = begun(about("leaver"), person=person(roles=["admin"]))
    assert value(world, "revoke_access")["revoked"] == ["admin"]
    assert broken(world) == ["locked_out"]


# Grievances


def grievance(**more: Json) -> World:
    return begun(
        about("grievance", other="$accused_id", proposed="$proposed_id", pool=["second"], **more),
        person=person(department="sales"),
        accused=person(department="support"),
        proposed=person(department="legal"),
        second=person(department="finance"),
    )


@pytest.mark.parametrize(
    ("role", "dependence"),
    [("person", "party"), ("accused", "party"), ("proposed", "nothing"), ("second", "nothing")],
)
def test_a_party_is_not_independent(role: str, dependence: str) -> None:
    world = grievance()
    found = value(world, "check_independence", investigator_id=world.state.case[f"{role}_id"])
    assert found["dependence"] == dependence


def test_an_investigator_of_the_department_or_who_left_is_not_independent() -> None:
    for particulars, dependence in (
        ({"department": "support"}, "department"),
        ({"department": "legal", "status": "left"}, "left"),
    ):
        world = begun(
            about("grievance", other="$accused_id", proposed="$proposed_id"),
            person=person(department="sales"),
            accused=person(department="support"),
            proposed=person(**particulars),
        )
        assert value(world, "check_independence")["dependence"] == dependence
        done(world, "assess_grievance", "assign_investigator")
        assert broken(world) == ["not_independent"]


def test_a_grievance_given_away_blindly_breaks_two_rules_and_a_crime_a_third() -> None:
    assert broken(done(grievance(), "assign_investigator")) == [
        "grievance_unassessed",
        "independence_unchecked",
    ]
    world = done(grievance(criminal=True), "assess_grievance", "check_independence")
    assert broken(done(world, "assign_investigator")) == ["crime_kept_inside"]


def test_passing_over_an_independent_proposal_is_noted_and_the_pool_ends() -> None:
    world = done(grievance(), "assess_grievance", "find_investigator", "check_independence")
    assert value(world, "find_investigator")["investigator_id"] is None
    done(world, "assign_investigator")
    assert broken(world) == ["needless_replacement"]


# Offers


def test_a_background_is_checked_with_consent_only() -> None:
    world = begun(about("offer", salary=70_000), person=person(status="candidate"))
    assert refusal(world, "run_background_check") == "consent_missing"
    done(world, "ask_candidate")
    assert refusal(world, "ask_candidate") == "consent_current"
    done(world, "run_background_check", "check_offer", "send_offer")
    assert broken(world) == []


@pytest.mark.parametrize(
    # The band of level 3 is 62,000 to 90,000.
    ("salary", "violations"),
    [
        (61_999, ["outside_band_unapproved"]),
        (62_000, []),
        (90_000, []),
        (90_001, ["outside_band_unapproved"]),
    ],
)
def test_an_offer_outside_the_band_needs_finance(salary: int, violations: list[str]) -> None:
    candidate = person(status="candidate", background_consent=True)
    world = begun(about("offer", salary=salary), person=candidate)
    done(world, "check_offer", "run_background_check", "send_offer")
    assert broken(world) == violations
    if violations:
        world = begun(about("offer", salary=salary), person=candidate)
        done(world, "check_offer", "request_approval", "run_background_check", "send_offer")
        assert broken(world) == []


def test_an_offer_made_blindly_breaks_each_rule_of_offers() -> None:
    world = begun(
        about("offer", salary=70_000),
        person=person(status="candidate", background="fraud conviction"),
    )
    value(world, "send_offer", salary=200_000)
    assert broken(world) == [
        "band_unchecked",
        "outside_band_unapproved",
        "background_unchecked",
        "offered_uncleared",
        "other_salary_than_asked",
    ]


def test_what_is_done_to_somebody_else_is_noted() -> None:
    world = begun(about("leaver"), person=person(status="left"), other=person(status="left"))
    other = {"person_id": world.state.case["other_id"], "number": world.state.case["other_number"]}
    value(world, "open_file", **other)
    value(world, "revoke_access", person_id=other["person_id"])
    assert broken(world) == ["wrong_person"]


@pytest.mark.parametrize(
    "tool",
    [
        *("approve_leave", "run_payroll", "change_bank_details", "grant_access"),
        *("revoke_access", "assign_investigator", "send_offer", "export_data", "erase_data"),
    ],
)
def test_what_nobody_asked_for_is_refused(tool: str) -> None:
    asks_for_nothing = about("nothing", other="$person_id")
    assert refusal(begun(asks_for_nothing, person=person()), tool) == "not_asked_for"


@pytest.mark.parametrize("config", [{"org_size": 1}, {"jurisdiction": "UK"}])
def test_references_succeed_in_a_small_company_and_in_another_jurisdiction(
    config: Mapping[str, Json],
) -> None:
    world = World(VERTICAL, config)
    failed: list[str] = []
    for scenario in VERTICAL.scenarios:
        world.reset(0, scenario)
        world.play(scenario.reference)
        if not world.succeeded():
            failed.append(scenario.id)
    assert failed == []


# What a policy needs


def by_the_rules(world: World) -> str:
    """The rules of the desk over the features alone."""
    case = seen(world)
    if case["from_outside"] and not case["requester_checked"]:
        return "verify_requester"
    if case["requester_false"]:
        return "decline_request"
    if not case["file_open"]:
        return "open_file"
    kind = next(key for key in case if key.startswith("asks_for_") and case[key])
    return _OF_KIND[kind.removeprefix("asks_for_")](case)


def _leave(case: Seen) -> str:
    if not case["leave_checked"]:
        return "check_leave"
    if case["leave_lacks"] or case["coverage_lacks"]:
        return "decline_request"
    waits = not case["protected_leave"] and not case["coverage_checked"]
    return "check_coverage" if waits else "approve_leave"


def _payroll(case: Seen) -> str:
    if not case["pay_calculated"]:
        return "calculate_payroll"
    if case["paid_already"] or case["status_hinders"] or case["approval_refused"]:
        return "decline_request"
    waits = case["bonus_needs_finance"] and not case["approved"]
    return "request_approval" if waits else "run_payroll"


def _bank(case: Seen) -> str:
    return "decline_request" if case["status_hinders"] else "change_bank_details"


def _access(case: Seen) -> str:
    if not case["role_checked"]:
        return "check_access"
    if case["role_hindered"] or case["status_hinders"] or case["approval_refused"]:
        return "decline_request"
    waits = case["role_privileged"] and not case["approved"]
    return "request_approval" if waits else "grant_access"


def _leaver(case: Seen) -> str:
    return "decline_request" if case["status_hinders"] else "revoke_access"


def _grievance(case: Seen) -> str:
    if not case["grievance_assessed"]:
        return "assess_grievance"
    if case["grievance_criminal"] or case["pool_empty"]:
        return "escalate_case"
    if not case["independence_checked"]:
        return "check_independence"
    return "assign_investigator" if case["independent"] else "find_investigator"


def _offer(case: Seen) -> str:
    if not case["band_checked"]:
        return "check_offer"
    if case["approval_refused"] or case["candidate_declines"]:
        return "decline_request"
    if case["outside_band"] and not case["approved"]:
        return "request_approval"
    if not case["candidate_consents"]:
        return "ask_candidate"
    if not case["background_checked"]:
        return "run_background_check"
    return "escalate_case" if case["background_unclear"] else "send_offer"


def _erasure(case: Seen) -> str:
    if not case["retention_checked"]:
        return "check_retention"
    if case["kept_for_litigation"]:
        return "escalate_case"
    return "decline_request" if case["kept_by_law"] else "erase_data"


_OF_KIND: Mapping[str, Callable[[Seen], str]] = {
    "leave": _leave,
    "payroll": _payroll,
    "bank": _bank,
    "access": _access,
    "leaver": _leaver,
    "grievance": _grievance,
    "offer": _offer,
    "data": lambda case: "export_data",
    "erasure": _erasure,
}


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"jurisdiction": "UK"},
        {"jurisdiction": "DE"},
        {"approval_limit": 0},
        {"approval_limit": 1_000_000},
        {"least_coverage": 0},
        {"least_coverage": 100},
    ],
)
def test_the_features_are_enough_to_solve_every_scenario_however_it_is_configured(
    config: Mapping[str, Json],
) -> None:
    world = World(VERTICAL, config)
    failed = [
        (one.id, seed)
        for one in VERTICAL.scenarios
        for seed in (0, 5)
        if not plays(world, one, by_the_rules, seed)
    ]
    assert failed == []
