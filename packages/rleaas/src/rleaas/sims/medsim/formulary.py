"""Drugs: their classes, limits, interactions and alternatives, simplified for the simulation.

These are rules of a game, chosen to be plausible. They are no medical advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rleaas.sims.state import Record

SEVERE = "severe"
MODERATE = "moderate"
ADULT_FROM = 12
"""From this age on, the doses of adults hold."""


@dataclass(frozen=True, slots=True)
class Drug:
    """One drug.

    Attributes:
        family: its class, which allergies are about.
        usual_mg: the usual single dose.
        most_mg: the largest single dose of an adult.
        interacts: other drugs, with how bad it is.
        instead: what may be given instead, best first.
        renal: below this eGFR, the largest dose.
        controlled: whether a pharmacist has to approve it.
        pregnancy: whether it may be given in pregnancy.
        child_mg_per_kg: the largest dose of a child by weight; 0: not for children.
        reserve: whether a restricted formulary leaves it out.
    """

    family: str
    usual_mg: int
    most_mg: int
    interacts: Mapping[str, str] = field(default_factory=dict[str, str])
    instead: tuple[str, ...] = ()
    renal: tuple[tuple[int, int], ...] = ()
    controlled: bool = False
    pregnancy: bool = True
    child_mg_per_kg: float = 0.0
    reserve: bool = False


FORMULARY: Mapping[str, Drug] = {
    "amoxicillin": Drug(
        "penicillin",
        500,
        1000,
        instead=("azithromycin", "doxycycline"),
        renal=((30, 500),),
        child_mg_per_kg=25,
    ),
    "cefalexin": Drug(
        "cephalosporin", 500, 1000, instead=("azithromycin", "doxycycline"), child_mg_per_kg=25
    ),
    "azithromycin": Drug(
        "macrolide",
        500,
        500,
        {"amiodarone": SEVERE, "warfarin": MODERATE},
        ("doxycycline",),
        child_mg_per_kg=10,
    ),
    "clarithromycin": Drug(
        "macrolide",
        500,
        500,
        {"simvastatin": SEVERE, "amiodarone": SEVERE},
        ("doxycycline", "amoxicillin"),
        child_mg_per_kg=7.5,
        reserve=True,
    ),
    "doxycycline": Drug("tetracycline", 100, 200, instead=("azithromycin",), pregnancy=False),
    "trimethoprim": Drug(
        "antifolate",
        200,
        200,
        {"warfarin": SEVERE, "methotrexate": SEVERE},
        ("nitrofurantoin", "cefalexin"),
        ((15, 100),),
        pregnancy=False,
        child_mg_per_kg=4,
    ),
    "nitrofurantoin": Drug("nitrofuran", 100, 100, instead=("cefalexin",), renal=((45, 0),)),
    "ibuprofen": Drug(
        "nsaid",
        400,
        800,
        {"warfarin": SEVERE, "lithium": SEVERE, "methotrexate": SEVERE, "lisinopril": MODERATE},
        ("paracetamol",),
        ((30, 0), (60, 400)),
        pregnancy=False,
        child_mg_per_kg=10,
    ),
    "paracetamol": Drug(
        "analgesic", 1000, 1000, {"warfarin": MODERATE}, ("tramadol",), child_mg_per_kg=15
    ),
    "morphine": Drug(
        "opioid", 10, 20, {"diazepam": SEVERE}, ("paracetamol",), ((30, 5),), controlled=True
    ),
    "tramadol": Drug(
        "opioid",
        50,
        100,
        {"sertraline": SEVERE, "diazepam": SEVERE},
        ("paracetamol",),
        ((30, 50),),
        controlled=True,
    ),
    "diazepam": Drug(
        "benzodiazepine", 5, 10, {"morphine": SEVERE, "tramadol": SEVERE}, controlled=True
    ),
    "warfarin": Drug(
        "coumarin",
        5,
        10,
        {"ibuprofen": SEVERE, "trimethoprim": SEVERE, "azithromycin": MODERATE},
        ("apixaban",),
        pregnancy=False,
    ),
    "apixaban": Drug("doac", 5, 5, renal=((15, 0), (30, 2)), reserve=True),
    "simvastatin": Drug(
        "statin", 20, 40, {"clarithromycin": SEVERE}, ("pravastatin",), pregnancy=False
    ),
    "pravastatin": Drug("statin", 40, 40, pregnancy=False),
    "metformin": Drug("biguanide", 500, 1000, instead=("sitagliptin",), renal=((30, 0), (45, 500))),
    "sitagliptin": Drug("gliptin", 100, 100, renal=((30, 25), (45, 50))),
    "lisinopril": Drug(
        "ace_inhibitor",
        10,
        40,
        {"ibuprofen": MODERATE, "spironolactone": SEVERE},
        ("amlodipine", "labetalol"),
        ((30, 5),),
        pregnancy=False,
    ),
    "amlodipine": Drug("calcium_blocker", 5, 10, {"simvastatin": SEVERE}, ("labetalol",)),
    "labetalol": Drug("beta_blocker", 100, 400),
    "spironolactone": Drug("diuretic", 25, 50, {"lisinopril": SEVERE}, renal=((30, 0),)),
    "sertraline": Drug("ssri", 50, 200, {"tramadol": SEVERE}),
    "amiodarone": Drug("antiarrhythmic", 200, 400, {"azithromycin": SEVERE}),
    "methotrexate": Drug("antimetabolite", 15, 25, {"trimethoprim": SEVERE, "ibuprofen": SEVERE}),
    "lithium": Drug("mood_stabiliser", 400, 800, {"ibuprofen": SEVERE}),
}

CROSS_REACTIVE: Mapping[str, tuple[str, ...]] = {"penicillin": ("cephalosporin",)}
"""Families that react with an allergy to another one."""


def allergens(patient: Record, drug: str) -> list[str]:
    """The allergies on the chart that forbid a drug."""
    family = FORMULARY[drug].family
    return [
        allergy
        for allergy in patient["allergies"]
        if allergy in (drug, family) or family in CROSS_REACTIVE.get(allergy, ())
    ]


def interactions(patient: Record, drug: str) -> dict[str, str]:
    """What the patient takes that interacts with a drug, in either direction, with how badly."""
    found: dict[str, str] = {}
    for taken in patient["medications"]:
        other = FORMULARY[taken].interacts.get(drug)
        severity = FORMULARY[drug].interacts.get(taken) or other
        if severity is not None:
            found[taken] = SEVERE if SEVERE in (severity, other) else severity
    return found


def most_mg(patient: Record, drug: str) -> int:
    """The largest single dose for this patient; 0: none."""
    known = FORMULARY[drug]
    if patient["pregnant"] and not known.pregnancy:
        return 0
    limit = known.most_mg
    if patient["age"] < ADULT_FROM:
        limit = min(limit, int(known.child_mg_per_kg * patient["weight_kg"]))
    for below, most in known.renal:
        if patient["egfr"] < below:
            return min(limit, most)
    return limit
