"""Tools in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import ConflictError, InvalidRequestError, ToolNotFound
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from rleaas.server.rules.catalogue import merged, new_id
from rleaas.server.store import catalogue
from rleaas.server.store.tables import JsonObject, ToolRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    """What a client says of a tool; None leaves as it is, `environment` "" is for all."""

    id: str | None = None
    name: str | None = None
    type: str | None = None
    category: str | None = None
    description: str | None = None
    parameters: JsonObject | None = None
    environment: str | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


def find(session: Session, reference: str, environment_id: int | None = None) -> ToolRow:
    """The tool with this id, else the one with this name.

    Raises:
        ToolNotFound: there is none.
        ConflictError: several have the name.
    """
    row = catalogue.by_id(session, ToolRow, reference)
    if row is not None:
        return row
    named = _named(session, reference, environment_id)
    if not named:
        raise ToolNotFound(reference)
    own = [one for one in named if one.environment_id == environment_id]
    if len(named) > 1 and len(own) != 1:
        raise ConflictError(
            f"{len(named)} tools are called {reference!r}",
            code="ambiguous_name",
            hint=f"Name its environment, or use an id: {', '.join(one.id for one in named[:5])}",
        )
    return own[0] if own else named[0]


def existing(session: Session, change: ToolChange) -> ToolRow | None:
    """The tool that a change is about, by its id or, without an id, its name."""
    if change.id is not None:
        return catalogue.by_id(session, ToolRow, change.id)
    place = catalogue.environment_id(session, change.environment)
    same = _named(session, change.name or "", place)
    return next((one for one in same if one.environment_id == place), None)


def upsert(session: Session, change: ToolChange) -> tuple[ToolRow, bool]:
    """Add a tool, or change the one with its id or, without an id, its name.

    Returns:
        The tool, and whether it is new.
    """
    row = existing(session, change)
    if row is not None:
        return apply(session, row, change), False
    place = catalogue.environment_id(session, change.environment)
    if change.name is None:
        raise InvalidRequestError(
            f"the new tool {change.id or ''!r} has no name", hint="Give it a name"
        )
    now = datetime.now(UTC)
    row = ToolRow(
        id=change.id or new_id("tool"),
        environment_id=place,
        name=change.name,
        type=change.type or "custom",
        category=change.category or "",
        description=change.description or "",
        parameters=change.parameters or {},
        details=merged({}, change.details),
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    return row, True


def apply(session: Session, row: ToolRow, change: ToolChange) -> ToolRow:
    """Change what is said, and nothing else."""
    if change.environment is not None:
        row.environment_id = catalogue.environment_id(session, change.environment)
    catalogue.take(row, change, ("name", "type", "category", "description", "parameters"))
    row.details = merged(row.details, change.details)
    row.updated_at = datetime.now(UTC)
    session.flush()
    return row


def page(
    session: Session, *, environment_id: int | None, category: str | None, after: int, limit: int
) -> tuple[Sequence[ToolRow], str | None]:
    """Tools in the order in which they came, those of an environment with those for all."""
    conditions: list[ColumnElement[bool]] = []
    if environment_id is not None:
        conditions.append(_usable_in(environment_id))
    if category:
        wanted = category.lower()
        conditions.append(
            or_(func.lower(ToolRow.category) == wanted, func.lower(ToolRow.type) == wanted)
        )
    return catalogue.page(session, ToolRow, conditions, after=after, limit=limit)


def _named(session: Session, name: str, environment_id: int | None) -> Sequence[ToolRow]:
    if "\0" in name:
        return []
    query = select(ToolRow).where(ToolRow.name == name).order_by(ToolRow.row_id)
    if environment_id is not None:
        query = query.where(_usable_in(environment_id))
    return session.scalars(query).all()


def _usable_in(environment_id: int) -> ColumnElement[bool]:
    return or_(ToolRow.environment_id == environment_id, ToolRow.environment_id.is_(None))
