"""Routes about training jobs."""

import base64
import binascii
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from datetime import datetime
from typing import Annotated, Literal

import anyio
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError
from sqlalchemy.orm import Session

from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, may_still, require_still, require_user
from rleaas.server.event_stream import STREAM, EventStream, message, messages, preamble
from rleaas.server.failures import documented
from rleaas.server.job_logs import LogPart
from rleaas.server.routes.bodies import JsonObject, StartTraining
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency, workable_version
from rleaas.server.rules import lifecycle
from rleaas.server.rules.queue import require_priority
from rleaas.server.rules.requests import require_trainable, training_config
from rleaas.server.store import attempts, jobs
from rleaas.server.store.jobs import IdempotencyKey
from rleaas.server.store.quotas import require_room_for_jobs
from rleaas.server.store.tables import FIRST_ORGANISATION, JobRow
from rleaas.server.training_requests import (
    job_request,
    judged_by,
    require_code_allowed,
    require_executor,
    require_trackers,
    with_reward_file,
)
from rleaas.training.config import TrainingConfig

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["training"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)

JobStatus = Literal["pending", "running", "completed", "failed", "cancelled", "awaiting_human_eval"]
Limit = Annotated[int, Query(ge=0, le=1000)]
# Enough for a worker between two steps; one that hangs is ended later, which no caller waits for.
CANCEL_PATIENCE = 1.0
_POLL_SECONDS = 0.1


@router.post("/train/{env}", responses=documented(400, 402, 404, 409, 422))
def start_training(
    env: str, body: StartTraining, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Queue a training job on an environment's newest version, or on `environment_version`.

    `model` names an agent: its latest checkpoint is where the training starts, unless
    `resume_from_checkpoint` names another one. The reply's `start` says which it was, its `seed`
    what the job is repeatable by, and its `warnings` what was asked for in two ways.
    """
    checked = _checked(body, caller)
    given: JsonObject = {"env": env, **body.model_dump(exclude_none=True)}
    key = idempotency("training", idempotency_key, given)
    judged = _judged(env, body, checked, caller, key)
    with caller.write() as session:
        earlier = jobs.made_before(session, jobs.TRAINING, key)
        if earlier is not None:
            return render.training_job(earlier)
        row = _queued(session, env, body, checked, judged, caller, key)
    caller.state.scheduler.wake()
    return render.training_job(row)


@router.post(
    "/train/{env}/check", dependencies=[Once], responses=documented(400, 402, 404, 409, 422)
)
def check_training(
    env: str,
    body: StartTraining,
    caller: Caller,
    beside: Annotated[int, Query(ge=0, le=10_000)] = 0,
) -> JsonObject:
    """Say what `POST /train/{env}` would queue, or why it would refuse to; nothing is queued.

    The reply's `seed` is null where one would be drawn. `beside` is how many jobs more are to be
    started with it: a quota that holds for them and not for it refuses it.
    """
    checked = _checked(body, caller)
    judged = _judged(env, body, checked, caller, None)
    with caller.write() as session:
        require_room_for_jobs(session, caller.principal.organisation_id, beside + 1)
        row = _queued(session, env, body, checked, judged, caller, None)
        told = render.training_check(row)
        session.rollback()
    return {**told, "seed": checked.effective_seed}


def _checked(body: StartTraining, caller: CallerOf) -> TrainingConfig:
    """The request's config, as far as that can be judged without looking anything up."""
    require_trainable(body.model_dump(exclude_none=True))
    require_priority(body.priority, is_operator=caller.principal.is_operator)
    checked = training_config(
        body.algorithm,
        body.num_episodes,
        body.max_steps,
        with_reward_file(body.config, caller.state.settings.reward_files),
        body.seed,
        body.verifier_config,
    )
    own = caller.principal.organisation_id == FIRST_ORGANISATION
    require_executor(checked, caller.state.executor.name)
    require_code_allowed(checked, allowed=own or caller.state.settings.allow_code)
    require_trackers(checked, here=caller.state.executor.name == "local")
    return checked


def _judged(
    env: str,
    body: StartTraining,
    checked: TrainingConfig,
    caller: CallerOf,
    key: IdempotencyKey | None,
) -> JsonObject:
    """What is judged by, read before anybody is kept from writing: conditions may be long."""
    with caller.read() as session:
        if jobs.made_before(session, jobs.TRAINING, key) is not None:
            return {}  # the job of then is the answer, whatever has become of its verifiers
        version = workable_version(session, env, body.environment_version)
        return judged_by(session, body, checked, version, caller.state.judging.checking)


def _queued(
    session: Session,
    env: str,
    body: StartTraining,
    checked: TrainingConfig,
    judged: JsonObject,
    caller: CallerOf,
    key: IdempotencyKey | None,
) -> JobRow:
    version = workable_version(session, env, body.environment_version)
    request = job_request(
        session, body, checked, version, dict(caller.principal.limits), judged=judged
    )
    return jobs.create(
        session,
        caller,
        jobs.TRAINING,
        version,
        request,
        name=body.run_name or None,
        priority=body.priority,
        idempotency=key,
    )


@router.get("/training/{job_id}", responses=documented(404))
@router.get("/api/training/jobs/{job_id}", responses=documented(404), include_in_schema=False)
def get_training_job(job_id: str, caller: Caller) -> JsonObject:
    """A job with its progress, results and checkpoints."""
    with caller.read() as session:
        told = render.training_job(jobs.find(session, jobs.TRAINING, job_id))
    if told["status"] == lifecycle.PENDING:
        told["queue_position"] = caller.state.scheduler.position(job_id)
    return told


@router.get("/api/training/jobs", responses=documented(422))
def list_training_jobs(
    caller: Caller, status: JobStatus | None = None, limit: Limit = 0, cursor: str = ""
) -> JsonObject:
    """Jobs, newest first; all of them, or a page."""
    shown, following = page_of_jobs(caller, jobs.TRAINING, status, limit, cursor)
    return {
        "jobs": [render.training_job(row) for row in shown],
        "count": len(shown),
        "cursor": following,
    }


@router.post(
    "/api/training/jobs/{job_id}/cancel", dependencies=[Once], responses=documented(404, 409)
)
def cancel_training_job(job_id: str, caller: Caller) -> JsonObject:
    """Cancel a job; the reply says how far that has come when it is sent."""
    return render.training_job(cancel(caller, jobs.TRAINING, job_id))


@router.get("/api/training/jobs/{job_id}/metrics", responses=documented(404, 422))
def get_metrics(
    job_id: str,
    caller: Caller,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
) -> JsonObject:
    """Points of the job's curves, oldest first; `cursor` is the next call's `after`.

    What a worker measured after the checkpoint from which the next one goes on is left out: that
    part is done again. Points of later attempts say which `attempt` measured them.
    """
    with caller.read() as session:
        row = jobs.find(session, jobs.TRAINING, job_id)
        points = attempts.points(session, row, "metric", after=after, limit=limit)
    return {
        "metrics": [one for one in map(render.metric, points) if one.get("episode") is not None],
        "cursor": points[-1].id if points else after,
    }


@router.get("/api/training/jobs/{job_id}/logs", responses=documented(404, 422))
@router.get("/api/training/runs/{job_id}/logs", include_in_schema=False)
@router.get("/training/{job_id}/logs", include_in_schema=False)
def get_logs(
    job_id: str,
    caller: Caller,
    limit: Annotated[int | None, Query(ge=0, le=10**9)] = None,
) -> list[str]:
    """The whole log, oldest line first, or its last `limit` lines."""
    with caller.read() as session:
        jobs.find(session, jobs.TRAINING, job_id)
    return caller.state.logs.tail(job_id, limit)


@router.get(
    "/api/training/jobs/{job_id}/log-page",
    responses={
        **documented(404, 422, 429),
        200: {"content": {STREAM: {"schema": {"type": "string"}}}},
    },
    response_model=None,
)
async def get_log_page(
    request: Request,
    job_id: str,
    caller: Caller,
    cursor: Annotated[int, Query(ge=0, le=2**62)] = 0,
    wait_seconds: Annotated[float, Query(ge=0, le=25)] = 0,
    seconds: Annotated[
        float | None, Query(ge=0, le=10**9, description="How long a stream goes on at most")
    ] = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", pattern="^[0-9]{1,18}$")
    ] = None,
) -> JsonObject | EventStream:
    """Lines after `cursor`: as server-sent events for whoever accepts those, else as JSON.

    JSON waits for the first lines that come within `wait_seconds`, when there are none yet. Each
    message of the stream is what JSON answers; the last one is `done`.
    """
    cursor = cursor if last_event_id is None else int(last_event_id)
    if STREAM in accept:
        await run_in_threadpool(_log_after, caller, job_id, cursor)
        place = ExitStack()
        place.enter_context(caller.state.feed.place(caller.principal.organisation_id))
        return EventStream(place, _log_stream(request, caller, job_id, cursor, seconds))
    with anyio.move_on_after(wait_seconds):
        while True:
            part, finished = await run_in_threadpool(_log_after, caller, job_id, cursor)
            await require_still(request, caller)
            if part.lines or finished or caller.state.draining:
                return _log_page(part, finished)
            await anyio.sleep(_POLL_SECONDS)
    part, finished = await run_in_threadpool(_log_after, caller, job_id, cursor)
    return _log_page(part, finished)


async def _log_stream(
    request: Request, caller: CallerOf, job_id: str, cursor: int, seconds: float | None
) -> AsyncIterator[str]:
    yield preamble(cursor)
    done = False

    async def following() -> str:
        nonlocal cursor, done
        part, finished = await run_in_threadpool(_log_after, caller, job_id, cursor)
        told = _log_page(part, finished)
        cursor, done = part.cursor, bool(told["done"])
        return message(cursor, json.dumps(told)) if part.lines or done else ""

    async def rest(most: float) -> None:
        # A worker writes to the file itself; nothing else would tell of new lines.
        await anyio.sleep(min(most, _POLL_SECONDS))

    async for text in messages(
        request,
        caller.state.feed,
        following,
        rest,
        allowed=lambda: may_still(request, caller),
        over=lambda: done,
        glance=_POLL_SECONDS,
        seconds=seconds,
    ):
        yield text


@router.get("/api/training/jobs/{job_id}/checkpoints", responses=documented(404))
def list_checkpoints(job_id: str, caller: Caller) -> JsonObject:
    """The job's checkpoints with their cards, in the order of training."""
    with caller.read() as session:
        row = jobs.find(session, jobs.TRAINING, job_id)
        return {"checkpoints": [render.card(item) for item in row.checkpoints]}


def cancel(caller: CallerOf, kind: str, job_id: str) -> JobRow:
    """Ask a job to end, and give its worker a moment to do so.

    Raises:
        ConflictError: it has ended otherwise already.
    """
    with caller.write() as session:
        row = jobs.find(session, kind, job_id)
        if row.status == lifecycle.CANCELLED:
            return row
        if row.status in lifecycle.TERMINAL:
            raise ConflictError(
                f"{job_id!r} is {row.status} already and cannot be cancelled", code="job_finished"
            )
        jobs.request_cancel(session, caller, row)
    caller.state.scheduler.wake()
    return caller.state.scheduler.wait_finished(kind, job_id, CANCEL_PATIENCE)


def page_of_jobs(
    caller: CallerOf, kind: str, status: str | None, limit: int, cursor: str
) -> tuple[list[JobRow], str | None]:
    """A page of jobs and the cursor of the next one; `limit` 0 is no limit.

    Raises:
        ConfigurationError: the cursor is not one of ours.
    """
    before = _read_cursor(cursor) if cursor else None
    with caller.read() as session:
        rows = jobs.page(
            session, kind, status=status, before=before, limit=limit + 1 if limit else None
        )
    shown = list(rows[:limit] if limit else rows)
    return shown, _write_cursor(shown[-1]) if len(rows) > len(shown) else None


def _write_cursor(row: JobRow) -> str:
    return base64.urlsafe_b64encode(f"{row.created_at.isoformat()} {row.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        at, job_id = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        moment = datetime.fromisoformat(at)
    except (ValueError, binascii.Error) as error:
        raise ConfigurationError(
            f"{cursor[:50]!r} is not a cursor of this list",
            code="invalid_cursor",
            hint="Use the `cursor` of the page before, as it is",
        ) from error
    if moment.tzinfo is None:
        raise ConfigurationError("the cursor has no time zone", code="invalid_cursor")
    return moment, job_id


def _log_after(caller: CallerOf, job_id: str, cursor: int) -> tuple[LogPart, bool]:
    with caller.read() as session:
        finished = jobs.find(session, jobs.TRAINING, job_id).status in lifecycle.TERMINAL
    # Read after the status: what was written before the end is then certainly there.
    part = caller.state.logs.after(job_id, cursor, finished=finished)
    return part, finished


def _log_page(part: LogPart, finished: bool) -> JsonObject:
    done = finished and not part.lines
    return {"lines": part.lines, "cursor": str(part.cursor), "done": done}
