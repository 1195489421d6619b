"""Routes about agents and their versions."""

from typing import Annotated

from fastapi import APIRouter, Depends
from rlcore import NotFoundError
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.agent_bodies import AgentFields, RollBack, agent_fields
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules.catalogue import version_number
from rleaas.server.store import agents, audit, once
from rleaas.server.store.tables import AgentRow

router = APIRouter(tags=["agents"], dependencies=[Depends(require_user)], responses=documented(401))

_COLUMNS = frozenset(
    {
        "id",
        "name",
        "base_model",
        "model_ref",
        "framework",
        "trainable",
        "compatible_categories",
        "tool_permissions",
        "environment",
        "environment_id",
    }
)
_SCHEMA = AgentFields.model_json_schema()
_EITHER = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _SCHEMA},
            "application/x-www-form-urlencoded": {"schema": _SCHEMA},
        },
    }
}


@router.post("/api/agents", responses=documented(400, 409, 422), openapi_extra=_EITHER)
def register_agent(
    body: Annotated[AgentFields, Depends(agent_fields)],
    caller: Caller,
    idempotency_key: IdempotencyHeader = None,
) -> JsonObject:
    """Register an agent, or change the one with this id; a form will do as well as JSON."""
    key = idempotency("agents", idempotency_key, body.model_dump(exclude_unset=True))
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row, is_new = agents.upsert(session, body.id, _change(body))
        record(session, caller, row, "registered" if is_new else "configured")
        reply = render.agent(row)
        once.keep(session, key, row.id, reply)
    return reply


@router.get("/api/agents")
def list_agents(caller: Caller) -> list[JsonObject]:
    """All agents, oldest first."""
    with caller.read() as session:
        rows, _ = agents.page(session, after=0, limit=0)
    return [render.agent(row) for row in rows]


@router.get("/api/agents/{agent_id}", responses=documented(404))
def get_agent(agent_id: str, caller: Caller) -> JsonObject:
    """One agent."""
    with caller.read() as session:
        return render.agent(agents.find(session, agent_id))


@router.delete("/api/agents/{agent_id}", responses=documented(404))
def delete_agent(agent_id: str, caller: Caller) -> JsonObject:
    """Delete an agent with its versions and records; the evaluations of its dry runs stay."""
    with caller.write() as session:
        row = agents.find(session, agent_id)
        session.delete(row)
        record(session, caller, row, "deleted")
    return {"deleted": True, "agent_id": row.id}


@router.put("/api/agents/{agent_id}/configure", responses=documented(400, 404, 422))
def configure_agent(agent_id: str, body: AgentFields, caller: Caller) -> JsonObject:
    """Change the fields that are sent; an agent that differs has a new version."""
    with caller.write() as session:
        row = agents.configure(session, agents.find(session, agent_id), _change(body))
        record(session, caller, row, "configured")
        return render.agent(row)


@router.get("/api/agents/{agent_id}/versions", responses=documented(404))
def list_versions(agent_id: str, caller: Caller) -> list[JsonObject]:
    """What an agent was configured as, oldest first."""
    with caller.read() as session:
        row = agents.find(session, agent_id)
        return [render.agent_version(one, row.version) for one in agents.versions(session, row)]


@router.post("/api/agents/{agent_id}/rollback", responses=documented(400, 404, 409, 422))
def roll_back_agent(
    agent_id: str, body: RollBack, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Configure an agent as it was at a version; that is a new version, the history stays."""
    asked: JsonObject = {"agent_id": agent_id, "version": str(body.version)}
    key = idempotency("agents.rollback", idempotency_key, asked)
    number = version_number(str(body.version))
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = agents.find(session, agent_id)
        if number is None:
            raise NotFoundError(
                kind="agent_version",
                ref=str(body.version),
                code="agent_version_not_found",
                hint=f"Versions are written v1 to v{row.version}",
            )
        agents.roll_back(session, row, number)
        record(session, caller, row, "rolled_back", {"to": f"v{number}"})
        reply: JsonObject = {**render.agent(row), "rolled_back_to": f"v{number}"}
        once.keep(session, key, row.id, reply)
    return reply


def record(
    session: Session, caller: CallerOf, row: AgentRow, what: str, data: JsonObject | None = None
) -> None:
    """Audit what was done with the agent."""
    audit.record(
        session,
        caller,
        action=f"agent.{what}",
        subject=f"agent:{row.id}",
        agent_id=row.id,
        data={"version": row.version, **(data or {})},
    )


def _change(body: AgentFields) -> agents.AgentChange:
    given = body.model_dump(exclude_unset=True)
    return agents.AgentChange(
        name=body.name,
        base_model=body.base_model,
        model_ref=body.model_ref,
        framework=body.framework,
        trainable=body.trainable,
        compatible_categories=body.compatible_categories,
        tool_permissions=body.tool_permissions,
        details={key: value for key, value in given.items() if key not in _COLUMNS},
    )
