"""Scenario suites in the database."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import ConflictError, InvalidRequestError, SuiteNotFound
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from rleaas.server.rules import library
from rleaas.server.rules.catalogue import merged, new_id
from rleaas.server.store import catalogue, held_out, scenarios
from rleaas.server.store.tables import ScenarioRow, SuiteRow

TRAINING = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteChange:
    """What a client says of a suite; None leaves as it is, `environment` "" is none."""

    id: str | None = None
    name: str | None = None
    purpose: str | None = None
    scenario_ids: list[str] | None = None
    environment: str | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


def find(session: Session, reference: str) -> SuiteRow:
    """The suite with this id, else the one with this name.

    Raises:
        SuiteNotFound: there is none.
        ConflictError: several have the name.
    """
    return catalogue.find(session, SuiteRow, reference, SuiteNotFound)


def upsert(session: Session, change: SuiteChange) -> tuple[SuiteRow, bool]:
    """Add a suite, or change the one with its id.

    Returns:
        The suite, and whether it is new.

    Raises:
        InvalidRequestError: a new one without a name, or a scenario that is listed twice.
        ScenarioNotFound: one that it lists does not exist.
        ConflictError: it is a built-in one, or shares a scenario with a suite for the other
            purpose.
    """
    require_own(change.id)
    row = None if change.id is None else catalogue.by_id(session, SuiteRow, change.id)
    if row is not None:
        return apply(session, row, change), False
    if change.name is None:
        raise InvalidRequestError(
            f"there is no suite {change.id or ''!r} to change, and a new one needs a name",
            code="suite_without_name",
            hint="Give it a name, or the id of one that exists",
        )
    listed = _scenarios(session, change.scenario_ids or [])
    held_out.require_apart(session, listed, change.purpose or TRAINING)
    now = datetime.now(UTC)
    row = SuiteRow(
        id=change.id or new_id("suite"),
        environment_id=catalogue.environment_id(session, change.environment),
        name=change.name,
        purpose=change.purpose or TRAINING,
        scenario_ids=listed,
        details=merged({}, change.details),
        version=1,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    return row, True


def apply(session: Session, row: SuiteRow, change: SuiteChange) -> SuiteRow:
    """Change what is said; a suite that differs has the next version."""
    before = _content(row)
    if change.scenario_ids is not None:
        row.scenario_ids = _scenarios(session, change.scenario_ids)
    if change.environment is not None:
        row.environment_id = catalogue.environment_id(session, change.environment)
    catalogue.take(row, change, ("name", "purpose"))
    row.details = merged(row.details, change.details)
    if _content(row) != before:
        held_out.require_apart(session, row.scenario_ids, row.purpose, but=row.id)
        row.version += 1
        row.updated_at = datetime.now(UTC)
    session.flush()
    return row


def require_own(suite_id: str | None) -> None:
    """Refuse to change a built-in suite.

    Raises:
        ConflictError: it is one (`suite_read_only`).
    """
    if suite_id is not None and library.suite(suite_id) is not None:
        raise ConflictError(
            f"suite {suite_id!r} is built in, and the same everywhere",
            code="suite_read_only",
            hint="Make a suite of your own with the scenarios that you want",
        )


def page(
    session: Session, *, environment_id: int | None, purpose: str | None, after: int, limit: int
) -> tuple[Sequence[SuiteRow], str | None]:
    """Suites in the order in which they came."""
    conditions: list[ColumnElement[bool]] = []
    if environment_id is not None:
        conditions.append(SuiteRow.environment_id == environment_id)
    if purpose is not None:
        conditions.append(SuiteRow.purpose == purpose)
    return catalogue.page(session, SuiteRow, conditions, after=after, limit=limit)


def without(session: Session, scenario_id: str) -> list[str]:
    """Take a scenario out of every suite; returns the ids of those that had it."""
    changed: list[str] = []
    for row in session.scalars(select(SuiteRow).order_by(SuiteRow.row_id)):
        if scenario_id in row.scenario_ids:
            rest = [one for one in row.scenario_ids if one != scenario_id]
            row.scenario_ids = rest
            row.version += 1
            row.updated_at = datetime.now(UTC)
            changed.append(row.id)
    session.flush()
    return changed


def _scenarios(session: Session, references: Sequence[str]) -> list[str]:
    known = set(session.scalars(select(ScenarioRow.id).where(ScenarioRow.id.in_(references))))
    ids = [
        one if one in known or library.find(one) else scenarios.find(session, one).id
        for one in references
    ]
    repeated = [one for one, times in Counter(ids).items() if times > 1]
    if repeated:
        raise InvalidRequestError(f"scenario {repeated[0]!r} is listed twice", hint="List it once")
    return ids


def _content(row: SuiteRow) -> tuple[object, ...]:
    return (row.environment_id, row.name, row.purpose, row.scenario_ids, row.details)
