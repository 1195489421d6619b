"""The files that have the steps of rollouts, for those who read Parquet themselves."""

import re
from contextlib import ExitStack
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse
from rlcore import NotFoundError
from starlette.background import BackgroundTask

from rleaas.server.access import Reader, require_reader
from rleaas.server.failures import documented
from rleaas.server.render_rollouts import rollout, with_steps
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.store import jobs, rollouts

router = APIRouter(
    tags=["rollouts"], dependencies=[Depends(require_reader)], responses=documented(401)
)

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
Limit = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**62)]
PARQUET: Final = "application/vnd.apache.parquet"


@router.get(
    "/api/rollout-files/{sha256}",
    responses={
        200: {"content": {PARQUET: {}}, "description": "The file"},
        **documented(404),
    },
    response_class=FileResponse,
)
def get_rollout_file(sha256: str, caller: Reader) -> FileResponse:
    """A file of rollouts as Parquet; it was checked before it is sent."""
    with caller.read() as session:
        if not _DIGEST.fullmatch(sha256) or not rollouts.has_file(session, sha256):
            raise NotFoundError(kind="rollout file", ref=sha256, code="rollout_file_not_found")
    kept = ExitStack()
    path = kept.enter_context(caller.state.rollout_files.fetched(sha256))
    return FileResponse(
        path,
        media_type=PARQUET,
        filename=f"{sha256[:16]}.parquet",
        headers={"x-content-sha256": sha256},
        background=BackgroundTask(kept.close),
    )


@router.get("/api/evaluations/{evaluation_id}/rollouts", responses=documented(404, 422))
def list_rollouts_of_evaluation(
    evaluation_id: str,
    caller: Reader,
    limit: Limit = 100,
    offset: Offset = 0,
    steps: bool = False,
) -> JsonObject:
    """A page of an evaluation's rollouts in the order of its episodes, with their steps if asked.

    `files` are the digests of the files that have them all.
    """
    with caller.read() as session:
        job = jobs.find(session, jobs.EVALUATION, evaluation_id)
        rows, total = rollouts.of_job(session, job.id, limit=limit, offset=offset)
        names = rollouts.names(session, rows)
        files = rollouts.files_of(session, job.id)
    told = [rollout(row, names.get(row.environment_id or 0), whole=steps) for row in rows]
    if steps:
        played = caller.state.rollout_files.of_rows(rows)
        told = [
            one if record is None else {**one, **with_steps(record)}
            for one, record in zip(told, played, strict=True)
        ]
    return {"rollouts": told, "total": total, "offset": offset, "files": files}
