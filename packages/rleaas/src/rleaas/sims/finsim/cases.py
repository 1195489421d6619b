"""A scenario's case, put into the bank: the transfer that waits, and what is odd about it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from rleaas.sims.finsim.checks import CHECKS
from rleaas.sims.finsim.organisation import COUNTRIES, FACTS, FIRST, LAST
from rleaas.sims.finsim.rules import Rulebook, rules_of
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json, Record, State

SETUP_KEYS = (
    "amount", "of", "customer", "account", "beneficiary", "country", "new_payee", "history",
    "callback", "documents", "memo", "funds", "done", "then",
)  # fmt: skip
"""What a setup may say; what it does not say, the seed draws, within what changes nothing.

`amount` is a share of the limit that `of` names (reporting or approval), so that a case means the
same in every jurisdiction, or the range of it; `funds` is the balance as a share of the amount.
`beneficiary` is ordinary, listed, respelled (a listed person, spelled otherwise) or namesake
(another person of a listed name). `history` is ordinary, structuring, pass_through or busy.
`callback` and `documents` are what comes when the customer is asked. `done` are tools that a
colleague used already, beside the looks that the seed draws; `then` are the setups of the transfers
that follow in the queue.
"""
SMALL = (0.05, 0.7)
"""Amounts below everything that the rules look at, as shares of the reporting limit."""
ANY = (0.05, 9.0)
"""Amounts on both sides of every limit, for cases that end the same whatever the amount is."""
NEW_AND_ANY = (1.05, 9.0)
"""The same, where the customer has to be called because the payee is new."""
_MEMOS = ("invoice", "rent", "gift", "fees", "thank you", "order 118", "as agreed")
_LOOKS = ("get_transfer", "get_customer", "get_account", "search_transactions")
_LOOKED = 0.3
_RESPELLED: Mapping[str, str] = {
    "Viktor Malenkov": "Victor Malenkow",
    "Soraya Haddadi": "Soraja Hadadi",
    "Ri Chol Min": "Ri Chol-Min",
    "Thura Zaw Lwin": "Tura Zaw Lwyn",
    "Esteban Quiroga Paz": "Estevan Quiroga Pas",
    "Mikhail Orlovsky": "Mikhael Orlowsky",
}


_COLLEAGUES = {tool.name: tool for tool in CHECKS}


def prepare(state: State, scenario: Scenario, rng: random.Random) -> None:
    """Put the scenario's transfers into the queue, and the first of them into focus."""
    setups = [scenario.setup, *scenario.setup.get("then", ())]
    customers = rng.sample(list(state.tables["customers"]), len(setups))
    queue = [
        _transfer(state, setup, customer_id, number, rng)
        for number, (setup, customer_id) in enumerate(zip(setups, customers, strict=True), 1)
    ]
    state.case["queue"] = queue[1:]
    state.case["queue_length"] = len(queue)
    limit = rules_of(state).approval_limit
    state.facts["needs_second_officer"] = any(
        state.tables["transfers"][key]["amount"] >= limit for key in queue
    )
    focus(state, queue[0])


def focus(state: State, transfer_id: str) -> None:
    """Turn to a transfer: nothing is known of it but what a colleague did."""
    transfer = state.tables["transfers"][transfer_id]
    customer = state.tables["customers"][transfer["customer_id"]]
    rules = rules_of(state)
    state.case.update(
        transfer_id=transfer_id,
        customer_id=customer["id"],
        customer_name=customer["name"],
        account_id=transfer["account_id"],
        amount=transfer["amount"],
        currency=transfer["currency"],
        beneficiary=transfer["beneficiary"],
        beneficiary_country=transfer["beneficiary_country"],
        memo=transfer["memo"],
        prepared=", ".join(transfer["prepared"]) or "nothing",
        reporting_limit=rules.reporting_limit,
        approval_limit=rules.approval_limit,
    )
    state.facts.update(FACTS)
    state.facts["transfer_amount"] = transfer["amount"]
    for name in transfer["prepared"]:
        tool = _COLLEAGUES[name]
        tool.run(state, tool.suggest(state))


def _transfer(
    state: State, setup: Mapping[str, Json], customer_id: str, number: int, rng: random.Random
) -> str:
    rules = rules_of(state)
    customer = state.tables["customers"][customer_id]
    account = state.tables["accounts"][f"acc_{customer_id[4:]}"]
    limit = rules.approval_limit if setup.get("of") == "approval" else rules.reporting_limit
    amount = round(_share(setup.get("amount", SMALL), rng) * limit, 2)
    customer.update(setup.get("customer", {}))
    if customer["kyc_age_days"] < 0:
        # "Expired" is a number of days that depends on the jurisdiction.
        customer["kyc_age_days"] = rules.kyc_valid_days - customer["kyc_age_days"]
    account.update(setup.get("account", {}))
    account["balance"] = round(amount * setup.get("funds", rng.uniform(1.5, 6.0)), 2)
    account["statement"] = [
        *_history(setup.get("history", "ordinary"), rules, rng),
        *account["statement"],
    ]
    name, born, country = _beneficiary(state, setup.get("beneficiary", "ordinary"), rng)
    transfer_id = f"tr_{number:04d}"
    state.tables["transfers"][transfer_id] = {
        "id": transfer_id,
        "account_id": account["id"],
        "customer_id": customer_id,
        "amount": amount,
        "currency": account["currency"],
        "beneficiary": name,
        "beneficiary_born": born,
        "beneficiary_country": setup.get("country", country),
        "new_payee": setup.get("new_payee", amount < rules.reporting_limit and rng.random() < 0.25),
        "memo": setup.get("memo", rng.choice(_MEMOS)),
        "status": "pending",
        "answers": {
            "callback": setup.get("callback", "confirmed"),
            "documents": setup.get("documents", "received"),
        },
        "prepared": _prepared(setup.get("done", ()), rng),
    }
    return transfer_id


def _share(amount: float | tuple[float, float], rng: random.Random) -> float:
    """Of a range, each order of magnitude is as likely."""
    if isinstance(amount, tuple):
        low, high = amount
        return float(low * (high / low) ** rng.random())
    return amount * rng.uniform(0.97, 1.03)


def _prepared(done: Sequence[str], rng: random.Random) -> list[str]:
    """What a colleague did, and some looks that change nothing: an officer may have begun."""
    begun = [look for look in _LOOKS if rng.random() < _LOOKED and look not in done]
    return [*begun, *done]


def _beneficiary(state: State, kind: str, rng: random.Random) -> tuple[str, int, str]:
    if kind == "ordinary":
        name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
        return name, rng.randrange(1945, 2004), rng.choice(COUNTRIES)
    entry = rng.choice(list(state.tables["sanctions"].values()))
    if kind == "listed":
        return entry["name"], entry["born"], rng.choice(COUNTRIES)
    if kind == "respelled":
        return _RESPELLED[entry["name"]], entry["born"], rng.choice(COUNTRIES)
    # A namesake: thirty years younger, and therefore somebody else.
    return entry["name"], entry["born"] + 30, rng.choice(COUNTRIES)


def _history(kind: str, rules: Rulebook, rng: random.Random) -> Sequence[Record]:
    limit = rules.reporting_limit
    if kind == "structuring":
        return [_entry(day, "out", limit * rng.uniform(0.85, 0.98)) for day in (1, 3, 4, 8)]
    if kind == "pass_through":
        received = [limit * rng.uniform(0.3, 0.7) for _ in range(3)]
        return [
            entry
            for day, amount in zip((2, 9, 16), received, strict=True)
            for entry in (_entry(day, "in", amount), _entry(day - 1, "out", amount * 0.96))
        ]
    if kind == "busy":
        return [_entry(rng.randrange(1, 8), "out", rng.uniform(20, 400)) for _ in range(14)]
    return []


def _entry(days_ago: int, direction: str, amount: float) -> Record:
    return {
        "days_ago": days_ago,
        "direction": direction,
        "amount": round(amount, 2),
        "counterparty": "private person",
    }
