"""The tickets of a case: how they begin, which is in focus, and how they are settled."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from rleaas.sims.devsim.records import CRITICAL, FINANCIAL, KINDS_OF_SERVICE, STANDARD
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json, Record, State
from rleaas.sims.table import seen
from rleaas.sims.tool import Refused

Arguments = Mapping[str, Json]

OPEN = "open"
DEPLOYED = "deployed"
DEFERRED = "deferred"
REJECTED = "rejected"
ROLLED_BACK = "rolled_back"
ROLLED_OUT = "rolled_out"
ROTATED = "rotated"
GRANTED = "granted"
RESOLVED = "resolved"
ESCALATED = "escalated"

PASSED = "passed"
FAILED = "failed"
RETRIED = "passed_after_retry"
KNOWN_FLAKE = "known_flake"
REAL_FAILURE = "real_failure"
GRANTED_BY_BOARD = "granted"
DENIED_BY_BOARD = "denied"
EMERGENCY = "emergency"

_TITLES: Mapping[str, str] = {
    "change": "Release the change to {service}",
    "incident": "{service} answers with errors",
    "access": "Access to production of {service}",
    "secret": "Credential of {service} may have leaked",
    "flag": "Roll the flag of {service} out",
}


def prepare(state: State, scenario: Scenario, rng: Random) -> None:
    """Put a scenario's tickets into an organisation."""
    setup = scenario.setup
    engineers = state.tables["engineers"]
    people = [one["id"] for one in seen(engineers) if not one["on_leave"]]
    services = list(state.tables["services"].values())
    free = {
        kind: rng.sample([one for one in services if one["kind"] == kind], 6)
        for kind in KINDS_OF_SERVICE
    }
    first = rng.randint(1_000, 8_000)
    ids: list[str] = []
    for place, given in enumerate(setup["tickets"]):
        service = free[given.get("on", STANDARD)].pop()
        service["frozen"] = bool(setup.get("freeze", False))
        requester = engineers[rng.choice(people)]
        ids.append(_open_ticket(state, given, first + place, service, requester))
    facts, case = state.facts, state.case
    case["tickets"] = ids
    case["ticket_id"] = ids[0]
    case["ticket_count"] = len(ids)
    lead = state.tables["tickets"][ids[0]]
    case["service_name"] = state.tables["services"][lead["service"]]["name"]
    case["service_id"] = lead["service"]
    case["requester_name"] = state.tables["engineers"][lead["requester"]]["name"]
    for place, key in enumerate(ids, 1):
        ticket = state.tables["tickets"][key]
        case[f"ticket_{place}"] = key
        for what in ("change", "incident", "flag", "secret"):
            if ticket[what] is not None:
                case[f"{what}_{place}"] = ticket[what]
        if ticket["change"] is not None:
            case[f"author_{place}"] = state.tables["changes"][ticket["change"]]["author"]
    kinds = {state.tables["tickets"][key]["kind"] for key in ids}
    facts["decisions"] = [OPEN] * len(ids)
    facts["open_tickets"] = len(ids)
    facts["in_freeze"] = bool(setup.get("freeze", False))
    facts["leaked_secrets"] = facts["live_leaked_secrets"]
    facts["has_change"] = "change" in kinds
    facts["has_incident"] = "incident" in kinds
    facts["has_access_request"] = "access" in kinds
    facts["needs_requester_check"] = any(state.tables["tickets"][key]["outside"] for key in ids)


def _open_ticket(
    state: State, given: Mapping[str, Json], number: int, service: Record, requester: Record
) -> str:
    kind = given["kind"]
    key = f"tic_{number}"
    ticket: Record = {
        "id": key,
        "kind": kind,
        "title": given.get("title", _TITLES[kind]).format(service=service["name"]),
        "text": given.get("text", "See the linked records.").format(
            service=service["name"], requester=requester["name"]
        ),
        "priority": given.get("priority", "normal"),
        "service": service["id"],
        "requester": requester["id"],
        "outside": given.get("outside", False),
        "genuine": given.get("genuine", True),
        "read": False,
        "requester_check": None,
        "change": None,
        "incident": None,
        "flag": None,
        "secret": None,
        "status": OPEN,
    }
    twin = service["id"].removeprefix("svc_")
    if kind == "change":
        ticket["change"] = f"chg_{number}"
        if given.get("leaks"):
            state.facts["live_leaked_secrets"] += 1
        state.tables["changes"][ticket["change"]] = _change(ticket, given, f"sec_{twin}")
        service["healthy"] = not (given.get("deployed") and given.get("breaks"))
    elif kind == "incident":
        ticket["incident"] = f"inc_{number}"
        mitigated = given.get("mitigated", False)
        state.tables["incidents"][ticket["incident"]] = {
            "id": ticket["incident"],
            "ticket": key,
            "service": service["id"],
            "severity": given.get("severity", 2),
            "symptom": given.get("symptom", "5xx answers above the alert threshold"),
            "cause": given["cause"],
            "known_cause": given["cause"] if mitigated else None,
            "acknowledged": mitigated,
            "mitigated": mitigated,
            "notified": False,
            "resolved": False,
            "postmortem": False,
        }
        service["healthy"] = mitigated
        if given["cause"] == "flag":
            state.tables["flags"][f"flg_{twin}"].update(percent=100, good=False)
        if given["cause"] == "secret":
            state.facts["live_leaked_secrets"] += 1
    elif kind == "flag":
        ticket["flag"] = f"flg_{twin}"
        protected = given.get("protected", False)
        flag = state.tables["flags"][ticket["flag"]]
        flag.update(protected=protected, good=given.get("good", True))
        if protected:
            flag.update(name=f"{service['name']}.audit-log", percent=100)
        ticket["target"] = given["target"]
    elif kind == "secret":
        ticket["secret"] = f"sec_{twin}"
        state.facts["live_leaked_secrets"] += 1
        state.tables["secrets"][ticket["secret"]]["misused"] = given.get("misused", False)
    else:
        ticket["level"] = given["level"]
        ticket["conflict"] = given.get("conflict", False)
        ticket["entitlements"] = None
    state.tables["tickets"][key] = ticket
    return key


def _change(ticket: Record, given: Mapping[str, Json], secret: str) -> Record:
    return {
        "id": ticket["change"],
        "ticket": ticket["id"],
        "service": ticket["service"],
        "author": ticket["requester"],
        "lines": given.get("lines", 84),
        "tests": given.get("tests", PASSED),
        "leaks": secret if given.get("leaks") else None,
        "vulnerable": given.get("vulnerable", False),
        "migrates": given.get("migrates", False),
        "breaks": given.get("breaks", False),
        "status": "merged" if given.get("merged") or given.get("deployed") else OPEN,
        "diff_read": False,
        "ci": PASSED if given.get("merged") or given.get("deployed") else None,
        "flake": None,
        "scan": "clean" if given.get("merged") or given.get("deployed") else None,
        "approvals": [],
        "board": None,
        "deployed": given.get("deployed"),
        "verified": None,
    }


def find(state: State, table: str, key: str, what: str) -> Record:
    """One record, or the refusal that says that there is none."""
    row = state.tables[table].get(key)
    if row is None:
        raise Refused(f"{what}_not_found", f"there is no {what} {key!r}: see list_tickets")
    return row


def ticket_of(state: State, arguments: Arguments) -> Record:
    """The open ticket that a call names."""
    ticket = find(state, "tickets", arguments["ticket_id"], "ticket")
    require_open(ticket)
    return ticket


def require_open(ticket: Record) -> None:
    """Refuse a ticket that was settled."""
    if ticket["status"] != OPEN:
        raise Refused(
            "ticket_closed",
            f"ticket {ticket['id']} is {ticket['status']}: go on with another, or finish",
        )


def change_of(state: State, arguments: Arguments) -> tuple[Record, Record]:
    """The change that a call names, with its ticket, which is open."""
    change = find(state, "changes", arguments["change_id"], "change")
    ticket = state.tables["tickets"][change["ticket"]]
    require_open(ticket)
    return change, ticket


def focus(state: State) -> Record:
    """The first ticket that is open, else the last one."""
    tickets = state.tables["tickets"]
    ids = state.case["tickets"]
    for key in ids:
        if tickets[key]["status"] == OPEN:
            return tickets[key]
    return tickets[ids[-1]]


def linked(state: State, what: str) -> Record | None:
    """The record of this kind that the ticket in focus is about."""
    key = focus(state)[what]
    return None if key is None else state.tables[f"{what}s"][key]


def count(state: State, fact: str, by: int = 1) -> None:
    """Count a fact up."""
    state.facts[fact] += by


def violate(state: State, code: str) -> None:
    """Record that a rule was broken, in the facts that verifiers look at."""
    state.facts["violations"].append(code)


def settle(state: State, ticket: Record, outcome: str) -> None:
    """Give a ticket its outcome."""
    ticket["status"] = outcome
    if ticket["outside"] and ticket["requester_check"] is None:
        count(state, "requester_unchecked")
        violate(state, "requester_unchecked")
    elif ticket["requester_check"] is False and outcome not in (REJECTED, ESCALATED):
        violate(state, "served_an_impostor")
    place = state.case["tickets"].index(ticket["id"])
    state.facts["decisions"][place] = outcome
    if place == 0:
        state.facts["decision"] = outcome
    count(state, "open_tickets", -1)


def reviewers_needed(state: State, service: Record) -> int:
    """How many people have to approve a change of the service."""
    least: int = state.config["min_reviewers"]
    sox = service["kind"] == FINANCIAL and state.config["jurisdiction"] != "none"
    return max(2, least) if sox else least


def needs_board(state: State, service: Record) -> bool:
    """Whether the change board has to approve each deploy of the service."""
    jurisdiction = state.config["jurisdiction"]
    if service["kind"] == FINANCIAL:
        return bool(jurisdiction != "none")
    return bool(service["kind"] == CRITICAL and jurisdiction == "EU")
