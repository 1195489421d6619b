"""Routes about tools."""

from collections.abc import Sequence

from fastapi import APIRouter, Depends

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.catalogue_bodies import Cursor, PageSize
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.tool_bodies import PutTools, ToolFields
from rleaas.server.store import acting_tools, audit, catalogue, once, tools
from rleaas.server.store.tables import ToolRow, VersionRow

router = APIRouter(tags=["tools"], dependencies=[Depends(require_user)], responses=documented(401))

_COLUMNS = frozenset(
    {"id", "name", "type", "category", "description", "parameters", "environment", "environment_id"}
)


@router.get("/api/tools", responses=documented(404, 422))
def list_tools(
    caller: Caller,
    environment: str | None = None,
    environment_id: str | None = None,
    category: str | None = None,
    limit: PageSize = 0,
    cursor: Cursor = "",
) -> JsonObject:
    """Tools, oldest first; those of an environment with those that are for all.

    `category` is compared with the category and with the type, whatever the case.
    """
    with caller.read() as session:
        place = catalogue.environment_id(session, environment or environment_id)
        rows, following = tools.page(
            session, environment_id=place, category=category, after=int(cursor or 0), limit=limit
        )
        names = catalogue.environment_names(session, (row.environment_id for row in rows))
    shown = [render.tool(row, names) for row in rows]
    return {"tools": shown, "count": len(shown), "cursor": following}


@router.post("/api/tools", responses=documented(400, 404, 409, 422))
def put_tools(
    body: PutTools, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add tools, or change those with the same ids; a tool without an id is known by its name."""
    key = idempotency("tools", idempotency_key, body.model_dump(exclude_unset=True))
    place = next(
        (
            str(one)
            for one in (body.environment, body.environment_name, body.environment_id)
            if one not in (None, "")
        ),
        None,
    )
    changes = [change_of(fields, place) for fields in body.tools]
    for change in changes:
        acting_tools.require_permitted(change.details, caller.state.outbound)
    made: list[ToolRow] = []
    versions: list[VersionRow] = []
    created = 0
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        for change in changes:
            kept = acting_tools.keep(session, change, caller.state.keys)
            action = "tool.registered" if kept.is_new else "tool.updated"
            audit.record(session, caller, action=action, subject=f"tool:{kept.row.id}")
            made.append(kept.row)
            created += kept.is_new
            if kept.version is not None:
                versions.append(kept.version)
        names = catalogue.environment_names(session, (row.environment_id for row in made))
        reply: JsonObject = {
            "status": "ok",
            "created": created,
            "updated": len(made) - created,
            "tools": [render.tool(row, names) for row in made],
        }
        once.keep(session, key, made[0].id, reply)
    _serve(caller, versions[-1:])
    return reply


@router.get("/api/tools/{tool_id}", responses=documented(404, 409))
def get_tool(
    tool_id: str, caller: Caller, environment: str | None = None, environment_id: str | None = None
) -> JsonObject:
    """One tool, by its id or name."""
    with caller.read() as session:
        place = catalogue.environment_id(session, environment or environment_id)
        row = tools.find(session, tool_id, place)
        return render.tool(row, catalogue.environment_names(session, [row.environment_id]))


@router.put("/api/tools/{tool_id}", responses=documented(400, 404, 409, 422))
def update_tool(tool_id: str, body: ToolFields, caller: Caller) -> JsonObject:
    """Change the fields that are sent; the others stay."""
    said = change_of(body, None)
    acting_tools.require_permitted(said.details, caller.state.outbound)
    with caller.write() as session:
        found = tools.find(session, tool_id)
        kept = acting_tools.change(session, found, said, caller.state.keys)
        row = kept.row
        audit.record(
            session,
            caller,
            action="tool.updated",
            subject=f"tool:{row.id}",
            data={"fields": sorted(body.model_fields_set)},
        )
        names = catalogue.environment_names(session, [row.environment_id])
    _serve(caller, [kept.version])
    return {"status": "ok", **render.tool(row, names)}


@router.delete("/api/tools/{tool_id}", responses=documented(404, 409))
def delete_tool(tool_id: str, caller: Caller) -> JsonObject:
    """Delete a tool."""
    with caller.write() as session:
        row = tools.find(session, tool_id)
        version = acting_tools.delete(session, row)
        audit.record(session, caller, action="tool.deleted", subject=f"tool:{row.id}")
    _serve(caller, [version])
    return {"status": "deleted", "id": row.id}


def _serve(caller: Caller, versions: Sequence[VersionRow | None]) -> None:
    """Bring up the worlds that are others by now."""
    for version in versions:
        if version is not None:
            caller.state.envhost.start_soon(version.id)


def change_of(fields: ToolFields, place: str | None) -> tools.ToolChange:
    """What the fields say, of a tool in its own environment or else in this one."""
    own = fields.named_environment
    given = fields.model_dump(exclude_unset=True)
    return tools.ToolChange(
        id=fields.id,
        name=fields.name,
        type=fields.type,
        category=fields.category,
        description=fields.description,
        parameters=fields.parameters,
        environment=own if own is not None else place,
        details={key: value for key, value in given.items() if key not in _COLUMNS},
    )
