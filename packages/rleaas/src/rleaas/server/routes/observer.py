"""Routes of the observability agent: its tools, a call of one, and how things are."""

from fastapi import APIRouter, Depends
from pydantic import Field

from rleaas.server import observer
from rleaas.server.access import Asker, require_reading
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import Body, JsonObject
from rleaas.server.routes.repeats import Once, RepeatableRoute

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["observability"],
    dependencies=[Depends(require_reading)],
    responses=documented(401),
)


class InvokeTool(Body):
    """A tool, and what to ask it."""

    tool: str = Field(min_length=1, max_length=100)
    params: JsonObject = Field(default_factory=dict[str, object])


@router.get("/api/agent/tools")
def list_agent_tools(caller: Asker) -> JsonObject:
    """What the agent can be asked."""
    return {"tools": observer.described()}


@router.post("/api/agent/invoke", dependencies=[Once], responses=documented(400, 404, 422))
def invoke_agent_tool(body: InvokeTool, caller: Asker) -> JsonObject:
    """Ask the agent; every tool only reads."""
    with caller.read() as session:
        return {"tool": body.tool, "result": observer.invoke(session, body.tool, body.params)}


@router.get("/api/agent/health")
def get_agent_health(caller: Asker) -> JsonObject:
    """How things are."""
    with caller.read() as session:
        return observer.health(session)
