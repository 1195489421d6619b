"""Quotas, held wherever rows are added: by their organisation's limits and those of the key."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from rlcore import QuotaExceededError
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from rleaas.server.rules import lifecycle
from rleaas.server.rules.grants import ENVIRONMENTS, JOBS, STORAGE, tightest
from rleaas.server.store.tables import (
    CheckpointRow,
    DataAssetRow,
    EnvironmentRow,
    JobRow,
    OrganisationRow,
    Owned,
)

# Under this name a session has the limits of whoever's it is.
KEY_LIMITS: Final = "limits"


def require_room(session: Session) -> None:
    """Refuse what is about to be added when it is more than a quota allows.

    It is counted in the transaction that adds it, of which there is one at a time.

    Raises:
        QuotaExceededError: with how many there are and may be.
    """
    for organisation_id in {row.organisation_id for row in session.new if _counts(row)}:
        for name in _USED:
            more = sum(_size(row, name) for row in session.new if _is_of(row, organisation_id))
            _require(session, organisation_id, name, more)


def require_room_for_jobs(session: Session, organisation_id: int, more: int) -> None:
    """Refuse as many jobs as a quota would not allow together.

    Raises:
        QuotaExceededError: with how many there are and may be.
    """
    _require(session, organisation_id, JOBS, more)


def _require(session: Session, organisation_id: int, name: str, more: float) -> None:
    found = session.scalar(
        select(OrganisationRow.limits).where(OrganisationRow.id == organisation_id)
    )
    own = cast("Mapping[str, object]", session.info.get(KEY_LIMITS) or {})
    limits = tightest(found or {}, own)
    if not more or name not in limits:
        return
    before = _USED[name](session, organisation_id)
    if before + more > limits[name]:
        raise QuotaExceededError(
            f"the quota {name!r} is {limits[name]:g}; {before:g} are used and "
            f"{more:g} more were asked for",
            hint="Delete what is not needed, or ask an admin for more",
        )


def _counts(row: object) -> bool:
    return isinstance(row, EnvironmentRow | JobRow | CheckpointRow | DataAssetRow)


def _is_of(row: object, organisation_id: int) -> bool:
    return isinstance(row, Owned) and row.organisation_id == organisation_id


def _size(row: object, name: str) -> float:
    if name == ENVIRONMENTS:
        return 1 if isinstance(row, EnvironmentRow) else 0
    if name == JOBS:
        return 1 if isinstance(row, JobRow) else 0
    if isinstance(row, CheckpointRow):
        return row.size_bytes + (row.state_bytes or 0)
    return row.size_bytes if isinstance(row, DataAssetRow) else 0


def _environments(session: Session, organisation_id: int) -> float:
    return _count(session, EnvironmentRow, EnvironmentRow.organisation_id == organisation_id)


def _jobs(session: Session, organisation_id: int) -> float:
    return _count(
        session,
        JobRow,
        JobRow.organisation_id == organisation_id,
        JobRow.status.not_in(tuple(lifecycle.TERMINAL)),
    )


def _storage(session: Session, organisation_id: int) -> float:
    state = func.coalesce(CheckpointRow.state_bytes, 0)
    total = 0.0
    for row, size in (
        (CheckpointRow, CheckpointRow.size_bytes + state),
        (DataAssetRow, DataAssetRow.size_bytes),
    ):
        with session.no_autoflush:
            found = session.scalar(
                select(func.coalesce(func.sum(size), 0)).where(
                    row.organisation_id == organisation_id
                )
            )
            total += float(found or 0)  # PostgreSQL sums large integers to a decimal
    return total


def _count(session: Session, row: type[Owned], *where: ColumnElement[bool]) -> float:
    with session.no_autoflush:
        return float(session.scalar(select(func.count()).select_from(row).where(*where)) or 0)


_USED: Mapping[str, Callable[[Session, int], float]] = {
    ENVIRONMENTS: _environments,
    JOBS: _jobs,
    STORAGE: _storage,
}
