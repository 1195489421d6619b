"""Looking and checking: tools that find out, and change nothing but what is known."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.finsim.records import (
    ACCOUNT,
    CUSTOMER,
    TRANSFER,
    account_of,
    customer_of,
    focused_customer,
    focused_transfer,
    in_focus,
    require,
    suggest_account,
    suggest_customer,
    suggest_transfer,
    transfer_of,
)
from rleaas.sims.finsim.rules import aml_risk, kyc_status, rules_of, same_name, screened
from rleaas.sims.state import Json, State
from rleaas.sims.tool import Refused, Tool, arguments_schema

_MOST_ENTRIES = 30
_HIDDEN = ("answers", "prepared")
"""Parts of a transfer that no officer can see."""


def _get_transfer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = transfer_of(state, arguments)
    if in_focus(state, "transfer_id", transfer):
        state.facts["transfer_read"] = True
    return {key: transfer[key] for key in transfer if key not in _HIDDEN}


def _get_customer(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = customer_of(state, arguments)
    if in_focus(state, "customer_id", customer):
        state.facts["customer_read"] = True
    return dict(customer)


def _get_account(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    account = account_of(state, arguments)
    if in_focus(state, "account_id", account):
        state.facts["account_read"] = True
    return {key: account[key] for key in account if key != "statement"}


def _search_transactions(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    account = account_of(state, arguments)
    days = arguments["days"]
    found = [entry for entry in account["statement"] if entry["days_ago"] <= days]
    if in_focus(state, "account_id", account):
        state.facts["history_read"] = True
    return {"count": len(found), "transactions": found[:_MOST_ENTRIES]}


def _run_kyc_check(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    customer = focused_customer(state, arguments)
    require(
        state,
        "customer_read",
        "customer_not_read",
        f"nobody has looked at customer {customer['id']}: call get_customer first",
    )
    rules = rules_of(state)
    status = kyc_status(customer, rules)
    state.facts.update(kyc_checked=True, kyc_status=status)
    return {
        "status": status,
        "age_days": customer["kyc_age_days"],
        "valid_days": rules.kyc_valid_days,
    }


def _screen_sanctions(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    require(
        state,
        "transfer_read",
        "transfer_not_read",
        f"nobody has looked at transfer {state.case['transfer_id']}: call get_transfer first",
    )
    transfer = state.tables["transfers"][state.case["transfer_id"]]
    is_beneficiary = same_name(arguments["name"], transfer["beneficiary"])
    # Of anybody else the year of birth is not known, so a listed name is a possible match.
    born = transfer["beneficiary_born"] if is_beneficiary else 0
    result, entry = screened(arguments["name"], born, list(state.tables["sanctions"].values()))
    if is_beneficiary:
        state.facts.update(sanctions_checked=True, sanctions_result=result)
    return {"result": result, "list_entry": None if entry is None else dict(entry)}


def _resolve_match(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = focused_transfer(state, arguments)
    if state.facts["sanctions_result"] != "possible":
        raise Refused(
            "no_possible_match",
            f"transfer {transfer['id']} has no possible match: call screen_sanctions first",
        )
    _, entry = screened(transfer["beneficiary"], 0, list(state.tables["sanctions"].values()))
    listed_born = None if entry is None else entry["born"]
    result = "hit" if listed_born == transfer["beneficiary_born"] else "clear"
    state.facts["sanctions_result"] = result
    return {
        "result": result,
        "beneficiary_born": transfer["beneficiary_born"],
        "listed_born": listed_born,
    }


def _run_aml_check(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    transfer = focused_transfer(state, arguments)
    for fact, noun in (("transfer_read", "transfer"), ("customer_read", "customer")):
        require(
            state,
            fact,
            f"{noun}_not_read",
            f"nobody has looked at the {noun} of {transfer['id']}: call get_{noun} first",
        )
    account = state.tables["accounts"][transfer["account_id"]]
    risk, pattern = aml_risk(transfer, account["statement"], rules_of(state))
    state.facts.update(aml_checked=True, aml_risk=risk)
    return {"risk": risk, "pattern": pattern}


CHECKS = (
    Tool(
        name="get_transfer",
        description="Read a pending transfer: amount, beneficiary, memo, whether the payee is new.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="read",
        run=_get_transfer,
        suggest=suggest_transfer,
    ),
    Tool(
        name="get_customer",
        description="Read a customer: identification, risk class, whether politically exposed.",
        parameters=arguments_schema(customer_id=CUSTOMER),
        category="read",
        run=_get_customer,
        suggest=suggest_customer,
    ),
    Tool(
        name="get_account",
        description="Read an account: its balance, and whether it is open or frozen.",
        parameters=arguments_schema(account_id=ACCOUNT),
        category="read",
        run=_get_account,
        suggest=suggest_account,
    ),
    Tool(
        name="search_transactions",
        description="List an account's transactions of the last days; a report needs them.",
        parameters=arguments_schema(
            account_id=ACCOUNT, days={"type": "integer", "minimum": 1, "maximum": 90}
        ),
        category="search",
        run=_search_transactions,
        suggest=lambda state: {"account_id": state.case["account_id"], "days": 30},
    ),
    Tool(
        name="run_kyc_check",
        description="Check that the customer is identified by a valid document. "
        "Needs get_customer.",
        parameters=arguments_schema(customer_id=CUSTOMER),
        category="read",
        run=_run_kyc_check,
        compliance_tags=("KYC",),
        suggest=suggest_customer,
    ),
    Tool(
        name="screen_sanctions",
        description="Look a name up on the sanctions list: clear, hit or possible. "
        "Needs get_transfer; the control is the beneficiary's name.",
        parameters=arguments_schema(name={"type": "string", "minLength": 2, "maxLength": 100}),
        category="search",
        run=_screen_sanctions,
        compliance_tags=("AML", "SANCTIONS"),
        suggest=lambda state: {"name": state.case["beneficiary"]},
    ),
    Tool(
        name="resolve_match",
        description="Compare the years of birth of a possible sanctions match.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="read",
        run=_resolve_match,
        compliance_tags=("SANCTIONS",),
        suggest=suggest_transfer,
    ),
    Tool(
        name="run_aml_check",
        description="Rate the transfer's risk of money laundering: low, medium or high. "
        "Needs get_transfer and get_customer.",
        parameters=arguments_schema(transfer_id=TRANSFER),
        category="read",
        run=_run_aml_check,
        compliance_tags=("AML",),
        suggest=suggest_transfer,
    ),
)
