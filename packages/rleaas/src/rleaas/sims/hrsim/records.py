"""The company's records: people with their files, made from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from rleaas.sims.desk import DESK_FACTS, fresh, mark, prepare_desk, setting
from rleaas.sims.hrsim.pay import LAWS
from rleaas.sims.options import NamesOption, Option
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json, Record, State

DEPARTMENTS = ("finance", "engineering", "sales", "operations", "legal", "support")
OPTIONS = (
    NamesOption(
        name="departments",
        description="the departments that people are of: names, or how many of the usual ones; a "
        "task may need somebody of another one",
        default=None,
        least=2,
        most=20,
        own=DEPARTMENTS,
    ),
    Option(
        name="jurisdiction",
        description="overtime, tax and social insurance on a payslip, days of annual leave (US 15, "
        "UK 28, DE 30) and how long files are kept (US 4 years, UK 6, DE 10)",
        default="US",
        choices=("US", "UK", "DE"),
    ),
    Option(
        name="approval_limit",
        description="a bonus above this amount needs the approval of finance",
        default=1_000,
        least=0,
        most=1_000_000,
    ),
    Option(
        name="least_coverage",
        description="the percentage of a team that has to be at work when annual leave is granted",
        default=60,
        least=0,
        most=100,
    ),
)

FACTS: Mapping[str, Json] = {
    "leave_people": [],
    "leave_days": [],
    "needs_payroll_check": False,
    "payroll_checked": False,
    "payroll_unchecked": 0,
    "paid_people": [],
    "paid_cents": [],
    "bank_changed": [],
    "needs_access_check": False,
    "access_checked": False,
    "access_unchecked": 0,
    "granted_people": [],
    "granted_roles": [],
    "revoked_people": [],
    "investigators": [],
    "offered_people": [],
    "offered_salaries": [],
    "exported_people": [],
    "exported_scopes": [],
    "erased_people": [],
    "needs_retention_check": False,
    "retention_checked": False,
    "retention_unchecked": 0,
    "needs_second_person": False,
    "approvals": [],
}

BANDS: Mapping[int, tuple[int, int]] = {
    1: (36_000, 52_000),
    2: (48_000, 68_000),
    3: (62_000, 90_000),
    4: (84_000, 124_000),
    5: (115_000, 175_000),
}
"""The salaries of each level."""
PRIVILEGED = ("payments_approve", "payroll_approve", "admin")
"""Roles that security has to approve."""

_FIRST = (
    *("Aisha", "Benno", "Carmen", "Dmitri", "Elena", "Felix", "Gita", "Hugo", "Ines", "Jonas"),
    *("Keiko", "Luca", "Mira", "Noah", "Olga", "Pavel", "Ruth", "Sven", "Tomas", "Vera"),
    *("Willem", "Yara", "Zara", "Anders", "Bianca"),
)
_LAST = (
    *("Albers", "Bauer", "Costa", "Diaz", "Engel", "Ferrari", "Gruber", "Horvat", "Iversen"),
    *("Jansen", "Keller", "Lopez", "Meyer", "Novak", "Olsen", "Pereira", "Reyes", "Silva"),
    *("Thomsen", "Urban", "Vogel", "Wolf", "Young", "Zimmer"),
)
_IBAN = "DE89370400440532013000"

_DUE: Mapping[str, tuple[str, str, str]] = {
    "payroll": ("pay", "payroll_unchecked", "needs_payroll_check"),
    "access": ("access", "access_unchecked", "needs_access_check"),
    "erasure": ("retention", "retention_unchecked", "needs_retention_check"),
}
"""For kinds of requests: the check that is due, where its omission and its need are told."""


def make_company(seed: int, config: Mapping[str, Json]) -> State:
    """A company with `org_size` people, the same for the same seed."""
    rng = Random(f"hrsim {seed}")
    people = [new_person(rng, place) for place in range(config["org_size"])]
    departments: list[str] | None = config["departments"]
    for person in people:
        person["leave"]["annual"] = LAWS[config["jurisdiction"]].leave_days
        if departments is not None:
            place = DEPARTMENTS.index(person["department"])
            person["department"] = departments[place % len(departments)]
    return State(
        tables={
            "people": {person["id"]: person for person in people},
            "requests": {},
            "findings": {},
            "policy": {"pinned": {}},
        },
        facts=fresh(DESK_FACTS, FACTS),
        config=config,
    )


def new_person(rng: Random, place: int) -> Record:
    """An employee whose file hinders nothing."""
    level = rng.choice((1, 2, 2, 3, 3, 4, 5))
    least, most = BANDS[level]
    return {
        "id": f"per_{1000 + place}",
        "name": f"{rng.choice(_FIRST)} {rng.choice(_LAST)}",
        "number": f"E{rng.randrange(10**5):05}",
        "department": rng.choice(DEPARTMENTS),
        "level": level,
        "salary": rng.randrange(least, most, 500),
        "status": "active",
        "left_years_ago": 0,
        "team_size": 5,
        "team_absent": 1,
        "leave": {"annual": 20, "sick": 99, "parental": 60},
        "timesheet_overtime": 0,
        "approved_bonus": 0,
        "unpaid_days": 0,
        "garnishment": 0,
        "paid_this_month": False,
        "iban": _IBAN,
        "roles": [],
        "trained": True,
        "legal_hold": False,
        "background": "clear",
        "background_consent": False,
        "answers": "grants",
        "right_to_work": True,
        "notes": [],
    }


def prepare_company(state: State, scenario: Scenario, rng: Random) -> None:
    """Put a scenario's people and requests on the desk."""
    prepare_desk(
        state,
        scenario.setup,
        rng,
        people="people",
        newcomer=new_person,
        subject="person",
        remote=("bank", "data", "erasure"),
    )
    state.case["least_coverage"] = state.config["least_coverage"]
    people = state.tables["people"]
    for role in scenario.setup.get("opened", ()):
        mark(state, "file", state.case[f"{role}_id"], True)
    for request in state.tables["requests"].values():
        about = request["subject"]
        request.setdefault("number", people[about]["number"])
        if _needs_second_person(state, request, people[about]):
            state.facts["needs_second_person"] = True
        due = _DUE.get(request["kind"])
        if due is not None and request["genuine"] and people[about]["number"] == request["number"]:
            check, omission, need = due
            state.facts[need] = True
            request["due"] = {"check": check, "about": about, "fact": omission}


def _needs_second_person(state: State, request: Record, person: Record) -> bool:
    if request["kind"] == "payroll":
        return bool(person["approved_bonus"] > setting(state, "approval_limit"))
    if request["kind"] == "access":
        return request["role"] in PRIVILEGED
    if request["kind"] == "offer":
        least, most = BANDS[person["level"]]
        return not least <= request["salary"] <= most
    return False
