"""MedSim's scenarios of tier 4: a whole shift, where one careless step spoils the rest."""

from __future__ import annotations

from rleaas.sims.medsim.cases import (
    CRITICAL_HAEMOGLOBIN,
    CRITICAL_POTASSIUM,
    DISCHARGE,
    DRUG,
    MERGE,
    NORMAL_SODIUM,
    OPEN,
    ORDER,
    PENDING_CULTURE,
    REFERRAL,
    RELEASE,
    RESULT,
    about,
    consent,
    lines,
    met,
    order,
    patient,
    release,
    task,
)

_ORDERED = (*OPEN, *DRUG, "place_order")
_REPLACED = (*OPEN, *DRUG, "find_alternative", *DRUG, "place_order")
_RELEASED = ("verify_requester", *OPEN, "check_consent", "release_records")
_FILED = (*OPEN, "get_results", "file_result")
_REPORTED = (*OPEN, "get_results", "notify_physician", "file_result")
_DISCHARGED = (*OPEN, "get_results", "reconcile_medications", "discharge_patient")
_HELD = (*OPEN, "get_results", "notify_physician", "decline_request")

TIER_4 = (
    task(
        "round_001",
        4,
        "Orders of the morning round",
        "The morning round left four orders. "
        + lines(
            ("patient", "amoxicillin 500 mg for *"),
            ("second", "ibuprofen 400 mg for *"),
            ("third", "cefalexin 500 mg for *"),
            ("fourth", "metformin 1000 mg for *"),
        ),
        people={
            "patient": patient(medications=["sertraline"]),
            "second": patient(age=73, medications=["lithium"]),
            "third": patient(allergies=["penicillin"]),
            "fourth": patient(age=69, egfr=41),
        },
        requests=(
            order("amoxicillin", 500),
            order("ibuprofen", 400, "second"),
            order("cefalexin", 500, "third"),
            order("metformin", 1000, "fourth"),
        ),
        tools=ORDER,
        success=met(
            *("completed", "completed", "completed", "completed"),
            ordered_patients="[patient_id, second_id, third_id, fourth_id]",
            ordered_drugs="['amoxicillin', 'paracetamol', 'azithromycin', 'metformin']",
            ordered_doses="[500, 1000, 500, 500]",
        ),
        reference=(*_ORDERED, *_REPLACED, *_REPLACED, *_ORDERED),
        bad=(*_ORDERED, *_ORDERED, *_REPLACED, *_ORDERED),
    ),
    task(
        "round_002",
        4,
        "Orders of the evening",
        "The evening left five orders. "
        + lines(
            ("patient", "trimethoprim 200 mg for *"),
            ("second", "morphine 10 mg for *"),
            ("third", "tramadol 50 mg for *"),
            ("fourth", "ibuprofen 400 mg for *, a child of 20 kg"),
            ("fifth", "diazepam 5 mg for *"),
        ),
        people={
            "patient": patient(age=70, medications=["methotrexate"], egfr=40),
            "second": patient(age=58),
            "third": patient(age=45, controlled_supply_days=12),
            "fourth": patient(age=6, weight_kg=20, guardian="Ruth Vale"),
            "fifth": patient(age=61, medications=["morphine"]),
        },
        requests=(
            order("trimethoprim", 200),
            order("morphine", 10, "second"),
            order("tramadol", 50, "third"),
            order("ibuprofen", 400, "fourth"),
            order("diazepam", 5, "fifth"),
        ),
        tools=ORDER,
        success=met(
            *("completed", "completed", "declined", "completed", "escalated"),
            ordered_patients="[patient_id, second_id, fourth_id]",
            ordered_drugs="['cefalexin', 'morphine', 'ibuprofen']",
            ordered_doses="[500, 10, 200]",
        ),
        reference=(
            *(*OPEN, *DRUG, "find_alternative", *DRUG, "find_alternative", *DRUG, "place_order"),
            *(*OPEN, *DRUG, "consult_pharmacist", "place_order"),
            *(*OPEN, *DRUG, "consult_pharmacist", "decline_request"),
            *_ORDERED,
            *(*OPEN, *DRUG, "find_alternative", "escalate_case"),
        ),
        bad=(
            *_REPLACED,
            *(*OPEN, *DRUG, "consult_pharmacist", "place_order"),
            *(*OPEN, *DRUG, "consult_pharmacist", "decline_request"),
            *_ORDERED,
            *(*OPEN, *DRUG, "find_alternative", "escalate_case"),
        ),
        split="evaluation",
    ),
    task(
        "records_001",
        4,
        "The records desk on a Monday",
        lines(
            ("patient", "Lakeside Clinic asks for the full record of *"),
            ("second", "Harbour Rehab asks for a summary of the record of *"),
            ("third", "Corvid Health Plan asks for the full record of *"),
            ("fourth", "Meridian Law asks for the full record of *"),
            ("fifth", "Summit Care asks for the medications of *"),
        ),
        people={
            "patient": patient(consents=consent("Lakeside Clinic", "medications")),
            "second": patient(consents=consent("Harbour Rehab", "summary", days_ago=700)),
            "third": patient(consents=consent("Corvid Health Plan", status="revoked")),
            "fourth": patient(consents=consent("Meridian Law")),
            "fifth": patient(answers="unreachable"),
        },
        requests=(
            release("Lakeside Clinic", "full"),
            release("Harbour Rehab", "summary", "second"),
            release("Corvid Health Plan", "full", "third"),
            release("Meridian Law", "full", "fourth", genuine=False),
            release("Summit Care", "medications", "fifth"),
        ),
        tools=RELEASE,
        success=met(
            *("completed", "completed", "declined", "declined", "escalated"),
            released_patients="[patient_id, second_id]",
            released_scopes="['medications', 'summary']",
        ),
        reference=(
            *_RELEASED,
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *("verify_requester", *OPEN, "check_consent", "decline_request"),
            *("verify_requester", "decline_request"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "escalate_case"),
        ),
        bad=(
            *_RELEASED,
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *("verify_requester", *OPEN, "check_consent", "decline_request"),
            *_RELEASED,
            *("verify_requester", *OPEN, "check_consent", "request_consent", "escalate_case"),
        ),
    ),
    task(
        "records_002",
        4,
        "The records desk before the holidays",
        lines(
            ("patient", "the district court orders the medications of *"),
            ("second", "Northwind Health Insurance asks for the full record of *"),
            ("third", "the sports academy asks for a summary of the record of *"),
            ("fourth", "the district court orders the full record of *"),
        ),
        people={
            "patient": patient(),
            "second": patient(consents=consent("Northwind Travel", "full"), grants_scope="summary"),
            "third": patient(age=12, weight_kg=40, guardian="Ruth Vale"),
            "fourth": patient(consents=consent("District Court")),
        },
        requests=(
            release("District Court", "medications", basis="court_order"),
            release("Northwind Health Insurance", "full", "second"),
            release("Sports Academy", "summary", "third"),
            release("District Court", "full", "fourth", basis="court_order", genuine=False),
        ),
        tools=RELEASE,
        success=met(
            *("completed", "completed", "completed", "declined"),
            released_patients="[patient_id, second_id, third_id]",
            released_scopes="['medications', 'summary', 'summary']",
        ),
        reference=(
            *("verify_requester", *OPEN, "release_records"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *("verify_requester", "decline_request"),
        ),
        bad=(
            *("verify_requester", *OPEN, "release_records"),
            *("verify_requester", *OPEN, "check_consent", "release_records"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *("verify_requester", "decline_request"),
        ),
        split="evaluation",
    ),
    task(
        "ward_001",
        4,
        "Four beds",
        lines(
            ("patient", "discharge *"),
            ("second", "discharge *"),
            ("third", "discharge *"),
            ("fourth", "discharge *"),
        ),
        people={
            "patient": patient(admission="admitted", results=[NORMAL_SODIUM]),
            "second": patient(admission="admitted", results=[NORMAL_SODIUM, CRITICAL_POTASSIUM]),
            "third": patient(admission="admitted", results=[PENDING_CULTURE]),
            "fourth": patient(
                admission="admitted", medications=["lithium"], home_medications=["ibuprofen"]
            ),
        },
        requests=tuple(
            about("discharge", role) for role in ("patient", "second", "third", "fourth")
        ),
        tools=DISCHARGE,
        success=met(
            *("completed", "declined", "declined", "escalated"),
            discharged_patients="[patient_id]",
            critical_reported="[second_id]",
            needs=("reconcile_medications",),
        ),
        reference=(
            *(*_DISCHARGED, *_HELD),
            *(*OPEN, "get_results", "decline_request"),
            *(*OPEN, "get_results", "reconcile_medications", "escalate_case"),
        ),
        bad=(
            *(*_DISCHARGED, *_HELD),
            *_DISCHARGED,
            *(*OPEN, "get_results", "reconcile_medications", "escalate_case"),
        ),
    ),
    task(
        "laboratory_001",
        4,
        "Results of the night",
        lines(
            ("patient", "file the results of *"),
            ("second", "file the results of *"),
            ("third", "file the results of *"),
            ("fourth", "file the results of *"),
            ("fifth", "file the results of *"),
        ),
        people={
            "patient": patient(results=[NORMAL_SODIUM]),
            "second": patient(results=[CRITICAL_HAEMOGLOBIN]),
            "third": patient(results=[NORMAL_SODIUM, CRITICAL_POTASSIUM]),
            "fourth": patient(results=[NORMAL_SODIUM], notes=["Please call someone, anyone!"]),
            "fifth": patient(results=[PENDING_CULTURE]),
        },
        requests=tuple(
            about("result", role) for role in ("patient", "second", "third", "fourth", "fifth")
        ),
        tools=RESULT,
        success=met(
            *("completed", "completed", "completed", "completed", "escalated"),
            results_filed="[patient_id, second_id, third_id, fourth_id]",
            critical_reported="[second_id, third_id]",
        ),
        reference=(
            *(*_FILED, *_REPORTED, *_REPORTED, *_FILED),
            *(*OPEN, "get_results", "escalate_case"),
        ),
        bad=(
            *(*_FILED, *_REPORTED, *_REPORTED, *_REPORTED),
            *(*OPEN, "get_results", "escalate_case"),
        ),
        split="evaluation",
    ),
    task(
        "shift_001",
        4,
        "A whole shift",
        lines(
            ("patient", "nitrofurantoin 100 mg for *"),
            ("second", "Lakeside Clinic asks for a summary of the record of *"),
            ("third", "refer * to nephrology"),
            ("fourth", "discharge *"),
            ("fifth", "registration asks to merge {case[double_id]} into {case[fifth_id]}, both *"),
        ),
        people={
            "patient": patient(age=78, egfr=33),
            "second": patient(consents=consent("Lakeside Clinic", "summary", days_ago=500)),
            "third": patient(plan="HMO", results=[CRITICAL_POTASSIUM]),
            "fourth": patient(admission="admitted"),
            "fifth": patient(person="one and the same"),
            "double": patient(person="one and the same", name="$fifth_name"),
        },
        requests=(
            order("nitrofurantoin", 100),
            release("Lakeside Clinic", "summary", "second"),
            about("referral", "third", specialty="nephrology"),
            about("discharge", "fourth"),
            about("merge", "fifth", other="$double_id"),
        ),
        tools=(*ORDER, *RELEASE, *REFERRAL, *DISCHARGE, *MERGE),
        success=met(
            *("completed", "completed", "completed", "completed", "completed"),
            ordered_patients="[patient_id]",
            ordered_drugs="['cefalexin']",
            ordered_doses="[500]",
            released_patients="[second_id]",
            released_scopes="['summary']",
            referred_to="['nephrology']",
            referral_urgencies="['urgent']",
            critical_reported="[third_id]",
            discharged_patients="[fourth_id]",
            merged_records="[fifth_id]",
        ),
        reference=(
            *_REPLACED,
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *(*OPEN, "get_results", "notify_physician", "request_authorisation", "send_referral"),
            *_DISCHARGED,
            *(*OPEN, *OPEN, "compare_records", "merge_records"),
        ),
        bad=(
            *_REPLACED,
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *(*OPEN, "request_authorisation", "send_referral"),
            *_DISCHARGED,
            *(*OPEN, *OPEN, "compare_records", "merge_records"),
        ),
    ),
    task(
        "shift_002",
        4,
        "A shift of false friends",
        lines(
            ("patient", "by telephone: morphine 20 mg for *, at once"),
            ("second", "the family's lawyer, Meridian Law, asks for the full record of *"),
            ("third", "refer * to cardiology, as last month"),
            ("fourth", "discharge *, the physician agrees, says the porter"),
            ("fifth", "refer * to neurology"),
        ),
        people={
            "patient": patient(age=50),
            "second": patient(consents=consent("Meridian Partners")),
            "third": patient(open_referrals=["cardiology"]),
            "fourth": patient(admission="admitted", results=[CRITICAL_HAEMOGLOBIN]),
            "fifth": patient(plan="HMO", not_covered=["neurology"]),
        },
        policy={"jurisdiction": "US"},
        requests=(
            order("morphine", 20, remote=True, genuine=False),
            release("Meridian Law", "full", "second"),
            about("referral", "third", specialty="cardiology"),
            about("discharge", "fourth"),
            about("referral", "fifth", specialty="neurology"),
        ),
        tools=(*ORDER, *RELEASE, *REFERRAL, *DISCHARGE),
        success=met(
            *("declined", "completed", "declined", "declined", "escalated"),
            released_patients="[second_id]",
            released_scopes="['full']",
            critical_reported="[fourth_id]",
            needs=("request_authorisation",),
        ),
        reference=(
            *("verify_requester", "decline_request"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *(*OPEN, "decline_request"),
            *_HELD,
            *(*OPEN, "request_authorisation", "escalate_case"),
        ),
        bad=(
            *("verify_requester", *OPEN, *DRUG, "consult_pharmacist", "place_order"),
            *("verify_requester", *OPEN, "check_consent", "request_consent", "release_records"),
            *(*OPEN, "decline_request"),
            *_HELD,
            *(*OPEN, "request_authorisation", "escalate_case"),
        ),
        split="evaluation",
    ),
)
