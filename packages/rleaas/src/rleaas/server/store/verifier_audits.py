"""Grader tests of verifiers: kept with what the verifier judged by when it was tested."""

import enum
from collections.abc import Sequence
from datetime import UTC, datetime

from rlcore import VerifierNotFound
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.rules.json_values import fields, integer
from rleaas.server.store.tables import VerifierAuditRow, VerifierRow
from rleaas.server.store.verifier_definitions import finder
from rleaas.sims.audited import passed_its_audit
from rleaas.verify import AuditReport
from rleaas.verify.auditing import LEAST_KNOWN
from rleaas.verify.fingerprint import fingerprint

KEPT = 100
"""Audits of one verifier that are kept; the oldest go."""


def record(
    session: Session, row: VerifierRow, judged_by: str, report: AuditReport
) -> VerifierAuditRow:
    """Keep what an audit of the verifier found."""
    made = VerifierAuditRow(
        verifier_row_id=row.row_id,
        version=row.version,
        judged_by=judged_by,
        passed=report.passed,
        report=report.to_dict(),
        created_at=datetime.now(UTC),
    )
    session.add(made)
    session.flush()
    for old in page(session, row)[KEPT:]:
        session.delete(old)
    return made


def page(session: Session, row: VerifierRow) -> Sequence[VerifierAuditRow]:
    """The audits of a verifier, newest first."""
    return session.scalars(
        select(VerifierAuditRow)
        .where(VerifierAuditRow.verifier_row_id == row.row_id)
        .order_by(VerifierAuditRow.id.desc())
    ).all()


def is_audited(session: Session, row: VerifierRow, model: str | None) -> bool:
    """Whether the newest audit passed with enough episodes, and was of what it judges by now."""
    return standing(session, row, model) is Standing.AUDITED


class Standing(enum.StrEnum):
    """What is known of how often a verifier is wrong."""

    AUDITED = "audited"
    FAILED = "failed"
    TOO_FEW = "too_few"
    OUTDATED = "outdated"
    NEVER = "never"


def standing(session: Session, row: VerifierRow, model: str | None) -> Standing:
    """What the newest audit says of a verifier as it judges now.

    A built-in one that nobody audited here was audited with its release, as long as it judges by
    what it did then. `model` is the language model that judges.
    """
    newest = _newest(session, row)
    if newest is None:
        shipped = passed_its_audit(row.id, finder(session))
        return Standing.AUDITED if shipped else Standing.NEVER
    try:
        same = newest.judged_by == fingerprint(row.id, finder(session), model)
    except VerifierNotFound:
        same = False  # a component of it is gone
    if not same:
        return Standing.OUTDATED
    if not newest.passed:
        return Standing.FAILED
    return Standing.AUDITED if _is_enough(newest) else Standing.TOO_FEW


def warning(session: Session, row: VerifierRow, model: str | None) -> str | None:
    """What a report says of a verifier that is not audited; None of one that is."""
    found, newest = standing(session, row, model), _newest(session, row)
    if found is Standing.AUDITED:
        return None
    unknown = "how often it is wrong is not known"
    if newest is None:
        return f"verifier {row.id!r} was not audited: {unknown}"
    at = f"its audit of {newest.created_at:%Y-%m-%d}, at version {newest.version},"
    said = {
        Standing.FAILED: f"verifier {row.id!r} failed {at} and is wrong at times: "
        f"rleaas verifier audits {row.id}",
        Standing.TOO_FEW: f"verifier {row.id!r} passed {at} with fewer than {LEAST_KNOWN} "
        f"good and {LEAST_KNOWN} bad episodes: {unknown}",
        Standing.OUTDATED: f"verifier {row.id!r} judges otherwise since {at} so that {unknown}",
    }
    return said[found]


def _newest(session: Session, row: VerifierRow) -> VerifierAuditRow | None:
    return next(iter(page(session, row)), None)


def _is_enough(audit: VerifierAuditRow) -> bool:
    told = fields(audit.report.get("evidence"))
    if told:
        return told.get("enough") is True
    # An audit of before, which did not tell which of them were different.
    rates = [fields(audit.report.get(f"false_{one}_rate")) for one in ("positive", "negative")]
    return min(integer(one.get("of")) or 0 for one in rates) >= LEAST_KNOWN
