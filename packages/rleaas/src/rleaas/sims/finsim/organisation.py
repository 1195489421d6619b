"""The bank: customers with their identification, accounts with statements, and the lists."""

from __future__ import annotations

import random
from collections.abc import Mapping

from rleaas.sims.finsim.rules import RULEBOOKS
from rleaas.sims.state import Json, Record, State
from rleaas.sims.table import Table

FIRST = (
    "Amara", "Bruno", "Chen", "Dalia", "Emil", "Farah", "Goran", "Hana", "Imani", "Jonas",
    "Keiko", "Luis", "Mira", "Nadia", "Omar", "Priya", "Quentin", "Rosa", "Sami", "Tomas",
)  # fmt: skip
LAST = (
    "Abara", "Becker", "Castillo", "Dubois", "Eriksen", "Fontaine", "Grant", "Hoffmann", "Ibarra",
    "Jansen", "Kimura", "Lindqvist", "Moreau", "Novak", "Okafor", "Petersen", "Quist", "Rahman",
    "Silva", "Tanaka",
)  # fmt: skip
COUNTRIES = ("AT", "BR", "CA", "CH", "DE", "ES", "FR", "JP", "NG", "NL", "SE", "US")
SHOPS = ("Aldi", "Bahn", "City Power", "Delta Rent", "Fresh Market", "Metro Telecom")
LISTED = (
    ("Viktor Malenkov", 1961, "RU", "arms embargo"),
    ("Soraya Haddadi", 1974, "IR", "proliferation"),
    ("Ri Chol Min", 1968, "KP", "proliferation"),
    ("Thura Zaw Lwin", 1959, "MM", "human rights"),
    ("Esteban Quiroga Paz", 1970, "VE", "narcotics"),
    ("Mikhail Orlovsky", 1966, "RU", "asset freeze"),
)
"""The sanctions list: invented persons."""
ME = "off_me"
OFFICERS = (ME, "off_kay", "off_lee", "off_roy")
"""The agent, and the officers who can approve beside it."""

LONGEST_QUEUE = 3
"""Transfers of one task, each of another customer: a bank has at least as many."""

FACTS: Mapping[str, Json] = {
    "transfer_read": False,
    "customer_read": False,
    "account_read": False,
    "history_read": False,
    "kyc_checked": False,
    "kyc_status": "unknown",
    "sanctions_checked": False,
    "sanctions_result": "unknown",
    "aml_checked": False,
    "aml_risk": "unknown",
    "callback": "none",
    "documents": "none",
    "second_approval": False,
    "sar_filed": False,
    "account_frozen": False,
    "customer_notified": False,
    "decision": "none",
}
"""What is known and done about the transfer in focus."""
COUNTERS: Mapping[str, Json] = {
    "transfer_amount": 0.0,
    "approved_amount": 0.0,
    "decisions": 0,
    "decision_1": "none",
    "decision_2": "none",
    "decision_3": "none",
    "decisions_without_aml": 0,
    "decisions_without_kyc": 0,
    "decisions_without_sanctions": 0,
    "approvals_without_second_officer": 0,
    "approvals_without_identification": 0,
    "blocks_without_report": 0,
    "customers_tipped_off": 0,
    "needless_notices": 0,
    "needless_freezes": 0,
    "needless_calls": 0,
    "needs_second_officer": False,
}
"""What stays when the next transfer of a queue comes into focus."""


def make(seed: int, config: Mapping[str, Json]) -> State:
    """A bank with so many customers, the same for the same seed and configuration."""
    rng = random.Random(f"FinSim {seed}")
    rules = RULEBOOKS[config["jurisdiction"]]
    customers: dict[str, Record] = {}
    accounts: dict[str, Record] = {}
    accounts_wanted: int = config["customer_accounts"] or config["org_size"]
    for number in range(1, max(accounts_wanted, LONGEST_QUEUE) + 1):
        customer = _customer(number, rng, rules.kyc_valid_days)
        account = _account(number, rng, rules.currency)
        customers[customer["id"]] = customer
        accounts[account["id"]] = account
    listed = {
        f"sdn_{number:03d}": {
            "id": f"sdn_{number:03d}",
            "name": name,
            "born": born,
            "country": country,
            "programme": programme,
        }
        for number, (name, born, country, programme) in enumerate(LISTED, 1)
    }
    tables: dict[str, Table] = {
        "customers": customers,
        "accounts": accounts,
        "transfers": {},
        "sanctions": listed,
        "reports": {},
    }
    return State(tables, {}, {**FACTS, **COUNTERS}, config)


def _customer(number: int, rng: random.Random, valid_days: int) -> Record:
    name = f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    return {
        "id": f"cus_{number:04d}",
        "name": name,
        "born": rng.randrange(1945, 2004),
        "country": rng.choice(COUNTRIES),
        "risk": "standard",
        "pep": False,
        "document": f"P{rng.randrange(10**6, 10**7)}",
        "document_name": name,
        "kyc_age_days": rng.randrange(5, valid_days - 30),
    }


def _account(number: int, rng: random.Random, currency: str) -> Record:
    return {
        "id": f"acc_{number:04d}",
        "customer_id": f"cus_{number:04d}",
        "currency": currency,
        "balance": round(rng.uniform(2_000, 90_000), 2),
        "status": "open",
        "statement": [_line(day, rng) for day in sorted(rng.sample(range(1, 60), 5))],
    }


def _line(days_ago: int, rng: random.Random) -> Record:
    # A salary is more than any purchase, so that ordinary lives look like no pattern.
    salary = rng.random() < 0.3
    return {
        "days_ago": days_ago,
        "direction": "in" if salary else "out",
        "amount": round(rng.uniform(1_500, 4_000) if salary else rng.uniform(8, 900), 2),
        "counterparty": "employer" if salary else rng.choice(SHOPS),
    }
