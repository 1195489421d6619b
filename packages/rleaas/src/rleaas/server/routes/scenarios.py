"""Routes about scenarios, and the inherited ones that scenarios, suites and library share."""

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Body, Depends, Query
from pydantic import Discriminator, GetJsonSchemaHandler, Tag
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes import suites as suite_routes
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.catalogue_bodies import Cursor
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.scenario_bodies import (
    FromLibrary,
    ManyScenarios,
    ScenarioFields,
    SuiteFields,
    Tiers,
    Words,
)
from rleaas.server.rules import library
from rleaas.server.store import audit, catalogue, environments, once, scenarios, suites
from rleaas.server.store.tables import ScenarioRow, SuiteRow

router = APIRouter(
    tags=["scenarios"], dependencies=[Depends(require_user)], responses=documented(401)
)

_COLUMNS = frozenset(
    {
        "id",
        "name",
        "tier",
        "task_prompt",
        "max_steps",
        "tags",
        "source",
        "product",
        "environment",
        "environment_id",
    }
)


def _kind_of(given: object) -> str:
    if not isinstance(given, dict):
        return "scenario"
    fields = cast("JsonObject", given)
    if "library_id" in fields:
        return "library"
    if "scenario_ids" in fields or fields.get("type") == "suite":
        return "suite"
    return "many" if "scenarios" in fields else "scenario"


class _SeveralMayFit:
    """Describes the choice as it is: a body may fit several forms, and its fields decide."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        described = handler(core)
        described["anyOf"] = described.pop("oneOf")
        return described


Posted = Annotated[
    Annotated[FromLibrary, Tag("library")]
    | Annotated[SuiteFields, Tag("suite")]
    | Annotated[ManyScenarios, Tag("many")]
    | Annotated[ScenarioFields, Tag("scenario")],
    Discriminator(_kind_of),
    _SeveralMayFit(),
]


@router.get("/api/scenarios", responses=documented(404, 422))
def list_scenarios(
    caller: Caller,
    kind: Annotated[Literal["suite", "scenario"] | None, Query(alias="type")] = None,
    product: str | None = None,
    category: str | None = None,
    limit: Annotated[int | None, Query(ge=0, le=1000)] = None,
    cursor: Cursor = "",
    tier: Tiers = "",
    domain: str | None = None,
    tags: Words = "",
) -> JsonObject:
    """Scenarios, oldest first; with `type=suite` suites, and with a `limit` alone the library.

    `type=scenario` gives pages of scenarios; `product` is their environment. Of the library there
    are those of a vertical (`category`), of tiers (`1,2`), of a `domain`, and with all `tags`.
    """
    if kind == "suite":
        return suite_routes.listed(caller, "scenarios", product, None, limit or 0, cursor)
    if kind is None and limit is not None:
        return suite_routes.library_page(category, tier, domain, tags, limit, cursor)
    with caller.read() as session:
        rows, following = scenarios.page(
            session,
            environment_id=catalogue.environment_id(session, product),
            category=category,
            after=int(cursor or 0),
            limit=limit or 0,
        )
        names = catalogue.environment_names(session, (row.environment_id for row in rows))
    shown = [render.scenario(row, names) for row in rows]
    return {"scenarios": shown, "count": len(shown), "cursor": following}


@router.post("/api/scenarios", responses=documented(400, 404, 409, 422))
def put_scenarios(
    body: Annotated[Posted, Body()], caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add a scenario or change the one with its id; also several, a suite, or one of the library.

    A body with `library_id` copies from the library, one with `scenario_ids` or the id of a suite
    is about a suite, one with `scenarios` adds or changes several.
    """
    key = idempotency("scenarios", idempotency_key, body.model_dump(exclude_unset=True))
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        reply = _put(session, caller, body)
        once.keep(session, key, str(reply.get("id", "")), reply)
    return reply


@router.get("/api/scenarios/{scenario_id}", responses=documented(404))
def get_scenario(scenario_id: str, caller: Caller) -> JsonObject:
    """One scenario, of the organisation's or of the library."""
    with caller.read() as session:
        row = catalogue.by_id(session, ScenarioRow, scenario_id)
        shipped = library.find(scenario_id) if row is None else None
        if shipped is not None:
            return library.entry(shipped)
        return rendered(session, row or scenarios.find(session, scenario_id))


@router.patch("/api/scenarios/{scenario_id}", responses=documented(400, 404, 422))
def update_scenario(scenario_id: str, body: ScenarioFields, caller: Caller) -> JsonObject:
    """Change the fields that are sent; the others stay."""
    with caller.write() as session:
        scenarios.require_own(scenario_id)
        row = scenarios.apply(session, scenarios.find(session, scenario_id), change_of(body))
        _record(session, caller, row, "updated")
        return rendered(session, row)


@router.delete("/api/scenarios/{scenario_id}", responses=documented(404))
def delete_scenario(scenario_id: str, caller: Caller) -> JsonObject:
    """Delete a scenario and take it out of the suites that list it; also deletes a suite."""
    with caller.write() as session:
        suite = catalogue.by_id(session, SuiteRow, scenario_id)
        if suite is not None:
            return suite_routes.delete(session, caller, suite)
        suites.require_own(scenario_id)
        scenarios.require_own(scenario_id)
        row = scenarios.find(session, scenario_id)
        changed = suites.without(session, row.id)
        session.delete(row)
        _record(session, caller, row, "deleted")
    return {"status": "deleted", "id": row.id, "removed_from_suites": changed}


def make(session: Session, caller: CallerOf, body: ScenarioFields, place: str | None) -> JsonObject:
    """Add a scenario, or change the one with its id, in this environment."""
    row, is_new = scenarios.upsert(session, change_of(body, place))
    _record(session, caller, row, "created" if is_new else "updated")
    return rendered(session, row)


def rendered(session: Session, row: ScenarioRow) -> JsonObject:
    """The scenario with the name of its environment."""
    return render.scenario(row, catalogue.environment_names(session, [row.environment_id]))


def change_of(body: ScenarioFields, place: str | None = None) -> scenarios.ScenarioChange:
    """What the body says, of a scenario in its own environment or else in this one."""
    own = body.named_environment
    if own is None and body.product:
        own = body.product
    given = body.model_dump(exclude_unset=True)
    return scenarios.ScenarioChange(
        id=body.id,
        name=body.name,
        tier=body.tier,
        task_prompt=body.task_prompt,
        max_steps=body.max_steps,
        tags=body.tags,
        source=body.source,
        environment=own if own is not None else place,
        details={key: value for key, value in given.items() if key not in _COLUMNS},
    )


def _put(
    session: Session,
    caller: CallerOf,
    body: FromLibrary | SuiteFields | ManyScenarios | ScenarioFields,
) -> JsonObject:
    if isinstance(body, FromLibrary):
        return _copy(session, caller, body)
    if isinstance(body, ManyScenarios):
        return _put_many(session, caller, body)
    if isinstance(body, SuiteFields):
        return suite_routes.put(session, caller, body)
    if body.id is not None and (
        catalogue.by_id(session, SuiteRow, body.id) is not None or library.suite(body.id)
    ):
        fields = SuiteFields.model_validate(body.model_dump(exclude_unset=True))
        return suite_routes.put(session, caller, fields)
    return make(session, caller, body, None)


def _copy(session: Session, caller: CallerOf, body: FromLibrary) -> JsonObject:
    named = body.environment if body.environment not in (None, "") else body.environment_id
    place = None if named in (None, "") else environments.find(session, str(named))
    row = scenarios.copied(session, body.library_id, place)
    _record(session, caller, row, "created")
    return rendered(session, row)


def _put_many(session: Session, caller: CallerOf, body: ManyScenarios) -> JsonObject:
    created = 0
    made: list[ScenarioRow] = []
    for fields in body.scenarios:
        row, is_new = scenarios.upsert(session, change_of(fields, body.product))
        _record(session, caller, row, "created" if is_new else "updated")
        made.append(row)
        created += is_new
    return {
        "status": "ok",
        "created": created,
        "updated": len(made) - created,
        "ids": [row.id for row in made],
    }


def _record(session: Session, caller: CallerOf, row: ScenarioRow, what: str) -> None:
    audit.record(
        session,
        caller,
        action=f"scenario.{what}",
        subject=f"scenario:{row.id}",
        data={"version": row.version},
    )
