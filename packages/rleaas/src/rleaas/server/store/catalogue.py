"""What tools, verifiers, scenarios, suites and agents have in common as rows."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from rlcore import ConflictError, RLEaaSError
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from rleaas.server.store import environments
from rleaas.server.store.tables import (
    AgentRow,
    EnvironmentRow,
    ScenarioRow,
    SuiteRow,
    ToolRow,
    VerifierRow,
)

_NAMED: Final = 5

Row = TypeVar("Row", ToolRow, VerifierRow, ScenarioRow, SuiteRow, AgentRow)


def by_id(session: Session, kind: type[Row], row_id: str) -> Row | None:
    """The organisation's row with this id of its callers."""
    if "\0" in row_id:  # a text that PostgreSQL cannot even be asked for
        return None
    return session.scalar(select(kind).where(kind.id == row_id))


def find(
    session: Session, kind: type[Row], reference: str, missing: Callable[[str], RLEaaSError]
) -> Row:
    """The row with this id, else the one with this name.

    Raises:
        RLEaaSError: what `missing` makes, where there is none.
        ConflictError: several have the name.
    """
    row = by_id(session, kind, reference)
    if row is not None:
        return row
    named = _named(session, kind, reference)
    if not named:
        raise missing(reference)
    if len(named) > 1:
        raise ConflictError(
            f"several are called {reference!r}",
            code="ambiguous_name",
            hint=f"Use an id: {', '.join(one.id for one in named)}",
        )
    return named[0]


def take(row: object, change: object, names: Iterable[str]) -> None:
    """Set the fields of the row that the change says; what is None in it stays."""
    for name in names:
        value = getattr(change, name)
        if value is not None:
            setattr(row, name, value)


def page(
    session: Session,
    kind: type[Row],
    conditions: Iterable[ColumnElement[bool]],
    *,
    after: int,
    limit: int,
) -> tuple[Sequence[Row], str | None]:
    """Rows in the order in which they came, those after `after`; `limit` 0 is all of them.

    Returns:
        The rows, and the cursor of the next page if there is one.
    """
    query = select(kind).where(kind.row_id > after, *conditions).order_by(kind.row_id)
    rows = session.scalars(query.limit(limit + 1) if limit else query).all()
    shown = rows[:limit] if limit else rows
    return shown, str(shown[-1].row_id) if len(rows) > len(shown) else None


def _named(session: Session, kind: type[Row], name: str) -> Sequence[Row]:
    if "\0" in name:
        return []
    query = select(kind).where(kind.name == name).order_by(kind.row_id)
    return session.scalars(query.limit(_NAMED)).all()


def environment_id(session: Session, reference: str | None) -> int | None:
    """The environment that a filter or a record names by name or number; None or "" is none.

    Raises:
        EnvironmentNotFound: there is no such environment.
    """
    return None if reference in (None, "") else environments.find(session, str(reference)).id


def environment_names(session: Session, ids: Iterable[int | None]) -> dict[int, str]:
    """The names of environments by their ids."""
    wanted = {one for one in ids if one is not None}
    if not wanted:
        return {}
    found = session.execute(
        select(EnvironmentRow.id, EnvironmentRow.name).where(EnvironmentRow.id.in_(wanted))
    )
    return {row.id: row.name for row in found}
