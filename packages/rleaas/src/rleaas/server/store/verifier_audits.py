"""Grader tests of verifiers: kept with what the verifier judged by when it was tested."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rlcore import VerifierNotFound
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import VerifierAuditRow, VerifierRow
from rleaas.server.store.verifier_definitions import finder
from rleaas.sims.audited import passed_its_audit
from rleaas.verify import AuditReport
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
    """Whether the newest audit passed, and was of what the verifier judges by now.

    A built-in one that nobody audited here was audited with its release, as long as it judges by
    what it did then. `model` is the language model that judges.
    """
    newest = next(iter(page(session, row)), None)
    if newest is None:
        return passed_its_audit(row.id, finder(session))
    if not newest.passed:
        return False
    try:
        return newest.judged_by == fingerprint(row.id, finder(session), model)
    except VerifierNotFound:
        return False  # a component of it is gone
