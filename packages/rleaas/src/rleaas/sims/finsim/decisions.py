"""Deciding a transfer: the last call about it, after which the next one has its turn."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.finsim.cases import focus
from rleaas.sims.finsim.records import TRANSFER, focused_transfer, require, suggest_transfer
from rleaas.sims.finsim.rules import rules_of
from rleaas.sims.state import Json, Record, State
from rleaas.sims.tool import Refused, Tool, arguments_schema


def _approve_transfer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = _pending(state, arguments)
    account = state.tables["accounts"][transfer["account_id"]]
    if account["status"] != "open":
        raise Refused("account_frozen", f"account {account['id']} is frozen: nothing leaves it")
    if account["balance"] < transfer["amount"]:
        raise Refused(
            "insufficient_funds",
            f"account {account['id']} has {account['balance']}, less than {transfer['amount']}",
        )
    account["balance"] = round(account["balance"] - transfer["amount"], 2)
    state.facts["approved_amount"] = round(state.facts["approved_amount"] + transfer["amount"], 2)
    if transfer["amount"] >= rules_of(state).approval_limit and not state.facts["second_approval"]:
        state.facts["approvals_without_second_officer"] += 1
    if state.facts["kyc_status"] != "current":
        state.facts["approvals_without_identification"] += 1
    return _decided(state, transfer, "approved")


def _block_transfer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = _pending(state, arguments)
    if not state.facts["sar_filed"]:
        state.facts["blocks_without_report"] += 1
    return _decided(state, transfer, "blocked")


def _escalate_case(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    return _decided(state, _pending(state, arguments), "escalated")


def _return_to_customer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    return _decided(state, _pending(state, arguments), "returned")


def _pending(state: State, arguments: Mapping[str, Json]) -> Record:
    transfer = focused_transfer(state, arguments)
    require(
        state,
        "transfer_read",
        "transfer_not_read",
        f"nobody has looked at transfer {transfer['id']}: call get_transfer first",
    )
    return transfer


def _decided(state: State, transfer: Record, decision: str) -> Mapping[str, Json]:
    facts = state.facts
    transfer["status"] = decision
    for control in ("aml", "kyc", "sanctions"):
        if not facts[f"{control}_checked"]:
            facts[f"decisions_without_{control}"] += 1
    facts["decisions"] += 1
    facts[f"decision_{facts['decisions']}"] = decision
    queue = state.case["queue"]
    if queue:
        focus(state, queue.pop(0))
    # Even where the next transfer has its turn, this is the newest decision.
    facts["decision"] = decision
    return {
        "transfer_id": transfer["id"],
        "status": decision,
        "next_transfer_id": None if queue_is_done(state) else state.case["transfer_id"],
    }


def queue_is_done(state: State) -> bool:
    """Whether every transfer of the task is decided."""
    return bool(state.facts["decisions"] == state.case["queue_length"])


DECISIONS = (
    Tool(
        name="approve_transfer",
        description="Release the transfer.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="approval",
        run=_approve_transfer,
        ends_episode=True,
        ends_when=queue_is_done,
        suggest=suggest_transfer,
    ),
    Tool(
        name="block_transfer",
        description="Refuse the transfer for good, on a suspicion.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="approval",
        run=_block_transfer,
        ends_episode=True,
        ends_when=queue_is_done,
        compliance_tags=("AML", "SANCTIONS"),
        suggest=suggest_transfer,
    ),
    Tool(
        name="escalate_case",
        description="Hand the transfer to the compliance officer.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="approval",
        run=_escalate_case,
        ends_episode=True,
        ends_when=queue_is_done,
        suggest=suggest_transfer,
    ),
    Tool(
        name="return_to_customer",
        description="Give the transfer back, undone: money or documents are missing.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="notify",
        run=_return_to_customer,
        ends_episode=True,
        ends_when=queue_is_done,
        suggest=suggest_transfer,
    ),
)
