"""Training jobs and evaluations in the database."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rlcore import CheckpointNotFound, ConflictError, EvaluationNotFound, TrainingJobNotFound
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rleaas.server.rules import lifecycle
from rleaas.server.store import audit, events
from rleaas.server.store.audit import Asker
from rleaas.server.store.tables import (
    CheckpointRow,
    IdempotencyRow,
    JobRow,
    JsonObject,
    VersionRow,
)

TRAINING = "training"
EVALUATION = "evaluation"
_PREFIX = {TRAINING: "job_", EVALUATION: "eval_"}


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The client's own name for one create request, and the digest of what it asked."""

    scope: str
    key: str
    body_digest: str


def find(session: Session, kind: str, job_id: str) -> JobRow:
    """The training job or evaluation with this id.

    Raises:
        TrainingJobNotFound, EvaluationNotFound: there is none of that kind.
    """
    row = session.get(JobRow, job_id)
    if row is None or row.kind != kind:
        raise (TrainingJobNotFound if kind == TRAINING else EvaluationNotFound)(job_id)
    return row


def create(
    session: Session,
    caller: Asker,
    kind: str,
    version: VersionRow,
    request: JsonObject,
    *,
    name: str | None,
    idempotency: IdempotencyKey | None,
    priority: int = 0,
) -> JobRow:
    """Add a pending job of a caller, under an idempotency key that `made_before` does not know."""
    now = datetime.now(UTC)
    row = JobRow(
        id=_PREFIX[kind] + secrets.token_hex(6),
        kind=kind,
        version=version,
        name=name,
        status=lifecycle.PENDING,
        request=request,
        progress=0,
        results={},
        priority=priority,
        attempts=0,
        restarts=0,
        history=[],
        last_seq=0,
        created_at=now,
        checkpoints=[],
    )
    session.add(row)
    session.flush()
    if idempotency is not None:
        session.add(
            IdempotencyRow(
                scope=idempotency.scope,
                key=idempotency.key,
                body_digest=idempotency.body_digest,
                resource_id=row.id,
                created_at=now,
            )
        )
    tell(session, row, "created", request)
    _note(session, caller, "created", row, {"environment_version": version.version})
    session.flush()
    return row


def subject(row: JobRow) -> str:
    """How events name the job."""
    return f"job:{row.id}"


def tell(
    session: Session, row: JobRow, kind: str, data: JsonObject, at: datetime | None = None
) -> None:
    """Append an event about the job."""
    events.add(session, subject(row), kind, data, at, organisation=row.organisation_id)


def page(
    session: Session,
    kind: str,
    *,
    status: str | None = None,
    before: tuple[datetime, str] | None = None,
    limit: int | None = None,
) -> Sequence[JobRow]:
    """Jobs of one kind, newest first, those older than `before`."""
    query = select(JobRow).where(JobRow.kind == kind)
    if status is not None:
        query = query.where(JobRow.status == status)
    if before is not None:
        at, job_id = before
        query = query.where(
            (JobRow.created_at < at) | ((JobRow.created_at == at) & (JobRow.id < job_id))
        )
    query = query.order_by(JobRow.created_at.desc(), JobRow.id.desc()).limit(limit)
    return session.scalars(query).all()


def unfinished(session: Session) -> Sequence[JobRow]:
    """Jobs that some worker should be busy with."""
    return session.scalars(select(JobRow).where(JobRow.status == lifecycle.RUNNING)).all()


def finish(session: Session, row: JobRow, status: str, error: str | None = None) -> None:
    """End a job; one that has ended already stays as it is."""
    if row.status in lifecycle.TERMINAL:
        return
    row.status = status
    row.error = error
    row.completed_at = datetime.now(UTC)
    tell(session, row, status, {"error": error} if error else {})
    session.flush()


def find_checkpoint(session: Session, checkpoint_id: str) -> CheckpointRow:
    """The checkpoint with this id; `ckpt_<job>_final` is the job's last one.

    Raises:
        CheckpointNotFound: there is none.
    """
    row = session.get(CheckpointRow, checkpoint_id)
    if row is None and checkpoint_id.endswith("_final"):
        job_id = checkpoint_id.removeprefix("ckpt_").removesuffix("_final")
        job = session.get(JobRow, job_id)
        if job is not None and job.checkpoints:
            row = job.checkpoints[-1]
    if row is None:
        raise CheckpointNotFound(checkpoint_id)
    return row


def digests(session: Session, job_ids: Sequence[str]) -> set[str]:
    """The digests of the files that these jobs left behind."""
    found = session.execute(
        select(CheckpointRow.sha256, CheckpointRow.state_sha256).where(
            CheckpointRow.job_id.in_(job_ids)
        )
    )
    return {one for pair in found for one in pair if one is not None}


def forget(session: Session, job_ids: Sequence[str]) -> None:
    """Drop the idempotency keys of jobs that are about to be deleted."""
    session.execute(delete(IdempotencyRow).where(IdempotencyRow.resource_id.in_(job_ids)))


def of_environment(session: Session, environment_id: int) -> Sequence[JobRow]:
    """Every job that used any version of the environment."""
    return session.scalars(
        select(JobRow)
        .join(VersionRow, VersionRow.id == JobRow.version_id)
        .where(VersionRow.environment_id == environment_id)
    ).all()


def asked_before(session: Session, asked: IdempotencyKey | None) -> IdempotencyRow | None:
    """What came of the request with the same idempotency key; None where it is a new one.

    Ask first of all: what the request names may be gone or broken by now, and it was granted then.

    Raises:
        ConflictError: the key was used for a different request.
    """
    if asked is None:
        return None
    row = session.scalar(
        select(IdempotencyRow).where(
            IdempotencyRow.scope == asked.scope, IdempotencyRow.key == asked.key
        )
    )
    if row is not None and row.body_digest != asked.body_digest:
        raise ConflictError(
            f"the idempotency key {asked.key!r} was used for a different request",
            code="idempotency_conflict",
            hint="Use a new key for a new request",
        )
    return row


def made_before(session: Session, kind: str, asked: IdempotencyKey | None) -> JobRow | None:
    """The job that the same idempotency key made before, if there is one.

    Raises:
        ConflictError: the key was used for a different request.
    """
    row = asked_before(session, asked)
    return None if row is None else find(session, kind, row.resource_id)


def request_cancel(session: Session, caller: Asker, row: JobRow) -> None:
    """Note that the job should end, and who wants it; one that nobody has begun ends now."""
    _note(session, caller, "cancel_requested", row)
    if row.cancel_requested_at is None:
        row.cancel_requested_at = datetime.now(UTC)
        tell(session, row, "cancel_requested", {})
    if row.status == lifecycle.PENDING:
        finish(session, row, lifecycle.CANCELLED)
    session.flush()


def _note(
    session: Session, caller: Asker, what: str, row: JobRow, data: JsonObject | None = None
) -> None:
    audit.record(
        session,
        caller,
        action=f"{row.kind}.{what}",
        subject=subject(row),
        environment_name=row.version.environment.name,
        job_id=row.id,
        data=data or {},
    )
