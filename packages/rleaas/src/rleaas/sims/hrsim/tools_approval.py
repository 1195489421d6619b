"""The approval of a second person."""

from __future__ import annotations

from rleaas.sims.desk import (
    Arguments,
    append,
    choice,
    focus,
    found,
    mark,
    request_of,
    require_open,
    violate,
)
from rleaas.sims.hrsim.records import PRIVILEGED
from rleaas.sims.hrsim.tools_pay import needs_finance
from rleaas.sims.hrsim.tools_people import REQUEST
from rleaas.sims.state import Record, State
from rleaas.sims.tool import Refused, Tool, arguments_schema

APPROVERS = ("manager", "finance", "security", "requester")
RIGHT_APPROVER = {"payroll": "finance", "offer": "finance", "access": "security"}


def _due(state: State, request: Record) -> bool:
    """Whether a request needs the approval.

    Raises:
        Refused: nobody looked yet, so that the approver would have nothing to look at.
    """
    key = request["subject"]
    if request["kind"] == "payroll":
        looked, check = found(state, "pay", key), "calculate_payroll"
        needed = needs_finance(state, state.tables["people"][key])
    elif request["kind"] == "access":
        looked, check = found(state, "role", f"{key}/{request['role']}"), "check_access"
        needed = request["role"] in PRIVILEGED
    else:
        looked, check = found(state, "band", f"{key}/{request['salary']}"), "check_offer"
        needed = looked is False
    if looked is None:
        raise Refused("nothing_to_approve", f"{check} for {request['id']} first")
    return needed


def _approval(state: State, arguments: Arguments) -> Record:
    request = request_of(state, arguments)
    require_open(request)
    right = RIGHT_APPROVER.get(request["kind"])
    if right is None:
        raise Refused("approval_not_needed", f"{request['kind']} needs no second person")
    if arguments["approver"] not in (right, "requester"):
        raise Refused("wrong_approver", f"{request['kind']} is approved by {right}")
    if not _due(state, request):
        violate(state, "needless_approval")
    if arguments["approver"] == "requester":
        violate(state, "self_approval")
    granted = request.get("approval", "granted") == "granted"
    mark(state, "approval", request["id"], granted, not granted)
    append(state, "approvals", request["id"])
    state.clock += 30
    return {"request_id": request["id"], "granted": granted, "approver": arguments["approver"]}


def _suggest_approval(state: State) -> Record:
    request = focus(state)
    right = RIGHT_APPROVER.get(request["kind"], "manager")
    return {"request_id": request["id"], "approver": right}


TOOLS = (
    Tool(
        name="request_approval",
        description="Ask a second person to approve what needs it, once it was looked at: finance "
        "for bonuses above the limit and offers outside the band, security for privileged roles. "
        "Nobody approves their own request, and nobody is asked for nothing.",
        parameters=arguments_schema(
            request_id=REQUEST, approver=choice(*APPROVERS, description="who is asked")
        ),
        category="approval",
        run=_approval,
        compliance_tags=("SOX",),
        suggest=_suggest_approval,
    ),
)
