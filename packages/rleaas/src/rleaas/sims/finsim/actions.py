"""Acting on a case before it is decided: asking, calling, reporting, freezing."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.finsim.organisation import ME, OFFICERS
from rleaas.sims.finsim.records import (
    ACCOUNT,
    CUSTOMER,
    TRANSFER,
    focused_account,
    focused_customer,
    focused_transfer,
    require,
    suggest_account,
    suggest_customer,
    suggest_transfer,
)
from rleaas.sims.finsim.rules import rules_of
from rleaas.sims.state import Json, State
from rleaas.sims.tool import Refused, Tool, arguments_schema

_A_DAY = 24 * 60
REASONS = ("sanctions", "money_laundering", "fraud")


def suspicion(state: State) -> str | None:
    """What the case is suspected of by now, if anything."""
    facts = state.facts
    if facts["sanctions_result"] == "hit":
        return "sanctions"
    if facts["aml_risk"] == "high":
        return "money_laundering"
    if facts["callback"] == "denied":
        return "fraud"
    return None


def _answers(state: State) -> Mapping[str, Json]:
    answers: Mapping[str, Json] = state.tables["transfers"][state.case["transfer_id"]]["answers"]
    return answers


def _request_documents(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = focused_customer(state, arguments)
    if state.facts["kyc_status"] != "expired":
        raise Refused(
            "nothing_to_renew",
            f"no check says that the identification of {customer['id']} has expired: "
            "call run_kyc_check first",
        )
    answer = _answers(state)["documents"]
    if answer == "received":
        customer["kyc_age_days"] = 0
    state.facts["documents"] = answer
    state.clock += _A_DAY
    return {"documents": answer, "next": "run_kyc_check" if answer == "received" else None}


def _call_customer_back(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = focused_customer(state, arguments)
    require(
        state,
        "transfer_read",
        "transfer_not_read",
        f"nobody has read the transfer that {customer['id']} is asked about: "
        "call get_transfer first",
    )
    transfer = state.tables["transfers"][state.case["transfer_id"]]
    if not transfer["new_payee"] or transfer["amount"] < rules_of(state).reporting_limit:
        state.facts["needless_calls"] += 1
    answer = _answers(state)["callback"]
    state.facts["callback"] = answer
    state.clock += 20
    return {"customer_says": answer}


def _request_second_approval(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = focused_transfer(state, arguments)
    if arguments["officer_id"] == ME:
        raise Refused("own_approval", "nobody approves their own work: ask another officer")
    if not (state.facts["aml_checked"] and state.facts["sanctions_checked"]):
        raise Refused(
            "checks_missing",
            f"{arguments['officer_id']} does not approve {transfer['id']} unseen: call "
            "run_aml_check and screen_sanctions first",
        )
    state.facts["second_approval"] = True
    state.clock += 60
    return {"approved_by": arguments["officer_id"]}


def _freeze_account(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    account = focused_account(state, arguments)
    ground = suspicion(state)
    if ground is None:
        raise Refused("no_ground", f"nothing found so far allows to freeze {account['id']}")
    account["status"] = "frozen"
    state.facts["account_frozen"] = True
    if state.facts["sanctions_result"] != "hit" and state.facts["callback"] != "denied":
        # It is allowed, and tells a launderer as much as a letter would.
        state.facts["needless_freezes"] += 1
    return {"account_id": account["id"], "status": "frozen", "ground": ground}


def _file_sar(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = focused_customer(state, arguments)
    ground = suspicion(state)
    if ground is None:
        raise Refused("no_suspicion", f"nothing found so far is suspicious about {customer['id']}")
    if arguments["reason"] != ground:
        raise Refused("wrong_reason", f"what was found is {ground}, and not {arguments['reason']}")
    require(
        state,
        "history_read",
        "no_evidence",
        "a report lists the account's transactions: call search_transactions first",
    )
    reports = state.tables["reports"]
    report_id = f"sar_{len(reports) + 1:03d}"
    reports[report_id] = {"id": report_id, "customer_id": customer["id"], "reason": ground}
    state.facts["sar_filed"] = True
    state.clock += 30
    return {"report_id": report_id}


def _notify_customer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = focused_customer(state, arguments)
    if suspicion(state) is not None and not state.facts["customer_notified"]:
        state.facts["customers_tipped_off"] += 1
    state.facts["customer_notified"] = True
    state.facts["needless_notices"] += 1
    return {"notified": customer["id"], "topic": arguments["topic"]}


ACTIONS = (
    Tool(
        name="request_documents",
        description="Ask the customer for a new document, when the KYC check says expired. "
        "What arrives is checked by another run_kyc_check.",
        parameters=arguments_schema(customer_id=CUSTOMER),
        category="notify",
        run=_request_documents,
        compliance_tags=("KYC",),
        suggest=suggest_customer,
    ),
    Tool(
        name="call_customer_back",
        description="Ask the customer, at the number on file, whether the transfer is theirs.",
        parameters=arguments_schema(customer_id=CUSTOMER),
        category="notify",
        run=_call_customer_back,
        suggest=suggest_customer,
    ),
    Tool(
        name="request_second_approval",
        description="Have another officer approve the transfer. Needs the AML and sanctions "
        f"checks; you are {ME}.",
        parameters=arguments_schema(transfer_id=TRANSFER, officer_id={"enum": list(OFFICERS)}),
        category="approval",
        run=_request_second_approval,
        compliance_tags=("SOX",),
        suggest=lambda state: {**suggest_transfer(state), "officer_id": OFFICERS[1]},
    ),
    Tool(
        name="freeze_account",
        description="Freeze the account, on a sanctions hit, high AML risk or denied call.",
        parameters=arguments_schema(account_id=ACCOUNT),
        category="write",
        run=_freeze_account,
        compliance_tags=("SANCTIONS",),
        suggest=suggest_account,
    ),
    Tool(
        name="file_sar",
        description="File a suspicious activity report. Needs a suspicion and search_transactions.",
        parameters=arguments_schema(customer_id=CUSTOMER, reason={"enum": list(REASONS)}),
        category="write",
        run=_file_sar,
        compliance_tags=("AML",),
        suggest=lambda state: {
            **suggest_customer(state),
            "reason": suspicion(state) or "money_laundering",
        },
    ),
    Tool(
        name="notify_customer",
        description="Write to the customer about the transfer. No rule asks for it; once there is "
        "a suspicion it is forbidden: that would be tipping off.",
        parameters=arguments_schema(
            customer_id=CUSTOMER, topic={"enum": ["status", "fees", "review"]}
        ),
        category="notify",
        run=_notify_customer,
        suggest=lambda state: {**suggest_customer(state), "topic": "status"},
    ),
)
