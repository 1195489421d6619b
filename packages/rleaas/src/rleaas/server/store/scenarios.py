"""Scenarios in the database."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

from rlcore import (
    ConfigurationError,
    ConflictError,
    InvalidRequestError,
    ScenarioNotFound,
    VerifierNotFound,
)
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from rleaas.server.rules import library
from rleaas.server.rules.catalogue import merged, new_id
from rleaas.server.rules.worlds import world_of
from rleaas.server.store import catalogue, known_tools, verifiers
from rleaas.server.store.tables import EnvironmentRow, JsonObject, ScenarioRow, ToolRow

DEFAULT_STEPS = 20
_CHECKED = frozenset(("available_tools", "context_injection", "success_criteria_ref"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioChange:
    """What a client says of a scenario; None leaves as it is, `environment` "" is none."""

    id: str | None = None
    name: str | None = None
    tier: int | None = None
    task_prompt: str | None = None
    max_steps: int | None = None
    tags: list[str] | None = None
    source: str | None = None
    environment: str | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


def find(session: Session, reference: str) -> ScenarioRow:
    """The scenario with this id, else the one with this name.

    Raises:
        ScenarioNotFound: there is none.
        ConflictError: several have the name.
    """
    return catalogue.find(session, ScenarioRow, reference, ScenarioNotFound)


def as_played(session: Session, reference: str) -> JsonObject:
    """The scenario with this id or name, or of the library, as an environment is told of it.

    Raises:
        ScenarioNotFound: there is none.
        ConflictError: several have the name.
    """
    row = catalogue.by_id(session, ScenarioRow, reference)
    shipped = library.find(reference) if row is None else None
    if shipped is not None:
        return library.as_played(shipped)
    if row is None:
        row = find(session, reference)
    return {
        "id": row.id,
        "name": row.name,
        "tier": row.tier,
        "version": row.version,
        "task_prompt": row.task_prompt,
        "max_steps": row.max_steps,
        "available_tools": _tool_names(session, row.details.get("available_tools")),
        "context_injection": row.details.get("context_injection"),
    }


def _tool_names(session: Session, given: object) -> list[str] | None:
    """The names of tools, of which scenarios may list ids; an environment knows names only."""
    if not isinstance(given, list):
        return None
    listed = [str(one) for one in cast("list[object]", given)]
    rows = {one: catalogue.by_id(session, ToolRow, one) for one in listed}
    return [one if row is None else row.name for one, row in rows.items()]


def copied(session: Session, library_id: str, environment: EnvironmentRow | None) -> ScenarioRow:
    """Copy a scenario of the library into an environment, under an id of its own.

    Raises:
        ScenarioNotFound: the library has none with this id.
    """
    shipped = library.find(library_id)
    if shipped is None:
        raise ScenarioNotFound(
            library_id, hint="GET /api/scenario-library lists what the library has"
        )
    told = library.entry(shipped)
    now = datetime.now(UTC)
    row = ScenarioRow(
        id=new_id("scen"),
        environment_id=None if environment is None else environment.id,
        name=shipped.title,
        tier=shipped.tier,
        task_prompt=shipped.prompt,
        max_steps=shipped.max_steps,
        tags=list(shipped.tags),
        details={
            "library_id": shipped.id,
            "vertical": shipped.vertical,
            "domain": shipped.domain,
            "available_tools": list(shipped.tools),
            "success_criteria": told["success_criteria"],
            "context_injection": {library.BASED_ON: shipped.id},
        },
        source=library.LIBRARY,
        version=1,
        created_at=now,
        updated_at=now,
    )
    session.add(row)
    session.flush()
    return row


def require_own(scenario_id: str | None) -> None:
    """Refuse to change a scenario of the library.

    Raises:
        ConflictError: it is one (`scenario_read_only`).
    """
    if scenario_id is not None and library.find(scenario_id) is not None:
        raise ConflictError(
            f"scenario {scenario_id!r} is the library's, which nobody changes",
            code="scenario_read_only",
            hint="Copy it into an environment, and change the copy",
        )


def upsert(session: Session, change: ScenarioChange) -> tuple[ScenarioRow, bool]:
    """Add a scenario, or change the one with its id.

    Returns:
        The scenario, and whether it is new.

    Raises:
        InvalidRequestError: a new one without a name.
        ConflictError: it is the library's.
        ConfigurationError: its environment's world has no such tool, the library no scenario that
            it is based on, or the verifier that judges it is not there.
    """
    row = None if change.id is None else catalogue.by_id(session, ScenarioRow, change.id)
    require_own(change.id)
    if row is not None:
        return apply(session, row, change), False
    if change.name is None:
        raise InvalidRequestError(
            f"there is no scenario {change.id or ''!r} to change, and a new one needs a name",
            code="scenario_without_name",
            hint="Give it a name, or the id of one that exists",
        )
    now = datetime.now(UTC)
    row = ScenarioRow(
        id=change.id or new_id("scen"),
        environment_id=catalogue.environment_id(session, change.environment),
        name=change.name,
        tier=change.tier or 1,
        task_prompt=change.task_prompt or "",
        max_steps=change.max_steps or DEFAULT_STEPS,
        tags=change.tags or [],
        details=merged({}, change.details),
        source=change.source or "custom",
        version=1,
        created_at=now,
        updated_at=now,
    )
    _require_sound(session, row)
    session.add(row)
    session.flush()
    return row, True


def apply(session: Session, row: ScenarioRow, change: ScenarioChange) -> ScenarioRow:
    """Change what is said; a scenario that differs has the next version.

    Raises:
        ConfigurationError: as `upsert`.
    """
    before = _content(row)
    if change.environment is not None:
        row.environment_id = catalogue.environment_id(session, change.environment)
    catalogue.take(row, change, ("name", "tier", "task_prompt", "max_steps", "tags", "source"))
    row.details = merged(row.details, change.details)
    if change.environment is not None or _CHECKED & change.details.keys():
        _require_sound(session, row)
    if _content(row) != before:
        row.version += 1
        row.updated_at = datetime.now(UTC)
    session.flush()
    return row


def _require_sound(session: Session, row: ScenarioRow) -> None:
    """Refuse a scenario of which an evaluation would find that nothing is behind it."""
    available = row.details.get("available_tools")
    if isinstance(available, list):
        known_tools.require_of_scenario(
            session, row.environment_id, cast("list[object]", available), row.name
        )
    _require_basis(session, row)
    reference = row.details.get("success_criteria_ref")
    if isinstance(reference, str) and reference:
        try:
            verifiers.find(session, reference)
        except VerifierNotFound as error:
            raise ConfigurationError(
                f"scenario {row.name!r}: success_criteria_ref: there is no verifier {reference!r}",
                code="unknown_verifier",
                hint="Create that first, or leave it out",
            ) from error


def _require_basis(session: Session, row: ScenarioRow) -> None:
    context = row.details.get("context_injection")
    if not isinstance(context, dict) or library.BASED_ON not in context:
        return
    place = None if row.environment_id is None else session.get(EnvironmentRow, row.environment_id)
    world = None if place is None else world_of(place.latest.source)
    if place is not None and world is None:
        return  # what an environment of somebody's own makes of this word is its own affair
    based_on = cast("JsonObject", context)[library.BASED_ON]
    shipped = library.find(based_on) if isinstance(based_on, str) else None
    said = f"scenario {row.name!r}: context_injection.based_on"
    if shipped is None:
        near = difflib.get_close_matches(str(based_on)[:200], library.ids(), n=1)
        raise ConfigurationError(
            f"{said}: the library has no scenario {based_on!r}"[:500],
            code="unknown_scenario",
            hint=f"Did you mean {near[0]!r}?" if near else "rleaas scenario library lists them",
        )
    if world is not None and shipped.vertical != world.name:
        raise ConfigurationError(
            f"{said}: {based_on!r} is of {shipped.vertical}, and the environment of {world.name}",
            code="scenario_of_other_vertical",
            hint=f"Name one of {world.name}",
        )


def page(
    session: Session, *, environment_id: int | None, category: str | None, after: int, limit: int
) -> tuple[Sequence[ScenarioRow], str | None]:
    """Scenarios in the order in which they came; `category` is that of their environment."""
    conditions: list[ColumnElement[bool]] = []
    if environment_id is not None:
        conditions.append(ScenarioRow.environment_id == environment_id)
    if category:
        conditions.append(
            ScenarioRow.environment_id.in_(
                select(EnvironmentRow.id).where(
                    func.lower(EnvironmentRow.vertical) == category.lower()
                )
            )
        )
    return catalogue.page(session, ScenarioRow, conditions, after=after, limit=limit)


def clone(session: Session, source: EnvironmentRow, target: EnvironmentRow) -> list[ScenarioRow]:
    """Copy an environment's scenarios to another, with ids of their own."""
    rows, _ = page(session, environment_id=source.id, category=None, after=0, limit=0)
    now = datetime.now(UTC)
    made = [
        ScenarioRow(
            id=new_id("scen"),
            environment_id=target.id,
            name=row.name,
            tier=row.tier,
            task_prompt=row.task_prompt,
            max_steps=row.max_steps,
            tags=list(row.tags),
            details={**row.details, "cloned_from": row.id},
            source="cloned",
            version=1,
            created_at=now,
            updated_at=now,
        )
        for row in rows
    ]
    session.add_all(made)
    session.flush()
    return made


def _content(row: ScenarioRow) -> tuple[object, ...]:
    return (
        row.environment_id,
        row.name,
        row.tier,
        row.task_prompt,
        row.max_steps,
        row.tags,
        row.source,
        row.details,
    )
