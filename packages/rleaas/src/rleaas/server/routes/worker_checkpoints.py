"""Routes for workers: the files that a training leaves behind."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError

from rleaas.server import render
from rleaas.server.access import Attempt, State, require_worker
from rleaas.server.artifacts.incoming import Received
from rleaas.server.artifacts.uploads import require_policy, require_state
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules import lifecycle
from rleaas.server.rules.cards import metrics_of
from rleaas.server.rules.report_facts import LARGEST_NUMBER
from rleaas.server.rules.worker_tokens import require_current
from rleaas.server.state import ServerState
from rleaas.server.store import jobs
from rleaas.server.store.kept_checkpoints import prune
from rleaas.server.store.tables import CheckpointRow, JobRow

router = APIRouter(
    tags=["worker"], dependencies=[Depends(require_worker)], responses=documented(401)
)

_CHECKPOINT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_BODY: Final[JsonObject] = {
    "requestBody": {"content": {"application/octet-stream": {}}, "required": True}
}
_ONE_LINE: Final = r"^[^\x00-\x1f\x7f]*$"
_MEASURED: Final = Query(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)
_SHA256: Final = r"(sha256:)?[0-9a-fA-F]{64}"
Training = Literal["training"]  # the dependency that checks the token reads it
Sha256 = Annotated[str, Header(alias="x-content-sha256", min_length=64, max_length=71)]


@router.put(
    "/api/worker/{kind}/{id}/checkpoints/{checkpoint_id}/state",
    responses=documented(404, 409, 413, 422),
    openapi_extra=_BODY,
)
async def put_state(
    kind: Training,
    id: str,
    checkpoint_id: str,
    request: Request,
    state: State,
    attempt: Attempt,
    sha256: Sha256,
) -> JsonObject:
    """Store what an exact resume needs, before the checkpoint that names it as `state_sha256`.

    A body that is no state file is refused with 422.
    The request's body stays for an hour; only the checkpoint makes it stay for longer.
    """
    await run_in_threadpool(_require_own, state, id, checkpoint_id, attempt)
    what = f"the state of {checkpoint_id!r}"
    async with _received(request, state, what, sha256) as received:
        await run_in_threadpool(require_state, received.path, what)
        await run_in_threadpool(_keep_state, state, received)
    return {"sha256": received.sha256, "size_bytes": received.size_bytes}


@router.put(
    "/api/worker/{kind}/{id}/checkpoints/{checkpoint_id}",
    responses=documented(404, 409, 413, 422),
    openapi_extra=_BODY,
)
async def put_checkpoint(
    kind: Training,
    id: str,
    checkpoint_id: str,
    request: Request,
    state: State,
    attempt: Attempt,
    sha256: Sha256,
    episode: Annotated[int, Query(ge=0, le=10**9)],
    timestep: Annotated[int | None, Query(ge=0, le=10**15)] = None,
    avg_reward: Annotated[float | None, _MEASURED] = None,
    success_rate: Annotated[float | None, Query(ge=0, le=1)] = None,
    composite_verifier_score: Annotated[float | None, _MEASURED] = None,
    label: Annotated[str | None, Query(max_length=200, pattern=_ONE_LINE)] = None,
    state_sha256: Annotated[str | None, Query(pattern=_SHA256)] = None,
) -> JsonObject:
    """Store a checkpoint's file, which is the request's body, and what is known about it.

    A body that is no policy file, or one of another algorithm than the job's, is refused with 422.
    """
    job = await run_in_threadpool(_require_own, state, id, checkpoint_id, attempt)
    what = f"checkpoint {checkpoint_id!r}"
    async with _received(request, state, what, sha256) as received:
        manifest = await run_in_threadpool(
            require_policy, received.path, job.request.get("algorithm"), what
        )
        facts = CheckpointRow(
            id=checkpoint_id,
            job_id=id,
            episode=episode,
            timestep=timestep,
            avg_reward=avg_reward,
            success_rate=success_rate,
            label=label,
            sha256=received.sha256,
            size_bytes=received.size_bytes,
            state_sha256=_plain(state_sha256),
            manifest=manifest,
            metrics=metrics_of(
                manifest,
                avg_reward=avg_reward,
                success_rate=success_rate,
                composite_verifier_score=composite_verifier_score,
            ),
            created_at=datetime.now(UTC),
        )
        return await run_in_threadpool(_record, state, facts, received, attempt)


@asynccontextmanager
async def _received(
    request: Request, state: ServerState, what: str, sha256: str
) -> AsyncGenerator[Received]:
    with state.artifacts.incoming(what) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        yield await run_in_threadpool(incoming.complete, sha256)


def _require_own(state: ServerState, job_id: str, checkpoint_id: str, attempt: int) -> JobRow:
    if not _CHECKPOINT_ID.fullmatch(checkpoint_id):
        raise ConfigurationError(
            f"{checkpoint_id!r} cannot be a checkpoint id", code="invalid_checkpoint_id"
        )
    with state.database.read() as session:
        job = jobs.find(session, jobs.TRAINING, job_id)
        _require_running(job, attempt)
        existing = session.get(CheckpointRow, checkpoint_id)
    if existing is not None and existing.job_id != job_id:
        raise ConflictError(
            f"checkpoint {checkpoint_id!r} belongs to {existing.job_id!r}",
            code="checkpoint_id_taken",
            hint="Put the job's id into the checkpoint's",
        )
    return job


def _require_running(job: JobRow, attempt: int) -> None:
    require_current(job.id, job.status, job.attempts, attempt)
    if job.status in lifecycle.TERMINAL:
        raise ConflictError(
            f"{job.id!r} is {job.status} already and takes no checkpoint", code="job_finished"
        )


def _keep_state(state: ServerState, received: Received) -> None:
    with state.artifacts.keep(received):
        pass  # its row comes with the checkpoint; until then its age protects it


def _record(
    state: ServerState, facts: CheckpointRow, received: Received, attempt: int
) -> JsonObject:
    # The file first: an upload elsewhere would hold everybody up who wants to write.
    with state.artifacts.keep(received), state.database.write() as session:
        job = jobs.find(session, jobs.TRAINING, facts.job_id)
        # Asked again: the upload may have taken long, and another worker have the job by now.
        require_current(job.id, job.status, job.attempts, attempt)
        facts.organisation_id = job.organisation_id
        facts.state_bytes = _size_of_state(state, facts)
        before = session.get(CheckpointRow, facts.id)
        is_news = before is None or before.sha256 != facts.sha256
        session.merge(facts)
        if is_news:  # else its worker has not heard that it was taken, and sent it again
            jobs.tell(
                session,
                job,
                "checkpoint_saved",
                {"checkpoint_id": facts.id, "episode": facts.episode, "sha256": facts.sha256},
            )
        session.flush()
        reply = render.checkpoint(jobs.find_checkpoint(session, facts.id))
        surplus = prune(session, job)
    state.artifact_round.discard(surplus)
    return reply


def _size_of_state(state: ServerState, facts: CheckpointRow) -> int | None:
    if facts.state_sha256 is None:
        return None
    size = state.artifacts.size(facts.state_sha256)
    if size is None:
        raise ConflictError(
            f"the state {facts.state_sha256} of checkpoint {facts.id!r} is not there",
            code="state_missing",
            hint="Send the state again, then the checkpoint",
        )
    return size


def _plain(sha256: str | None) -> str | None:
    return None if sha256 is None else sha256.lower().removeprefix("sha256:")
