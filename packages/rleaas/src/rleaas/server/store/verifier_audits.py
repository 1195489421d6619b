"""Grader tests of verifiers: kept with what the verifier judged by when it was tested."""

import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rlcore import VerifierNotFound
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import VerifierAuditRow, VerifierRow
from rleaas.server.store.verifier_definitions import finder
from rleaas.verify import AuditReport, Definition
from rleaas.verify.definition import LLM_JUDGE, to_json

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

    `model` is the language model that judges.
    """
    newest = next(iter(page(session, row)), None)
    if newest is None or not newest.passed:
        return False
    try:
        return newest.judged_by == fingerprint(row.id, finder(session), model)
    except VerifierNotFound:
        return False  # a component of it is gone


def fingerprint(verifier_id: str, find: Callable[[str], Definition], model: str | None) -> str:
    """The digest of all that a verifier judges by: its components too, and the model."""
    known: dict[str, Definition] = {}
    waiting = [verifier_id]
    while waiting:
        one = waiting.pop()
        if one not in known:
            known[one] = find(one)
            waiting += [part for part, _, _ in known[one].components]
    told: list[object] = [to_json(known[one]) for one in sorted(known)]
    if any(one.type == LLM_JUDGE for one in known.values()):
        told.append(model)
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
