"""What the bank's handbook says: limits by jurisdiction, and when a pattern is suspicious."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rleaas.sims.state import Json, Record, State


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The limits of one jurisdiction.

    Attributes:
        currency: of its amounts.
        reporting_limit: from here on a payment to a new payee is confirmed by a call; amounts
            just below it, again and again, are structuring.
        approval_limit: from here on a second officer approves.
        kyc_valid_days: how long an identification is good for.
    """

    currency: str
    reporting_limit: int
    approval_limit: int
    kyc_valid_days: int


RULEBOOKS: Mapping[str, Rulebook] = {
    "US": Rulebook("USD", 10_000, 50_000, 730),
    "EU": Rulebook("EUR", 10_000, 40_000, 365),
    "UK": Rulebook("GBP", 8_000, 35_000, 365),
    "SG": Rulebook("SGD", 20_000, 80_000, 540),
}

HIGH_RISK_COUNTRIES = ("IR", "KP", "MM")
_STRUCTURING = 3
_STRUCTURING_DAYS = 10
_STRUCTURING_FLOOR = 0.8
_PASSED_THROUGH = 2
_PASSED_THROUGH_DAYS = 2
_BUSY = 12
_BUSY_DAYS = 7
_ALIKE = 0.82

Entry = Mapping[str, Json]
"""A line of a statement: `days_ago`, `direction` (in or out), `amount`, `counterparty`."""


def rules_of(state: State) -> Rulebook:
    """The limits of the bank's jurisdiction."""
    return RULEBOOKS[state.config["jurisdiction"]]


def aml_risk(transfer: Record, entries: Sequence[Entry], rules: Rulebook) -> tuple[str, str]:
    """The risk of money laundering, low, medium or high, and the pattern that it was found by."""
    if _is_structured(transfer["amount"], entries, rules.reporting_limit):
        return "high", "structuring"
    if _passed_through(entries) >= _PASSED_THROUGH:
        return "high", "pass_through"
    if transfer["beneficiary_country"] in HIGH_RISK_COUNTRIES:
        return "medium", "high_risk_country"
    if sum(entry["days_ago"] <= _BUSY_DAYS for entry in entries) > _BUSY:
        return "medium", "unusual_velocity"
    return "low", "none"


def kyc_status(customer: Record, rules: Rulebook) -> str:
    """Whether the customer is identified: current, expired, or mismatch with the document."""
    if not same_name(customer["document_name"], customer["name"]):
        return "mismatch"
    return "expired" if customer["kyc_age_days"] > rules.kyc_valid_days else "current"


def screened(name: str, born: int, listed: Sequence[Record]) -> tuple[str, Record | None]:
    """Whether a person is on the list: clear, hit, or a possible match to be resolved."""
    possible = None
    for entry in listed:
        if same_name(name, entry["name"]):
            if entry["born"] == born:
                return "hit", entry
            possible = entry
        elif possible is None and alike(name, entry["name"]):
            possible = entry
    return ("possible", possible) if possible else ("clear", None)


def same_name(first: str, second: str) -> bool:
    """Whether two names are of the same words, whatever their case and order."""
    return first == second or _words(first) == _words(second)


def alike(first: str, second: str) -> bool:
    """Whether a name may be another spelling of the other."""
    left, right = " ".join(_words(first)), " ".join(_words(second))
    # Most names are told apart by their length or letters alone.
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return (
        matcher.real_quick_ratio() >= _ALIKE
        and matcher.quick_ratio() >= _ALIKE
        and matcher.ratio() >= _ALIKE
    )


def _words(name: str) -> list[str]:
    return sorted(name.casefold().replace(",", " ").split())


def _is_structured(amount: float, entries: Sequence[Entry], limit: int) -> bool:
    floor = _STRUCTURING_FLOOR * limit
    if not floor <= amount < limit:
        return False
    earlier = sum(
        entry["days_ago"] <= _STRUCTURING_DAYS
        and entry["direction"] == "out"
        and floor <= entry["amount"] < limit
        for entry in entries
    )
    return bool(earlier >= _STRUCTURING)


def _passed_through(entries: Sequence[Entry]) -> int:
    """How many receipts left again within days, nearly whole."""
    receipts = [entry for entry in entries if entry["direction"] == "in"]
    payments = [entry for entry in entries if entry["direction"] == "out"]
    return sum(
        any(
            0 <= receipt["days_ago"] - payment["days_ago"] <= _PASSED_THROUGH_DAYS
            and 0.9 * receipt["amount"] <= payment["amount"] <= receipt["amount"]
            for payment in payments
        )
        for receipt in receipts
    )
