"""What a month of work is worth, to the cent: the rules of three jurisdictions, simplified.

The rates are chosen to be plausible; they are no advice on anybody's taxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rleaas.sims.state import Record

HOURS_A_YEAR = 2080
"""52 weeks of 40 hours: what the wage of an hour is reckoned by."""
DAYS_A_YEAR = 260
"""52 weeks of 5 days: what an unpaid day is reckoned by."""
PENSION_PER_MYRIAD = 500
_MYRIAD = 10_000


@dataclass(frozen=True, slots=True)
class Law:
    """What a jurisdiction decides.

    Attributes:
        overtime_percent: what an hour of overtime is worth, of an ordinary one.
        tax_per_myriad: income tax on gross pay less the pension.
        social_per_myriad: social insurance on gross pay.
        leave_days: annual leave of a full-time employee.
        retention_years: how long the file of somebody who left has to be kept.
    """

    overtime_percent: int
    tax_per_myriad: int
    social_per_myriad: int
    leave_days: int
    retention_years: int


LAWS: Mapping[str, Law] = {
    "US": Law(150, 2200, 765, 15, 4),
    "UK": Law(100, 2000, 800, 28, 6),
    "DE": Law(125, 2500, 2000, 30, 10),
}


def payslip(person: Record, law: Law) -> dict[str, int]:
    """The month of a person in cents, each line rounded half up."""
    annual = person["salary"] * 100
    gross = (
        _share(annual, 1, 12)
        + _share(annual * person["timesheet_overtime"], law.overtime_percent, HOURS_A_YEAR * 100)
        + person["approved_bonus"] * 100
        - _share(annual * person["unpaid_days"], 1, DAYS_A_YEAR)
    )
    pension = _share(gross, PENSION_PER_MYRIAD, _MYRIAD)
    tax = _share(gross - pension, law.tax_per_myriad, _MYRIAD)
    social = _share(gross, law.social_per_myriad, _MYRIAD)
    return {
        "gross_cents": gross,
        "pension_cents": pension,
        "tax_cents": tax,
        "social_cents": social,
        "garnished_cents": person["garnishment"] * 100,
        "net_cents": gross - pension - tax - social - person["garnishment"] * 100,
    }


def valid_iban(iban: str) -> bool:
    """Whether the check digits of an IBAN (ISO 13616) are right."""
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


def _share(amount: int, part: int, of: int) -> int:
    """`amount * part / of`, rounded half up."""
    return (2 * amount * part + of) // (2 * of)
