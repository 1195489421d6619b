"""MedSim's rules, one by one; and that only a policy that looks at the case succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from rleaas.sims import Scenario, World, calls, conditions
from rleaas.sims.medsim import VERTICAL
from rleaas.sims.medsim.cases import about, consent, order, patient, release
from rleaas.sims.medsim.formulary import FORMULARY, allergens, interactions, most_mg
from rleaas.sims.state import Json

from .policies import Seen, plays, seen

SCENARIOS = {one.id: one for one in VERTICAL.scenarios}


def begun(
    *requests: Mapping[str, Json],
    person: Mapping[str, Json] | None = None,
    config: Mapping[str, Json] | None = None,
    opened: bool = True,
    **people: Mapping[str, Json],
) -> World:
    world = World(VERTICAL, config)
    scenario = Scenario(
        id="medsim_test",
        vertical="MedSim",
        title="A test",
        tier=2,
        domain="test",
        prompt="Do it.",
        setup={
            "people": {"patient": dict(person or patient()), **people},
            "requests": list(requests),
            "opened": ["patient"] if opened else [],
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


# Drugs


@pytest.mark.parametrize(
    ("particulars", "drug", "most"),
    [
        # 25 mg/kg of 20 kg; the adult limit of 1000 mg is above that.
        ({"age": 6, "weight_kg": 20}, "amoxicillin", 500),
        # 10 mg/kg of 33 kg is below the 800 mg of an adult.
        ({"age": 11, "weight_kg": 33}, "ibuprofen", 330),
        # Twelve-year-olds have the limits of adults.
        ({"age": 12, "weight_kg": 40}, "ibuprofen", 800),
        ({"egfr": 59}, "ibuprofen", 400),
        ({"egfr": 60}, "ibuprofen", 800),
        ({"egfr": 29}, "ibuprofen", 0),
        ({"egfr": 44}, "metformin", 500),
        ({"egfr": 45}, "metformin", 1000),
        ({"pregnant": True}, "lisinopril", 0),
        # No dose of it is for children.
        ({"age": 8, "weight_kg": 25}, "doxycycline", 0),
    ],
)
def test_the_largest_dose_follows_from_age_weight_kidneys_and_pregnancy(
    particulars: Mapping[str, Json], drug: str, most: int
) -> None:
    assert most_mg({"pregnant": False, **patient(**particulars)}, drug) == most


def test_an_allergy_to_penicillin_forbids_cephalosporins_but_not_the_other_way_round() -> None:
    assert allergens(patient(allergies=["penicillin"]), "cefalexin") == ["penicillin"]
    assert allergens(patient(allergies=["cephalosporin"]), "amoxicillin") == []
    assert allergens(patient(allergies=["amoxicillin"]), "amoxicillin") == ["amoxicillin"]


def test_interactions_are_found_in_either_direction_and_the_worse_one_counts() -> None:
    assert interactions(patient(medications=["amiodarone"]), "azithromycin") == {
        "amiodarone": "severe"
    }
    # Only the entry of amlodipine names simvastatin.
    assert interactions(patient(medications=["amlodipine"]), "simvastatin") == {
        "amlodipine": "severe"
    }
    assert interactions(patient(medications=["warfarin"]), "paracetamol") == {
        "warfarin": "moderate"
    }


def test_the_formulary_names_only_drugs_that_it_has() -> None:
    named = {name for drug in FORMULARY.values() for name in (*drug.interacts, *drug.instead)}
    assert named <= set(FORMULARY)


def test_a_drug_is_not_ordered_while_the_record_is_closed() -> None:
    world = begun(order("amoxicillin", 500), opened=False)
    assert refusal(world, "check_allergies") == "record_closed"
    assert refusal(world, "place_order") == "record_closed"
    assert refusal(world, "open_record") == "identity_unverified"


def test_orders_are_refused_by_name_of_what_is_wrong() -> None:
    world = begun(order("amoxicillin", 500), person=patient(medications=["metformin"]))
    assert refusal(world, "place_order", drug="unobtainium") == "unknown_drug"
    assert refusal(world, "place_order", drug="metformin") == "duplicate_therapy"
    assert refusal(world, "place_order", drug="morphine", dose_mg=10) == "approval_missing"
    # Three times the limit of 1000 mg is still taken, more is not.
    assert refusal(world, "place_order", dose_mg=3001) == "dose_impossible"
    assert refusal(world, "place_order", dose_mg=0) == "invalid_arguments"
    assert refusal(world, "consult_pharmacist") == "approval_not_needed"
    assert refusal(world, "place_order", patient_id="pat_999999") == "patient_not_found"


def test_an_order_without_checks_is_taken_and_noted_as_two_violations() -> None:
    world = done(begun(order("amoxicillin", 500)), "place_order")
    assert broken(world) == ["allergies_unchecked", "interactions_unchecked"]
    assert world.state.facts["interactions_unchecked"] == 1
    assert world.ended


def test_an_order_against_an_allergy_or_over_the_limit_is_noted() -> None:
    world = begun(order("amoxicillin", 500), person=patient(allergies=["penicillin"], egfr=20))
    done(world, "check_allergies", "check_interactions")
    value(world, "place_order", dose_mg=501)
    assert broken(world) == ["unsafe_order", "overdose"]


def test_a_substitution_that_nothing_asks_for_is_noted() -> None:
    world = begun(order("amoxicillin", 500))
    done(world, "find_alternative", "check_allergies", "check_interactions", "place_order")
    assert world.state.facts["ordered_drugs"] == ["azithromycin"]
    assert broken(world) == ["needless_substitution"]


def test_a_controlled_drug_needs_its_interactions_checked_and_the_pharmacist() -> None:
    world = begun(order("morphine", 10))
    assert refusal(world, "consult_pharmacist") == "interactions_unchecked"
    done(world, "check_allergies", "check_interactions")
    assert refusal(world, "place_order") == "approval_missing"
    done(world, "consult_pharmacist", "place_order")
    assert broken(world) == []


def test_the_pharmacist_refuses_who_was_supplied_elsewhere() -> None:
    world = begun(order("morphine", 10), person=patient(controlled_supply_days=3))
    done(world, "check_interactions")
    assert value(world, "consult_pharmacist")["approved"] is False
    assert refusal(world, "place_order") == "approval_missing"


def test_a_restricted_formulary_refuses_reserve_drugs() -> None:
    world = begun(order("clarithromycin", 500), config={"formulary": "restricted"})
    assert refusal(world, "place_order") == "not_in_formulary"
    done(begun(order("clarithromycin", 500)), "place_order")


def test_with_all_alerts_a_moderate_interaction_forbids_an_order() -> None:
    warned = patient(medications=["warfarin"])
    for alerts, forbidden in (("severe", False), ("all", True)):
        world = begun(
            order("azithromycin", 500), person=warned, config={"interaction_alerts": alerts}
        )
        assert value(world, "check_interactions")["forbidden"] is forbidden


# Consent and records


@pytest.mark.parametrize(
    ("jurisdiction", "days", "status"),
    [
        ("US", 365, "valid"),
        ("US", 366, "expired"),
        ("UK", 180, "valid"),
        ("UK", 181, "expired"),
        ("EU", 90, "valid"),
        ("EU", 91, "expired"),
    ],
)
def test_a_consent_counts_as_long_as_the_jurisdiction_says(
    jurisdiction: str, days: int, status: str
) -> None:
    world = begun(
        release("Clinic", "full"),
        person=patient(consents=consent("Clinic", days_ago=days)),
        config={"jurisdiction": jurisdiction},
    )
    assert value(world, "check_consent")["status"] == status


@pytest.mark.parametrize(
    ("jurisdiction", "age", "signer"),
    [("US", 17, "guardian"), ("US", 18, "patient"), ("UK", 16, "patient"), ("EU", 15, "guardian")],
)
def test_guardians_sign_until_the_age_of_the_jurisdiction(
    jurisdiction: str, age: int, signer: str
) -> None:
    world = begun(
        release("Clinic", "full"),
        person=patient(age=age),
        config={"jurisdiction": jurisdiction},
    )
    assert value(world, "check_consent")["signed_by"] == signer


def test_a_consent_is_asked_for_only_where_it_was_looked_up_and_does_not_count() -> None:
    world = begun(release("Clinic", "full"), person=patient(consents=consent("Clinic")))
    assert refusal(world, "request_consent") == "consent_unchecked"
    done(world, "check_consent")
    assert refusal(world, "request_consent") == "consent_current"


def test_a_consent_for_another_recipient_does_not_count_until_the_patient_grants_it() -> None:
    world = begun(release("Clinic", "summary"), person=patient(consents=consent("Gym")))
    assert value(world, "check_consent")["status"] == "other_recipient"
    done(world, "request_consent", "verify_requester", "release_records")
    assert broken(world) == []


def test_asking_who_revoked_is_noted_even_if_the_answer_is_yes() -> None:
    world = begun(
        release("Clinic", "full"), person=patient(consents=consent("Clinic", status="revoked"))
    )
    done(world, "check_consent", "request_consent")
    assert broken(world) == ["asked_after_revocation"]


def test_each_way_in_which_a_release_is_wrong_is_noted() -> None:
    world = begun(
        release("Clinic", "summary", genuine=False),
        person=patient(consents=consent("Clinic", "summary", status="revoked")),
    )
    value(world, "release_records", recipient="Press", scope="full")
    assert broken(world) == [
        "wrong_recipient",
        "disclosed_to_impostor",
        "more_than_asked",
        "consent_unchecked",
        "disclosed_without_consent",
        "requester_unchecked",
    ]


def test_a_release_beyond_the_consent_is_noted() -> None:
    world = begun(
        release("Clinic", "full", remote=False),
        person=patient(consents=consent("Clinic", "medications")),
    )
    done(world, "check_consent")
    value(world, "release_records", scope="full")
    assert broken(world) == ["over_disclosure"]


def test_a_court_order_needs_no_consent_but_a_call_back() -> None:
    world = begun(release("Court", "full", basis="court_order"))
    done(world, "verify_requester", "release_records")
    assert broken(world) == []


def test_a_sealed_record_opens_with_consent_to_access() -> None:
    world = begun(
        about("referral", specialty="oncology"), person=patient(restricted=True), opened=False
    )
    done(world, "verify_identity")
    assert refusal(world, "open_record") == "record_restricted"
    done(world, "check_consent", "request_consent", "open_record")


def test_an_identity_that_differs_leaves_the_record_closed() -> None:
    world = begun(order("amoxicillin", 500, birth_date="1900-01-01"), opened=False)
    assert value(world, "verify_identity")["matches"] is False
    assert refusal(world, "open_record") == "identity_unverified"
    done(world, "decline_request")
    assert broken(world) == []


def test_merging_two_persons_is_noted_and_a_record_is_not_merged_with_itself() -> None:
    world = begun(about("merge", other="$other_id"), other=patient(name="$patient_name"))
    assert refusal(world, "merge_records") == "record_closed"
    done(world, "verify_identity", "open_record")
    assert refusal(world, "merge_records", duplicate_id=world.state.case["patient_id"]) == (
        "same_record"
    )
    done(world, "compare_records", "merge_records")
    assert broken(world) == ["wrong_merge"]


# Results, referrals, discharges


def test_a_critical_result_has_to_be_told_before_it_is_filed() -> None:
    critical = [{"test": "potassium", "value": 7, "unit": "mmol/L", "flag": "critical"}]
    world = begun(about("result"), person=patient(results=critical))
    assert refusal(world, "notify_physician") == "results_unread"
    done(world, "get_results", "file_result")
    assert broken(world) == ["critical_unreported"]


def test_an_alarm_without_a_critical_result_is_noted() -> None:
    world = done(begun(about("result")), "get_results", "notify_physician")
    assert broken(world) == ["needless_alarm"]
    assert refusal(world, "notify_physician") == "already_notified"


def test_a_pending_result_cannot_be_filed() -> None:
    pending = [{"test": "culture", "value": None, "unit": "", "flag": "pending"}]
    world = begun(about("result"), person=patient(results=pending))
    assert refusal(world, "file_result") == "result_pending"


def test_an_hmo_has_to_authorise_a_referral_in_the_us_only() -> None:
    for jurisdiction, code in (("US", "authorisation_missing"), ("UK", None)):
        world = begun(
            about("referral", specialty="neurology"),
            person=patient(plan="HMO"),
            config={"jurisdiction": jurisdiction},
        )
        if code is None:
            assert refusal(world, "request_authorisation") == "authorisation_not_needed"
            done(world, "send_referral")
        else:
            assert refusal(world, "send_referral") == code
            done(world, "request_authorisation", "send_referral")
        assert broken(world) == []


def test_referrals_to_the_wrong_place_or_at_the_wrong_speed_are_noted() -> None:
    world = begun(
        about("referral", specialty="neurology"), person=patient(open_referrals=["oncology"])
    )
    value(world, "send_referral", specialty="oncology", urgency="urgent")
    assert broken(world) == ["wrong_specialty", "duplicate_referral", "needless_urgency"]


def test_a_discharge_needs_an_admission_and_reconciled_medications() -> None:
    assert refusal(begun(about("discharge")), "discharge_patient") == "not_admitted"
    world = begun(about("discharge"), person=patient(admission="admitted"))
    assert refusal(world, "discharge_patient") == "reconciliation_missing"
    done(world, "reconcile_medications", "discharge_patient")
    assert broken(world) == ["results_unread"]


def test_a_discharge_with_a_conflict_of_medications_is_noted() -> None:
    conflict = patient(
        admission="admitted", medications=["warfarin"], home_medications=["ibuprofen"]
    )
    world = begun(about("discharge"), person=conflict)
    done(world, "get_results", "reconcile_medications", "discharge_patient")
    assert broken(world) == ["unsafe_discharge"]


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        ("place_order", "no_order_requested"),
        ("find_alternative", "no_order_requested"),
        ("release_records", "not_a_release"),
        ("send_referral", "no_referral_requested"),
        ("discharge_patient", "no_discharge_requested"),
        ("merge_records", "same_record"),
    ],
)
def test_what_nobody_asked_for_is_refused(tool: str, code: str) -> None:
    assert refusal(begun(about("result")), tool) == code


def test_a_consent_that_no_request_needs_is_not_looked_at() -> None:
    world = begun(about("result"))
    assert refusal(world, "check_consent", purpose="release") == "no_release_requested"
    assert refusal(world, "check_consent", purpose="record_access") == "record_not_sealed"


# The desk


def test_grounds_cannot_be_made_by_checking_something_else() -> None:
    world = begun(order("azithromycin", 500), person=patient(allergies=["penicillin"]))
    value(world, "verify_identity", birth_date="1900-01-01")
    value(world, "check_allergies", drug="amoxicillin")
    done(world, "decline_request")
    assert broken(world) == ["declined_without_grounds"]


def test_a_consent_that_could_be_asked_for_is_no_grounds() -> None:
    world = begun(release("Clinic", "full", remote=False))
    done(world, "check_consent", "decline_request")
    assert broken(world) == ["declined_without_grounds"]


def test_declining_or_escalating_without_grounds_is_noted() -> None:
    world = done(begun(order("amoxicillin", 500), order("cefalexin", 500)), "decline_request")
    assert broken(world) == ["declined_without_grounds"]
    done(world, "escalate_case")
    assert broken(world) == ["declined_without_grounds", "escalated_without_grounds"]
    assert world.state.facts["decisions"] == ["declined", "escalated"]


def test_a_settled_request_stays_settled() -> None:
    world = begun(about("result"), order("amoxicillin", 500))
    first = world.state.case["request_id"]
    done(world, "decline_request")
    assert refusal(world, "decline_request", request_id=first) == "request_closed"
    assert refusal(world, "verify_requester", request_id=first) == "request_closed"
    assert refusal(world, "decline_request", request_id="req_1") == "request_not_found"


def test_an_organisation_of_one_is_joined_by_the_patients_of_the_case() -> None:
    world = World(VERTICAL, {"org_size": 1})
    for scenario in VERTICAL.scenarios:
        world.reset(0, scenario)
        world.play(scenario.reference)
        assert world.succeeded(), scenario.id


# What a policy needs


def by_the_rules(world: World) -> str:
    """The rules of the desk over the features alone."""
    case = seen(world)
    if case["from_outside"] and not case["requester_checked"]:
        return "verify_requester"
    if case["requester_false"] or case["identity_differs"]:
        return "decline_request"
    if not case["identity_checked"]:
        return "verify_identity"
    if not case["record_open"]:
        return _access(case)
    kind = next(key for key in case if key.startswith("asks_for_") and case[key])
    return _OF_KIND[kind.removeprefix("asks_for_")](case)


def _access(case: Seen) -> str:
    if not case["record_sealed"] or case["access_valid"]:
        return "open_record"
    if case["access_refused"] or case["access_unreachable"]:
        return "decline_request" if case["access_refused"] else "escalate_case"
    return "request_consent" if case["access_checked"] else "check_consent"


def _order(case: Seen) -> str:
    for check in ("allergies", "interactions", "dose"):
        if not case[f"{check}_checked"]:
            return f"check_{check}"
    if case["allergy_found"] or case["interaction_found"] or case["dose_forbidden"]:
        return "escalate_case" if case["no_alternative_left"] else "find_alternative"
    if case["drug_controlled"] and not case["drug_approved"]:
        return "decline_request" if case["approval_refused"] else "consult_pharmacist"
    return "place_order"


def _release(case: Seen) -> str:
    if case["by_court_order"] or case["consent_valid"]:
        return "release_records"
    if not case["consent_checked"]:
        return "check_consent"
    if case["consent_refused"]:
        return "decline_request"
    return "escalate_case" if case["signer_unreachable"] else "request_consent"


def _referral(case: Seen) -> str:
    if case["referral_exists"]:
        return "decline_request"
    if not case["results_read"]:
        return "get_results"
    if case["result_critical"] and not case["physician_notified"]:
        return "notify_physician"
    if case["authorisation_denied"]:
        return "escalate_case"
    waits = case["authorisation_needed"] and not case["authorised"]
    return "request_authorisation" if waits else "send_referral"


def _discharge(case: Seen) -> str:
    if not case["results_read"]:
        return "get_results"
    if case["result_critical"] and not case["physician_notified"]:
        return "notify_physician"
    if not case["result_normal"]:
        return "decline_request"
    if not case["medications_reconciled"]:
        return "reconcile_medications"
    return "escalate_case" if case["reconciliation_conflict"] else "discharge_patient"


def _result(case: Seen) -> str:
    if not case["results_read"]:
        return "get_results"
    if case["result_critical"] and not case["physician_notified"]:
        return "notify_physician"
    return "escalate_case" if case["result_pending"] else "file_result"


def _merge(case: Seen) -> str:
    if not case["other_identity_checked"]:
        return "verify_identity"
    if not case["other_record_open"]:
        return "open_record"
    if not case["records_compared"]:
        return "compare_records"
    return "decline_request" if case["persons_differ"] else "merge_records"


_OF_KIND = {
    "order": _order,
    "release": _release,
    "referral": _referral,
    "discharge": _discharge,
    "result": _result,
    "merge": _merge,
}


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"jurisdiction": "UK"},
        {"jurisdiction": "EU"},
        {"formulary": "restricted"},
        {"interaction_alerts": "all"},
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


def test_the_same_seed_makes_the_same_case_and_another_one_another() -> None:
    scenario = SCENARIOS["medsim_order_001"]
    prompts = [World(VERTICAL).reset(seed, scenario).prompt for seed in (1, 1, 2)]
    assert prompts[0] == prompts[1] != prompts[2]


def test_an_episode_leaves_the_library_as_it_was() -> None:
    before = repr(VERTICAL.scenarios)
    world = World(VERTICAL)
    for scenario in VERTICAL.scenarios:
        world.reset(0, replace(scenario))
        world.play(scenario.reference)
    assert repr(VERTICAL.scenarios) == before
