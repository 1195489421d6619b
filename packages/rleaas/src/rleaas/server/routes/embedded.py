"""Tools, scenarios and verifiers that an environment is registered with.

They become rows of their own, which the routes about them know; what was said stays with the
environment too.
"""

from collections.abc import Sequence
from typing import TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.keys import ServerKeys
from rleaas.server.routes import scenarios as scenario_routes
from rleaas.server.routes import tools as tool_routes
from rleaas.server.routes import verifiers as verifier_routes
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.scenario_bodies import ScenarioFields
from rleaas.server.routes.tool_bodies import ToolFields
from rleaas.server.routes.verifier_bodies import VerifierFields
from rleaas.server.store import acting_tools, catalogue, scenarios, verifiers
from rleaas.server.store.tables import EnvironmentRow, ScenarioRow, VerifierRow

Fields = TypeVar("Fields", bound=BaseModel)
Given = Sequence[JsonObject | str] | None


def adopt(
    session: Session,
    environment: EnvironmentRow,
    *,
    given_tools: Given,
    given_scenarios: Given,
    given_verifiers: Given,
    keys: ServerKeys,
) -> list[str]:
    """Add or change what is embedded; a text names a tool or a scenario, or is a verifier's id.

    Returns:
        The ids of verifiers that do not exist, and so judge nothing.

    Raises:
        RequestValidationError: something embedded makes no sense.
    """
    place = str(environment.id)
    for given in given_tools or ():
        tool = _read(ToolFields, given, "tools", {"environment": place})
        acting_tools.keep(session, tool_routes.change_of(tool, place), keys)
    missing: list[str] = []
    for given in given_verifiers or ():
        row = _verifier(session, given, place)
        if row is None:
            missing.append(str(given))
        else:
            verifiers.attach(session, environment, row, _weight(session, environment, row))
    # Last, as a scenario names tools and its verifier.
    for given in given_scenarios or ():
        scenario = _read(ScenarioFields, _titled(given), "scenarios", {"environment": place})
        if scenario.id is None and scenario.name is not None:
            scenario.id = _scenario_named(session, environment, scenario.name)
        scenarios.upsert(session, scenario_routes.change_of(scenario, place))
    session.refresh(environment, ["tool_count", "scenario_count"])
    return missing


def _read(shape: type[Fields], given: JsonObject | str, field: str, fixed: JsonObject) -> Fields:
    whole = {"name": given} if isinstance(given, str) else given
    try:
        return shape.model_validate({**whole, **fixed})
    except ValidationError as error:
        told = [
            {**complaint, "loc": (field, *complaint["loc"])}
            for complaint in error.errors(include_url=False)
        ]
        raise RequestValidationError(told) from error


def _titled(given: JsonObject | str) -> JsonObject | str:
    if isinstance(given, str) or given.get("name"):
        return given
    title = given.get("title") or given.get("description")
    return {**given, "name": str(title)[:200]} if title else given


def _scenario_named(session: Session, environment: EnvironmentRow, name: str) -> str | None:
    return session.scalar(
        select(ScenarioRow.id)
        .where(ScenarioRow.environment_id == environment.id, ScenarioRow.name == name)
        .order_by(ScenarioRow.row_id)
        .limit(1)
    )


def _verifier(session: Session, given: JsonObject | str, place: str) -> VerifierRow | None:
    if isinstance(given, str):
        return catalogue.by_id(session, VerifierRow, given)
    fields = _read(VerifierFields, given, "verifiers", {"environment": place})
    row = None if fields.id is None else catalogue.by_id(session, VerifierRow, fields.id)
    change = verifier_routes.change_of(fields)
    if row is None:
        return verifiers.create(session, fields.id, change)
    return verifiers.apply(session, row, change)


def _weight(session: Session, environment: EnvironmentRow, row: VerifierRow) -> float:
    found = verifiers.attachment(session, environment, row)
    return 1.0 if found is None else found.weight
