"""Routes about the server itself."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import cast

from fastapi import APIRouter, Depends, FastAPI, Request

from rleaas.server.access import require_reader
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject

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
        "message": "rleaas control plane",
        "version": VERSION,
        "endpoints": {
            path: [method.upper() for method in methods] for path, methods in paths.items()
        },
    }


@router.get("/api/health")
async def health() -> JsonObject:
    """Whether the server is up; needs no key."""
    return {"status": "ok", "version": VERSION}
