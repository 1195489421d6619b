"""Routes about the server itself."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import cast

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import PlainTextResponse
from rlcore import PermissionDeniedError, ServerFailure

from rleaas.server.access import Caller, State, require_reader
from rleaas.server.failures import documented
from rleaas.server.metrics import CONTENT_TYPE
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.store.tables import FIRST_ORGANISATION

router = APIRouter(tags=["platform"])

VERSION = version("rleaas")


@router.get("/api", dependencies=[Depends(require_reader)], responses=documented(401))
async def ping(request: Request) -> JsonObject:
    """Who answers here, and which routes it has."""
    app = request.app
    assert isinstance(app, FastAPI)
    paths = cast("Mapping[str, Mapping[str, object]]", app.openapi()["paths"])
    return {
        "status": "ok",
        "message": "RL Environment & Agent API",
        "version": VERSION,
        "endpoints": {
            path: [method.upper() for method in methods] for path, methods in paths.items()
        },
    }


@router.get("/healthz")
async def healthz() -> JsonObject:
    """Whether the process answers; needs no key."""
    return {"status": "ok", "version": VERSION}


@router.get("/readyz", responses=documented(503))
def readyz(state: State) -> JsonObject:
    """Whether requests can be served: the database answers and jobs are given out; needs no key."""
    checks = state.checks()
    broken = sorted(name for name, problem in checks.items() if problem is not None)
    if broken:
        raise ServerFailure(
            f"not ready: {', '.join(f'{name} ({checks[name]})' for name in broken)}",
            status_code=503,
            code="not_ready",
        )
    return {"status": "ready", "checks": dict.fromkeys(checks, "ok")}


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={**documented(401, 403), 200: {"content": {"text/plain": {}}}},
)
def metrics(caller: Caller) -> PlainTextResponse:
    """Figures for Prometheus, of all organisations; for keys of the one the server began with."""
    if caller.principal.organisation_id != FIRST_ORGANISATION:
        raise PermissionDeniedError("the figures of the server are for its operators")
    return PlainTextResponse(caller.state.metrics.text(), media_type=CONTENT_TYPE)


@router.get("/api/health")
async def health() -> JsonObject:
    """Whether the server is up; needs no key."""
    return {"status": "ok", "version": VERSION}
