"""The records that tools ask for, and how those that are not there are refused."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.state import Json, Record, State
from rleaas.sims.tool import Refused

CUSTOMER = {"type": "string", "pattern": "^cus_[0-9]{4}$"}
ACCOUNT = {"type": "string", "pattern": "^acc_[0-9]{4}$"}
TRANSFER = {"type": "string", "pattern": "^tr_[0-9]{4}$"}


def customer_of(state: State, arguments: Mapping[str, Json]) -> Record:
    """The customer that is asked for."""
    return _record(state, "customers", arguments["customer_id"], "customer")


def account_of(state: State, arguments: Mapping[str, Json]) -> Record:
    """The account that is asked for."""
    return _record(state, "accounts", arguments["account_id"], "account")


def transfer_of(state: State, arguments: Mapping[str, Json]) -> Record:
    """The transfer that is asked for."""
    return _record(state, "transfers", arguments["transfer_id"], "transfer")


def focused_transfer(state: State, arguments: Mapping[str, Json]) -> Record:
    """The transfer that is asked for, which must be the one whose turn it is."""
    transfer = transfer_of(state, arguments)
    _require_turn(state, "transfer_id", transfer)
    return transfer


def focused_customer(state: State, arguments: Mapping[str, Json]) -> Record:
    """The customer that is asked for, who must be the one whose transfer's turn it is."""
    customer = customer_of(state, arguments)
    _require_turn(state, "customer_id", customer)
    return customer


def focused_account(state: State, arguments: Mapping[str, Json]) -> Record:
    """The account that is asked for, which must be the one whose transfer's turn it is."""
    account = account_of(state, arguments)
    _require_turn(state, "account_id", account)
    return account


def in_focus(state: State, key: str, record: Record) -> bool:
    """Whether the record is that of the transfer whose turn it is."""
    return bool(state.case[key] == record["id"])


def require(state: State, fact: str, code: str, message: str) -> None:
    """Refuse the call unless the fact holds."""
    if not state.facts[fact]:
        raise Refused(code, message)


def suggest_customer(state: State) -> Mapping[str, Json]:
    """The customer of the transfer in focus."""
    return {"customer_id": state.case["customer_id"]}


def suggest_account(state: State) -> Mapping[str, Json]:
    """The account of the transfer in focus."""
    return {"account_id": state.case["account_id"]}


def suggest_transfer(state: State) -> Mapping[str, Json]:
    """The transfer in focus."""
    return {"transfer_id": state.case["transfer_id"]}


def _record(state: State, table: str, record_id: str, noun: str) -> Record:
    found = state.tables[table].get(record_id)
    if found is None:
        raise Refused(f"unknown_{noun}", f"there is no {noun} {record_id}: take the task's ids")
    return found


def _require_turn(state: State, key: str, record: Record) -> None:
    if not in_focus(state, key, record):
        raise Refused(
            "not_in_turn",
            f"{record['id']} is not of the transfer whose turn it is, {state.case['transfer_id']}",
        )
