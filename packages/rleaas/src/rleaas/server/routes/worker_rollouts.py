"""Routes for workers: the episodes that were played, step by step."""

import re
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Header, Request
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError

from rleaas.server import rollout_files
from rleaas.server.access import Attempt, State, require_worker
from rleaas.server.artifacts.incoming import Received
from rleaas.server.domain_metrics import metrics_of
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules import governance as rules
from rleaas.server.rules import lifecycle
from rleaas.server.rules.worker_tokens import require_current
from rleaas.server.state import ServerState
from rleaas.server.store import governance, jobs

router = APIRouter(
    tags=["worker"], dependencies=[Depends(require_worker)], responses=documented(401)
)

Kind = Literal["training", "evaluation"]
Sha256 = Annotated[str, Header(alias="x-content-sha256", min_length=64, max_length=71)]
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


@router.put(
    "/api/worker/{kind}/{id}/rollouts/{name}",
    responses=documented(404, 409, 413, 422),
    openapi_extra={
        "requestBody": {
            "content": {"application/vnd.apache.parquet": {}, "application/octet-stream": {}},
            "required": True,
        }
    },
)
async def put_rollouts(
    kind: Kind,
    id: str,
    name: str,
    request: Request,
    state: State,
    attempt: Attempt,
    sha256: Sha256,
) -> JsonObject:
    """Store a file of episodes, which is the request's body, as Parquet.

    A file may have any of the job's episodes, each by its `index`; one that comes again replaces
    what was said of it before.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} cannot be a file's name", code="invalid_rollouts_name")
    asked = await run_in_threadpool(_asked, state, kind, id, attempt)
    what = f"the file {name!r} of rollouts"
    with state.artifacts.incoming(what, rollout_files.KIND) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        received = await run_in_threadpool(incoming.complete, sha256)
        return await run_in_threadpool(_keep, state, (kind, id, attempt), name, received, asked)


def _asked(
    state: ServerState, kind: Kind, job_id: str, attempt: int
) -> tuple[list[str], str | None]:
    with state.database.read() as session:
        job = jobs.find(session, kind, job_id)
        _require_running(job.id, job.status, job.attempts, attempt)
        config = governance.effective(session, job.organisation_id, job.version.environment_id)
        return rules.texts(config["pii_fields"]), job.version.source


def _keep(
    state: ServerState,
    job_of: tuple[Kind, str, int],
    name: str,
    received: Received,
    asked: tuple[list[str], str | None],
) -> JsonObject:
    (kind, job_id, attempt), (hidden, source) = job_of, asked
    with (
        rollout_files.looked_at(received, name, hidden, metrics_of(source)) as (kept, told),
        # The file first: an upload elsewhere would hold everybody up who wants to write.
        state.artifacts.keep(kept),
        state.database.write() as session,
    ):
        job = jobs.find(session, kind, job_id)
        # Asked again: the upload may have taken long, and another worker have the job by now.
        _require_running(job.id, job.status, job.attempts, attempt)
        count = rollout_files.index(session, job, kept.sha256, told)
        jobs.tell(session, job, "rollouts_stored", {"rollouts": count, "file": kept.sha256})
    return {"sha256": kept.sha256, "size_bytes": kept.size_bytes, "rollouts": count}


def _require_running(job_id: str, status: str, attempts: int, attempt: int) -> None:
    require_current(job_id, status, attempts, attempt)
    if status in lifecycle.TERMINAL:
        raise ConflictError(
            f"{job_id!r} is {status} already and takes no rollouts", code="job_finished"
        )
