"""What the vector observation tells of a case: what was found, never what was not looked for."""

from __future__ import annotations

from collections.abc import Callable

from rleaas.sims.finsim.rules import rules_of
from rleaas.sims.state import State
from rleaas.sims.vertical import Feature


def _is(fact: str, value: str) -> Feature:
    return Feature(f"{fact}.{value}", lambda state: float(state.facts[fact] == value))


def _flag(fact: str) -> Feature:
    return Feature(fact, lambda state: float(state.facts[fact]))


def _once(fact: str, name: str, read: Callable[[State], bool]) -> Feature:
    """Something that a record says, as soon as it was read."""
    return Feature(name, lambda state: float(bool(state.facts[fact]) and read(state)))


def _needs_second_approval(state: State) -> bool:
    return bool(state.case["amount"] >= rules_of(state).approval_limit)


def _needs_call(state: State) -> bool:
    transfer = state.tables["transfers"][state.case["transfer_id"]]
    return bool(transfer["new_payee"] and transfer["amount"] >= rules_of(state).reporting_limit)


def _is_exposed(state: State) -> bool:
    customer = state.tables["customers"][state.case["customer_id"]]
    return bool(customer["pep"] or customer["risk"] == "high")


def _cannot_pay(state: State) -> bool:
    account = state.tables["accounts"][state.case["account_id"]]
    return bool(account["balance"] < state.case["amount"] or account["status"] != "open")


FEATURES = (
    _flag("transfer_read"),
    _flag("customer_read"),
    _flag("account_read"),
    _flag("history_read"),
    _flag("kyc_checked"),
    _is("kyc_status", "expired"),
    _is("kyc_status", "mismatch"),
    _flag("sanctions_checked"),
    _is("sanctions_result", "possible"),
    _is("sanctions_result", "hit"),
    _flag("aml_checked"),
    _is("aml_risk", "medium"),
    _is("aml_risk", "high"),
    _is("callback", "confirmed"),
    _is("callback", "denied"),
    _is("documents", "received"),
    _is("documents", "missing"),
    _flag("second_approval"),
    _flag("sar_filed"),
    _flag("account_frozen"),
    _flag("customer_notified"),
    _once("transfer_read", "needs_second_approval", _needs_second_approval),
    _once("transfer_read", "needs_call_back", _needs_call),
    _once("customer_read", "is_exposed", _is_exposed),
    _once("account_read", "cannot_pay", _cannot_pay),
)
