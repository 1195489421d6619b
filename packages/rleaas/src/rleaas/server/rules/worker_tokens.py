"""Whom the token of a worker is for: one attempt at one job."""

from dataclasses import dataclass

from rlcore import ConflictError

from rleaas.server.rules import lifecycle


@dataclass(frozen=True, slots=True)
class WorkerSubject:
    """The attempt that a token is for."""

    kind: str
    job_id: str
    attempt: int


def worker_subject(kind: str, job_id: str, attempt: int = 1) -> str:
    """Whom the token of this attempt's worker is for."""
    return f"worker:{kind}:{job_id}:{attempt}"


def read_subject(subject: str) -> WorkerSubject | None:
    """The attempt that is meant; None: it is not the subject of a worker."""
    parts = subject.split(":")
    if len(parts) != 4 or parts[0] != "worker" or not parts[3].isdecimal():
        return None
    return WorkerSubject(parts[1], parts[2], int(parts[3]))


def require_current(job_id: str, status: str, attempts: int, attempt: int) -> None:
    """Refuse what comes from an attempt that was replaced, or is over.

    Raises:
        ConflictError: the job was given to another worker, or waits for one.
    """
    if attempts != attempt or status == lifecycle.PENDING:
        raise ConflictError(
            f"attempt {attempt} of {job_id!r} was replaced",
            code="attempt_replaced",
            hint="Its worker should end: what it says does not count any more",
        )
