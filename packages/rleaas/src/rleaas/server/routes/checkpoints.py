"""Routes about checkpoints: what is known of one, and its files."""

from contextlib import ExitStack

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse
from rlcore import NotFoundError
from starlette.background import BackgroundTask

from rleaas.server import render
from rleaas.server.access import CallerOf, Reader, require_reader
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.store import jobs

router = APIRouter(
    tags=["checkpoints"], dependencies=[Depends(require_reader)], responses=documented(401)
)

DIGEST = "x-content-sha256"


@router.get("/api/checkpoints/{checkpoint_id}", responses=documented(404))
def get_checkpoint(checkpoint_id: str, caller: Reader) -> JsonObject:
    """A checkpoint with its card; `ckpt_<job>_final` is the last one of a job."""
    with caller.read() as session:
        return render.card(jobs.find_checkpoint(session, checkpoint_id))


@router.get(
    "/api/checkpoints/{checkpoint_id}/file",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/zip": {}}, "description": "The file"},
        **documented(404),
    },
)
def get_checkpoint_file(checkpoint_id: str, caller: Reader) -> FileResponse:
    """The checkpoint's file, with its SHA-256 in a header; it was checked before it is sent."""
    with caller.read() as session:
        row = jobs.find_checkpoint(session, checkpoint_id)
    return _file(caller, row.id, row.sha256, f"{row.id}.zip")


@router.get(
    "/api/checkpoints/{checkpoint_id}/state",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/zip": {}}, "description": "The file"},
        **documented(404),
    },
)
def get_checkpoint_state(checkpoint_id: str, caller: Reader) -> FileResponse:
    """What an exact resume needs beside the policy: optimiser, replay buffer, random states."""
    with caller.read() as session:
        row = jobs.find_checkpoint(session, checkpoint_id)
    if row.state_sha256 is None:
        raise NotFoundError(
            kind="state",
            ref=row.id,
            code="checkpoint_state_not_found",
            hint="It was saved without one, or retention removed it; its policy is still there",
        )
    return _file(caller, row.id, row.state_sha256, f"{row.id}-state.zip")


def _file(caller: CallerOf, checkpoint_id: str, sha256: str, name: str) -> FileResponse:
    kept = ExitStack()
    path = kept.enter_context(caller.state.artifacts.fetched(sha256, checkpoint_id))
    return FileResponse(
        path,
        media_type="application/zip",
        filename=name,
        headers={DIGEST: sha256},
        background=BackgroundTask(kept.close),
    )
