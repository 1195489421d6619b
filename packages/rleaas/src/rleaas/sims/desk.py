"""Requests on a desk: what the worlds whose cases are requests of people have in common.

A case is a list of requests. Each is settled once, with an outcome; checks that are made of it
leave findings, and a finding may be an obstacle: the grounds to decline it or to hand it on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import cast

from rlcore import ConfigurationError

from rleaas.sims.state import Json, Record, State
from rleaas.sims.table import Table
from rleaas.sims.tool import Refused, Tool, arguments_schema

Arguments = Mapping[str, Json]

OPEN = "open"
COMPLETED = "completed"
DECLINED = "declined"
ESCALATED = "escalated"
DESK_FACTS: Mapping[str, Json] = {
    "decisions": [],
    "decision": OPEN,
    "open_requests": 0,
    "violations": [],
    "kinds": [],
    "requesters_verified": 0,
    "requester_unchecked": 0,
    "needs_requester_check": False,
}
REASONS = (
    "requester_not_verified",
    "not_authorised",
    "unsafe",
    "against_policy",
    "insufficient_information",
)


def table(state: State, name: str) -> Table:
    """The records of one table, by id."""
    return state.tables[name]


def setting(state: State, name: str) -> Json:
    """What the configuration says, but where the task has pinned it."""
    pinned = state.tables["policy"]["pinned"]
    return pinned[name] if name in pinned else state.config[name]


def find(state: State, name: str, key: str, what: str) -> Record:
    """One record, or the refusal that says that there is none."""
    row = table(state, name).get(key)
    if row is None:
        raise Refused(f"{what}_not_found", f"there is no {what} {key!r}: search for it first")
    return row


def request_of(state: State, arguments: Arguments) -> Record:
    """The request that a call names."""
    return find(state, "requests", arguments["request_id"], "request")


def focus(state: State) -> Record:
    """The first request that is still open, else the last one."""
    return state.tables["requests"][state.case["focus"]]


def violate(state: State, code: str) -> None:
    """Record that a rule was broken, in the facts that verifiers look at."""
    cast("list[str]", state.facts["violations"]).append(code)


def add(state: State, fact: str, by: int = 1) -> None:
    """Count a fact up."""
    state.facts[fact] = cast("int", state.facts[fact]) + by


def append(state: State, fact: str, value: object) -> None:
    """Write one more entry of a fact that is a list."""
    cast("list[object]", state.facts[fact]).append(value)


def mark(state: State, check: str, about: str, value: object, obstacle: bool = False) -> None:
    """Keep what a check found about a subject, and whether it stands in the way."""
    table(state, "findings")[f"{check} {about}"] = {"value": value, "obstacle": obstacle}


def found(state: State, check: str, about: str) -> Json:
    """What a check found about a subject; None: it was not made."""
    row = table(state, "findings").get(f"{check} {about}")
    return None if row is None else row["value"]


def hinders(state: State, check: str, about: str) -> bool:
    """Whether a check was made and its finding is an obstacle."""
    row = table(state, "findings").get(f"{check} {about}")
    return row is not None and bool(row["obstacle"])


def grounds(state: State, request: Record) -> bool:
    """Whether an obstacle was found that concerns the request.

    A finding about a detail, such as a drug, concerns it only if the detail is one of its own:
    nobody makes grounds by checking something else.
    """
    about = {request["id"], request["subject"], request.get("other")}
    details = {value for value in request.values() if isinstance(value, str)}
    for key, row in table(state, "findings").items():
        if row["obstacle"]:
            subject, _, detail = key.partition(" ")[2].partition("/")
            if subject in about and (not detail or detail in details):
                return True
    return False


def open_request(state: State, kinds: Sequence[str], subject: str) -> Record | None:
    """The first open request of these kinds about a subject."""
    for key in cast("list[str]", state.case["requests"]):
        request = table(state, "requests")[key]
        wanted = request["kind"] in kinds and request["subject"] == subject
        if wanted and request["status"] == OPEN:
            return request
    return None


def settle(state: State, request: Record, outcome: str) -> None:
    """Give a request its outcome.

    What a request has `due` is a check that a decline or an escalation without it is counted for,
    in the fact that it names; tools count their own omissions.

    Raises:
        Refused: it has one.
    """
    require_open(request)
    request["status"] = outcome
    if request["remote"] and found(state, "requester", request["id"]) is None:
        add(state, "requester_unchecked")
        if outcome == COMPLETED:
            violate(state, "requester_unchecked")
    due = request.get("due")
    if (
        due is not None
        and outcome != COMPLETED
        and found(state, due["check"], due["about"]) is None
    ):
        add(state, due["fact"])
    ids = cast("list[str]", state.case["requests"])
    place = ids.index(request["id"])
    cast("list[str]", state.facts["decisions"])[place] = outcome
    if place == 0:
        state.facts["decision"] = outcome
    add(state, "open_requests", -1)
    requests = state.tables["requests"]
    state.case["focus"] = next((one for one in ids if requests[one]["status"] == OPEN), ids[-1])


def all_settled(state: State) -> bool:
    """Whether no request is open any more: then the episode is over."""
    return bool(state.facts["open_requests"] == 0)


def require_open(request: Record) -> None:
    """Refuse a request that was settled."""
    if request["status"] != OPEN:
        raise Refused(
            "request_closed",
            f"request {request['id']} is {request['status']}: go on with another",
        )


def prepare_desk(
    state: State,
    setup: Mapping[str, object],
    rng: Random,
    *,
    people: str,
    newcomer: Callable[[Random, int], Record],
    subject: str,
    remote: Sequence[str],
) -> None:
    """Make the case that a scenario describes: people with their particulars, and requests.

    Args:
        state: fresh records, which are changed.
        setup: `people` (role to the fields that are overridden), `requests`, `policy`, `records`
            (table to rows that are added). Texts that begin with `$` are keys of the case.
            A `policy` is pinned by tasks that make no sense under another one.
        rng: chooses who plays each role.
        people: the table of the people.
        newcomer: makes one more of them, where there are fewer than roles.
        subject: the role that a request is about, where it does not say so.
        remote: kinds of requests that come from outside, so that who asks has to be verified.
    """
    roles = cast("Mapping[str, Mapping[str, object]]", setup.get("people", {}))
    while len(table(state, people)) < len(roles):
        row = newcomer(rng, len(table(state, people)))
        table(state, people)[row["id"]] = row
    pool = list(table(state, people))
    for role, key in zip(roles, rng.sample(pool, len(roles)), strict=True):
        row = table(state, people)[key]
        row.update(filled(roles[role], state.case))
        state.case[f"{role}_id"] = key
        for name, value in row.items():
            if isinstance(value, str) and name != "id":
                state.case[f"{role}_{name}"] = value
    table(state, "policy")["pinned"].update(cast("Record", setup.get("policy", {})))
    for name, rows in cast("Mapping[str, Mapping[str, Record]]", setup.get("records", {})).items():
        for key, row in rows.items():
            table(state, name)[key] = {"id": key, **filled(row, state.case)}
    first = 1000 + rng.randrange(8000)
    ids: list[str] = []
    for place, given in enumerate(cast("Sequence[Mapping[str, object]]", setup["requests"])):
        key = f"req_{first + place}"
        row = {"subject": f"${subject}_id", "genuine": True, **given}
        row.setdefault("remote", row["kind"] in remote)
        table(state, "requests")[key] = {"id": key, "status": OPEN, **filled(row, state.case)}
        state.case[f"request_{place + 1}"] = key
        ids.append(key)
    state.case["requests"] = ids
    state.case["focus"] = ids[0]
    state.case["request_id"] = ids[0]
    state.facts["decisions"] = [OPEN] * len(ids)
    state.facts["open_requests"] = len(ids)
    state.facts["kinds"] = sorted({table(state, "requests")[key]["kind"] for key in ids})
    state.facts["needs_requester_check"] = any(
        table(state, "requests")[key]["remote"] for key in ids
    )


def filled(row: Mapping[str, object], case: Mapping[str, object]) -> Record:
    """The row with its `$key` texts replaced by what the case says."""
    return {
        key: case[value[1:]] if isinstance(value, str) and value.startswith("$") else _own(value)
        for key, value in row.items()
    }


def fresh(*facts: Mapping[str, Json]) -> Record:
    """Facts to begin with, whose lists are nobody else's."""
    return {key: _own(value) for each in facts for key, value in each.items()}


def _own(value: object) -> object:
    """A copy where tools may write into it; scenarios are shared by all episodes."""
    if isinstance(value, dict):
        return dict(cast("Record", value))
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else value


def identifier(prefix: str, what: str) -> dict[str, Json]:
    """The schema of an id."""
    return {"type": "string", "pattern": f"^{prefix}_[0-9]+$", "description": what}


def choice(*values: str, description: str = "") -> dict[str, Json]:
    """The schema of one of several words."""
    return {"type": "string", "enum": list(values), "description": description}


def desk_tools() -> tuple[Tool, ...]:
    """The tools that every desk has: whom to trust, what to decline, when it is over."""
    request = identifier("req", "the request")
    reason = choice(*REASONS, description="why")
    return (
        Tool(
            name="verify_requester",
            description="Call back whoever sent a request at the number in the directory, and "
            "learn whether it came from them. Due for each request from outside.",
            parameters=arguments_schema(request_id=request),
            category="read",
            run=_verify_requester,
            suggest=lambda state: {"request_id": focus(state)["id"]},
        ),
        Tool(
            name="decline_request",
            description="Decline a request for good. Only where a check found grounds to.",
            parameters=arguments_schema(request_id=request, reason=reason),
            category="write",
            run=_decline,
            ends_episode=True,
            ends_when=all_settled,
            suggest=lambda state: {
                "request_id": focus(state)["id"],
                "reason": _reason(state, focus(state)),
            },
        ),
        Tool(
            name="escalate_case",
            description="Hand all open requests to the person in charge. Only "
            "where a check found something that the desk may not decide.",
            parameters=arguments_schema(reason=reason),
            category="notify",
            run=_escalate,
            ends_episode=True,
            suggest=lambda state: {"reason": _reason(state, focus(state))},
        ),
    )


def _verify_requester(state: State, arguments: Arguments) -> Record:
    request = request_of(state, arguments)
    require_open(request)
    genuine = bool(request["genuine"])
    if found(state, "requester", request["id"]) is None and request["remote"]:
        add(state, "requesters_verified")
    mark(state, "requester", request["id"], genuine, not genuine)
    state.clock += 5
    said = "confirmed by call-back" if genuine else "the named person knows nothing of this request"
    return {"request_id": request["id"], "verified": genuine, "finding": said}


def _decline(state: State, arguments: Arguments) -> Record:
    request = request_of(state, arguments)
    require_open(request)
    if not grounds(state, request):
        violate(state, "declined_without_grounds")
    settle(state, request, DECLINED)
    state.clock += 2
    return {"request_id": request["id"], "status": DECLINED, "reason": arguments["reason"]}


def _escalate(state: State, arguments: Arguments) -> Record:
    handed: list[str] = []
    for key in cast("list[str]", state.case["requests"]):
        request = table(state, "requests")[key]
        if request["status"] == OPEN:
            if not grounds(state, request):
                violate(state, "escalated_without_grounds")
            settle(state, request, ESCALATED)
            handed.append(key)
    state.clock += 10
    return {"escalated": handed, "reason": arguments["reason"]}


def _reason(state: State, request: Record) -> str:
    if hinders(state, "requester", request["id"]):
        return "requester_not_verified"
    return "against_policy" if grounds(state, request) else "insufficient_information"


def rule(
    key: str, name: str, description: str, tags: tuple[str, ...], *conditions: str
) -> Mapping[str, Json]:
    """A built-in verifier that these conditions all hold."""
    return {
        "id": key,
        "name": name,
        "description": description,
        "type": "rule_based",
        "logic": {"conditions": list(conditions), "compliance_tags": list(tags)},
        "compliance_tags": list(tags),
    }


def must(
    decisions: Sequence[str],
    nothing_done: Mapping[str, str],
    needs: Sequence[str],
    done: Mapping[str, str],
) -> list[str]:
    """Conditions: these decisions, no rule broken, these effects and no others, these calls."""
    unknown = set(done) - set(nothing_done)
    if unknown:
        raise ConfigurationError(f"no effect is called {min(unknown)!r}")
    effects = {**nothing_done, **done}
    return [
        f"decisions == {list(decisions)!r}",
        "len(violations) == 0",
        # One condition: that nothing was done must not be worth a point for each thing undone.
        " and ".join(f"{fact} == {value}" for fact, value in effects.items()),
        *(f"{tool!r} in trajectory.tool_calls" for tool in needs),
    ]


def lines(who: str, *said: tuple[str, str]) -> str:
    """A line of a prompt for each request: the role that it is about, and what is asked.

    A star in it is the role's person, as `who` describes them.
    """
    return " ".join(
        f"Request {{case[request_{place}]}}: {text.replace('*', who.format(role=role))}."
        for place, (role, text) in enumerate(said, 1)
    )
