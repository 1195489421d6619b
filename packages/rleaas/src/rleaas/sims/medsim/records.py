"""The hospital's records: patients with their charts, made from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from rleaas.sims.desk import DESK_FACTS, fresh, mark, prepare_desk
from rleaas.sims.options import Option
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json, Record, State

CONSENT_DAYS: Mapping[str, int] = {"US": 365, "UK": 180, "EU": 90}
"""How long a signed consent counts."""
OF_AGE: Mapping[str, int] = {"US": 18, "UK": 16, "EU": 16}
"""The age from which patients consent themselves; before it their guardian does."""

OPTIONS = (
    Option(
        name="jurisdiction",
        description="how long a consent counts (US 365 days, UK 180, EU 90), from which age "
        "patients "
        "give it themselves (US 18, UK and EU 16), and whether insurers authorise (US)",
        default="US",
        choices=("US", "UK", "EU"),
    ),
    Option(
        name="formulary",
        description="open: each drug may be ordered; restricted: reserve drugs may not",
        default="open",
        choices=("open", "restricted"),
    ),
    Option(
        name="interaction_alerts",
        description="which interactions forbid an order: severe ones, or all",
        default="severe",
        choices=("severe", "all"),
    ),
)

FACTS: Mapping[str, Json] = {
    "ordered_patients": [],
    "ordered_drugs": [],
    "ordered_doses": [],
    "needs_interaction_check": False,
    "interactions_checked": False,
    "interactions_unchecked": 0,
    "allergies_unchecked": 0,
    "released_patients": [],
    "released_to": [],
    "released_scopes": [],
    "needs_consent": False,
    "consent_checked": False,
    "consent_unchecked": 0,
    "referred_to": [],
    "referral_urgencies": [],
    "discharged_patients": [],
    "results_filed": [],
    "critical_reported": [],
    "critical_unreported": 0,
    "merged_records": [],
}

_FIRST = (
    *("Amara", "Bruno", "Chiara", "Daniel", "Elif", "Farid", "Grace", "Hannah", "Ivan", "Joana"),
    *("Kofi", "Lena", "Mateo", "Nadia", "Oscar", "Priya", "Quentin", "Rosa", "Samuel", "Tala"),
    *("Ulrike", "Vikram", "Wanda", "Xenia", "Yusuf", "Zoe"),
)
_LAST = (
    *("Abbott", "Bergmann", "Castillo", "Dubois", "Eriksen", "Fischer", "Garcia", "Haddad"),
    *("Ivanova", "Jensen", "Kowalski", "Larsson", "Moreau", "Nakamura", "Okafor", "Petrov"),
    *("Quinn", "Rossi", "Schneider", "Tanaka", "Usman", "Vargas", "Weber", "Yilmaz"),
)
_CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "hypertension": ("lisinopril",),
    "type 2 diabetes": ("metformin",),
    "high cholesterol": ("simvastatin",),
    "depression": ("sertraline",),
    "atrial fibrillation": ("apixaban",),
    "asthma": (),
    "migraine": (),
}
_WARDS = ("3 North", "3 South", "4 East", "5 West")


def make_hospital(seed: int, config: Mapping[str, Json]) -> State:
    """A hospital with `org_size` patients, the same for the same seed."""
    rng = Random(f"medsim {seed}")
    patients = [new_patient(rng, place) for place in range(config["org_size"])]
    return State(
        tables={
            "patients": {patient["id"]: patient for patient in patients},
            "requests": {},
            "findings": {},
            "policy": {"pinned": {}},
        },
        facts=fresh(DESK_FACTS, FACTS),
        config=config,
    )


def new_patient(rng: Random, place: int) -> Record:
    """A patient with a chart that hinders nothing."""
    age = rng.randint(24, 88)
    conditions = rng.sample(list(_CONDITIONS), rng.choice((0, 1, 1, 2)))
    return {
        "id": f"pat_{1000 + place}",
        "name": f"{rng.choice(_FIRST)} {rng.choice(_LAST)}",
        "birth_date": f"{2026 - age}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        "mrn": f"MRN{rng.randrange(10**6):06}",
        "age": age,
        "sex": rng.choice(("F", "M")),
        "weight_kg": rng.randint(52, 104),
        "allergies": [],
        "conditions": conditions,
        "medications": [drug for one in conditions for drug in _CONDITIONS[one]],
        "home_medications": [],
        "egfr": rng.randint(66, 110),
        "pregnant": False,
        "admission": "outpatient",
        "ward": rng.choice(_WARDS),
        "plan": "open",
        "restricted": False,
        "guardian": "none",
        "person": f"person {place}",
        "consents": {},
        "answers": "grants",
        "results": [
            {"test": "potassium", "value": 4.1, "unit": "mmol/L", "flag": "normal"},
            {"test": "haemoglobin", "value": 13.8, "unit": "g/dL", "flag": "normal"},
        ],
        "notes": [],
        "open_referrals": [],
    }


def prepare_hospital(state: State, scenario: Scenario, rng: Random) -> None:
    """Put a scenario's patients and requests on the desk."""
    prepare_desk(
        state,
        scenario.setup,
        rng,
        people="patients",
        newcomer=new_patient,
        subject="patient",
        remote=("release",),
    )
    patients = state.tables["patients"]
    for request in state.tables["requests"].values():
        request.setdefault("birth_date", patients[request["subject"]]["birth_date"])
        if patients[request["subject"]]["restricted"]:
            request["sealed"] = "record_access"
    for request in state.tables["requests"].values():
        about = request["subject"]
        known = request["birth_date"] == patients[about]["birth_date"]
        if request["kind"] == "order" and request["genuine"] and known:
            state.facts["needs_interaction_check"] = True
            request["due"] = {
                "check": "any_interactions",
                "about": about,
                "fact": "interactions_unchecked",
            }
        elif request["kind"] == "release" and request["genuine"] and "basis" not in request:
            state.facts["needs_consent"] = True
            request["due"] = {
                "check": "consent",
                "about": f"{about}/release",
                "fact": "consent_unchecked",
            }
    for role in scenario.setup.get("identified", ()):
        mark(state, "identity", state.case[f"{role}_id"], True)
    for role in scenario.setup.get("opened", ()):
        mark(state, "identity", state.case[f"{role}_id"], True)
        mark(state, "record", state.case[f"{role}_id"], True)
