"""Results, referrals and discharges."""

from __future__ import annotations

from rleaas.sims.desk import (
    COMPLETED,
    Arguments,
    add,
    all_settled,
    append,
    choice,
    focus,
    found,
    mark,
    open_request,
    setting,
    settle,
    violate,
)
from rleaas.sims.medsim.formulary import SEVERE, interactions
from rleaas.sims.medsim.tools_records import PATIENT, opened
from rleaas.sims.state import Record, State
from rleaas.sims.tool import Refused, Tool, arguments_schema

SPECIALTIES = ("cardiology", "dermatology", "nephrology", "neurology", "oncology", "orthopaedics")
CRITICAL = "critical"
PENDING = "pending"
NORMAL = "normal"


def worst_result(patient: Record) -> str:
    """The flag that counts, of all results of a patient."""
    flags = {result["flag"] for result in patient["results"]}
    return next((flag for flag in (CRITICAL, PENDING) if flag in flags), NORMAL)


def needs_authorisation(state: State, patient: Record) -> bool:
    """Whether the patient's insurer has to authorise a referral."""
    return bool(setting(state, "jurisdiction") == "US" and patient["plan"] == "HMO")


def _get_results(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    worst = worst_result(patient)
    mark(state, "results", patient["id"], worst, worst != NORMAL)
    state.clock += 2
    return {"patient_id": patient["id"], "results": patient["results"]}


def _notify(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    key = patient["id"]
    worst = found(state, "results", key)
    if worst is None:
        raise Refused("results_unread", f"get_results of {key} first: what is there to tell?")
    if found(state, "notified", key):
        raise Refused("already_notified", f"the physician knows of {key}")
    if worst != CRITICAL:
        violate(state, "needless_alarm")
    mark(state, "notified", key, True)
    append(state, "critical_reported", key)
    state.clock += 5
    return {"patient_id": key, "read_back": True}


def _file_result(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    key = patient["id"]
    request = open_request(state, ("result",), key)
    if request is None:
        raise Refused("no_result_to_file", f"there is no open result of {key}")
    worst = worst_result(patient)
    if worst == PENDING:
        raise Refused("result_pending", f"a result of {key} is preliminary and cannot be filed")
    if found(state, "results", key) is None:
        violate(state, "results_unread")
    _require_reported(state, key, worst)
    settle(state, request, COMPLETED)
    append(state, "results_filed", key)
    state.clock += 2
    return {"request_id": request["id"], "filed": True}


def _require_reported(state: State, key: str, worst: str) -> None:
    if worst == CRITICAL and not found(state, "notified", key):
        add(state, "critical_unreported")
        violate(state, "critical_unreported")


def _authorise(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    if not needs_authorisation(state, patient):
        raise Refused("authorisation_not_needed", f"the plan of {patient['id']} needs none")
    granted = arguments["specialty"] not in patient.get("not_covered", ())
    mark(state, "authorised", f"{patient['id']}/{arguments['specialty']}", granted, not granted)
    state.clock += 20
    return {"patient_id": patient["id"], "authorised": granted}


def _refer(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    key, specialty = patient["id"], arguments["specialty"]
    request = open_request(state, ("referral",), key)
    if request is None:
        raise Refused("no_referral_requested", f"there is no open referral of {key}")
    authorised = found(state, "authorised", f"{key}/{specialty}")
    if needs_authorisation(state, patient) and not authorised:
        raise Refused("authorisation_missing", f"the plan of {key} needs request_authorisation")
    if specialty != request["specialty"]:
        violate(state, "wrong_specialty")
    if specialty in patient["open_referrals"]:
        violate(state, "duplicate_referral")
    critical = worst_result(patient) == CRITICAL
    if critical and arguments["urgency"] == "routine":
        violate(state, "urgency_missed")
    if not critical and arguments["urgency"] == "urgent":
        violate(state, "needless_urgency")
    settle(state, request, COMPLETED)
    patient["open_referrals"].append(specialty)
    append(state, "referred_to", specialty)
    append(state, "referral_urgencies", arguments["urgency"])
    state.clock += 5
    return {"request_id": request["id"], "referred_to": specialty, "urgency": arguments["urgency"]}


def _conflicts(patient: Record) -> list[str]:
    """The drugs from home that interact severely with what the patient gets here."""
    return [
        drug
        for drug in patient["home_medications"]
        if SEVERE in interactions(patient, drug).values()
    ]


def _reconcile(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    conflicts = _conflicts(patient)
    mark(state, "reconciled", patient["id"], "conflict" if conflicts else "clean", bool(conflicts))
    state.clock += 5
    return {
        "patient_id": patient["id"],
        "home_medications": patient["home_medications"],
        "hospital_medications": patient["medications"],
        "severe_conflicts": conflicts,
    }


def _discharge(state: State, arguments: Arguments) -> Record:
    patient = opened(state, arguments["patient_id"])
    key = patient["id"]
    request = open_request(state, ("discharge",), key)
    if request is None:
        raise Refused("no_discharge_requested", f"there is no open discharge of {key}")
    if patient["admission"] != "admitted":
        raise Refused("not_admitted", f"{key} is {patient['admission']}, not admitted")
    if found(state, "reconciled", key) is None:
        raise Refused("reconciliation_missing", f"reconcile_medications of {key} first")
    worst = worst_result(patient)
    if found(state, "results", key) is None:
        violate(state, "results_unread")
    if worst != NORMAL or _conflicts(patient):
        violate(state, "unsafe_discharge")
    _require_reported(state, key, worst)
    settle(state, request, COMPLETED)
    patient["admission"] = "discharged"
    append(state, "discharged_patients", key)
    state.clock += 10
    return {"request_id": request["id"], "discharged": key}


def _about_patient(state: State) -> Record:
    return {"patient_id": focus(state)["subject"]}


def _about_referral(state: State) -> Record:
    request = focus(state)
    return {
        "patient_id": request["subject"],
        "specialty": request.get("specialty", SPECIALTIES[0]),
    }


def _suggest_referral(state: State) -> Record:
    critical = found(state, "results", focus(state)["subject"]) == CRITICAL
    return {**_about_referral(state), "urgency": "urgent" if critical else "routine"}


_PATIENT = arguments_schema(patient_id=PATIENT)
_SPECIALTY = choice(*SPECIALTIES, description="to which department")

TOOLS = (
    Tool(
        name="get_results",
        description="Read the laboratory results of an open record, with their flags: normal, "
        "critical, or pending where they are preliminary.",
        parameters=_PATIENT,
        category="read",
        run=_get_results,
        compliance_tags=("patient_safety",),
        suggest=_about_patient,
    ),
    Tool(
        name="notify_physician",
        description="Tell the physician on call of a critical result, with read-back. Due for "
        "each critical result that was read, and for no other.",
        parameters=_PATIENT,
        category="notify",
        run=_notify,
        compliance_tags=("patient_safety",),
        suggest=_about_patient,
    ),
    Tool(
        name="file_result",
        description="File a final result. Settles the request.",
        parameters=_PATIENT,
        category="write",
        run=_file_result,
        ends_episode=True,
        ends_when=all_settled,
        suggest=_about_patient,
    ),
    Tool(
        name="request_authorisation",
        description="Ask the insurer to authorise a referral; HMO plans need it.",
        parameters=arguments_schema(patient_id=PATIENT, specialty=_SPECIALTY),
        category="approval",
        run=_authorise,
        suggest=_about_referral,
    ),
    Tool(
        name="send_referral",
        description="Refer a patient: urgent if a result is critical, else routine, and not where "
        "the same referral is open. Settles the request.",
        parameters=arguments_schema(
            patient_id=PATIENT,
            specialty=_SPECIALTY,
            urgency=choice("routine", "urgent", description="how soon"),
        ),
        category="write",
        run=_refer,
        ends_episode=True,
        ends_when=all_settled,
        suggest=_suggest_referral,
    ),
    Tool(
        name="reconcile_medications",
        description="Compare what the patient takes at home with what was given here.",
        parameters=_PATIENT,
        category="read",
        run=_reconcile,
        compliance_tags=("patient_safety",),
        suggest=_about_patient,
    ),
    Tool(
        name="discharge_patient",
        description="Discharge an admitted patient: results read, none critical or pending, "
        "medications reconciled without a severe conflict. Settles the request.",
        parameters=_PATIENT,
        category="write",
        run=_discharge,
        ends_episode=True,
        ends_when=all_settled,
        compliance_tags=("patient_safety",),
        suggest=_about_patient,
    ),
)
