"""Routes about checkpoints: what is known of one, and its file."""

from fastapi import APIRouter, Depends
from fastapi.responses import FileResponse
from rlcore import ServerFailure

from rleaas.server import render
from rleaas.server.access import Reader, require_reader
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.store import jobs

router = APIRouter(
    tags=["checkpoints"], dependencies=[Depends(require_reader)], responses=documented(401)
)

DIGEST = "x-content-sha256"


@router.get("/api/checkpoints/{checkpoint_id}", responses=documented(404))
def get_checkpoint(checkpoint_id: str, caller: Reader) -> JsonObject:
    """A checkpoint; `ckpt_<job>_final` is the last one of a job."""
    with caller.read() as session:
        return render.checkpoint(jobs.find_checkpoint(session, checkpoint_id))


@router.get(
    "/api/checkpoints/{checkpoint_id}/file",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/zip": {}}, "description": "The file"},
        **documented(404),
    },
)
def get_checkpoint_file(checkpoint_id: str, caller: Reader) -> FileResponse:
    """The checkpoint's file, with its SHA-256 in a header."""
    with caller.read() as session:
        row = jobs.find_checkpoint(session, checkpoint_id)
    path = caller.state.files.path(row.job_id, row.id)
    if not path.is_file():
        raise ServerFailure(
            f"the file of checkpoint {row.id!r} is gone from the server's data directory",
            code="checkpoint_file_missing",
            retryable=False,
        )
    return FileResponse(
        path,
        media_type="application/zip",
        filename=f"{row.id}.zip",
        headers={DIGEST: row.sha256},
    )
