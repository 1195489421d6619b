"""Routes for workers: what to do, how it is going, what it made."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError
from sqlalchemy.orm import Session

from rleaas.server import alerts, outcomes, render
from rleaas.server.access import State, require_worker
from rleaas.server.checkpoint_files import CHECKPOINT_ID, IncomingFile
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject, Report, Reports
from rleaas.server.rules import governance as rules
from rleaas.server.rules import lifecycle
from rleaas.server.rules.json_values import integer, items
from rleaas.server.state import ServerState
from rleaas.server.store import governance, jobs
from rleaas.server.store.tables import CheckpointRow, JobRow

router = APIRouter(
    tags=["worker"], dependencies=[Depends(require_worker)], responses=documented(401)
)

Kind = Literal["training", "evaluation"]
_NO_EVENTS = frozenset({"log", "heartbeat"})  # one has a file, the other a column


@router.get("/api/worker/{kind}/{id}/assignment", responses=documented(404, 409, 422, 503))
async def get_assignment(kind: Kind, id: str, state: State) -> JsonObject:
    """Everything that a worker needs to know about its job."""
    version_id = await run_in_threadpool(_version_id, state, kind, id)
    await state.envhost.ensure(version_id)  # the identity of what the job works on is known now
    return await run_in_threadpool(_assignment, state, kind, id)


def _version_id(state: ServerState, kind: Kind, id: str) -> int:
    with state.database.read() as session:
        return jobs.find(session, kind, id).version_id


def _assignment(state: ServerState, kind: Kind, id: str) -> JsonObject:
    with state.database.read() as session:
        row = jobs.find(session, kind, id)
        common: JsonObject = {
            "kind": kind,
            "id": id,
            "name": row.name,
            "environment": render.identity(row.version),
            "environment_uri": render.uri(row.version),
            "environment_name": row.version.environment.name,
            "environment_version": row.version.version,
            "contract_digest": row.version.contract_digest,
            "cancel_requested": row.cancel_requested_at is not None,
            **row.request,
        }
        if kind == jobs.TRAINING:
            resume = row.request.get("resume_from_checkpoint")
            common["job_id"] = id
            common["run_name"] = row.name
            common["resume"] = _checkpoint(session, resume) if resume else None
        else:
            common["evaluation_id"] = id
            common["checkpoint"] = _checkpoint(session, row.request["checkpoint_id"])
    return common


@router.post("/api/worker/{kind}/{id}/reports", responses=documented(400, 404, 422))
def post_reports(kind: Kind, id: str, body: Reports, state: State) -> JsonObject:
    """Take reports in; the reply tells the worker whether it should end."""
    with state.database.write() as session:
        row = jobs.find(session, kind, id)
        row.last_seen_at = datetime.now(UTC)
        fresh = body.seq > row.last_seq and row.status not in lifecycle.TERMINAL
        if fresh:
            row.last_seq = body.seq
            _apply(session, row, body.reports)
        stop = row.cancel_requested_at is not None or row.status in lifecycle.TERMINAL
        finished = row.status in lifecycle.TERMINAL
    if fresh:
        lines = [line for report in body.reports if report.type == "log" for line in _lines(report)]
        state.logs.append(id, lines)
    if finished:
        state.scheduler.wake()
    return {"cancel_requested": stop, "accepted": fresh}


@router.put(
    "/api/worker/{kind}/{id}/checkpoints/{checkpoint_id}",
    responses=documented(404, 409, 413, 422),
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {}}, "required": True}},
)
async def put_checkpoint(
    kind: Literal["training"],  # the dependency that checks the token reads it
    id: str,
    checkpoint_id: str,
    request: Request,
    state: State,
    sha256: Annotated[str, Header(alias="x-content-sha256", min_length=64, max_length=71)],
    episode: Annotated[int, Query(ge=0, le=10**9)],
    timestep: Annotated[int | None, Query(ge=0, le=10**15)] = None,
    avg_reward: Annotated[float | None, Query(allow_inf_nan=False)] = None,
    success_rate: Annotated[float | None, Query(ge=0, le=1)] = None,
    label: Annotated[str | None, Query(max_length=200)] = None,
) -> JsonObject:
    """Store a checkpoint's file, which is the request's body, and what is known about it."""
    if not CHECKPOINT_ID.fullmatch(checkpoint_id):
        raise ConfigurationError(
            f"{checkpoint_id!r} cannot be a checkpoint id", code="invalid_checkpoint_id"
        )
    await run_in_threadpool(_require_own, state, id, checkpoint_id)
    with state.files.incoming(id, checkpoint_id) as incoming:
        async for chunk in request.stream():
            await run_in_threadpool(incoming.write, chunk)
        stored = await run_in_threadpool(incoming.complete, sha256)
        facts = CheckpointRow(
            id=checkpoint_id,
            job_id=id,
            episode=episode,
            timestep=timestep,
            avg_reward=avg_reward,
            success_rate=success_rate,
            label=label,
            sha256=stored.sha256,
            size_bytes=stored.size_bytes,
            created_at=datetime.now(UTC),
        )
        return await run_in_threadpool(_record, state, facts, incoming)


def _require_own(state: ServerState, job_id: str, checkpoint_id: str) -> None:
    with state.database.read() as session:
        _require_running(jobs.find(session, jobs.TRAINING, job_id))
        existing = session.get(CheckpointRow, checkpoint_id)
    if existing is not None and existing.job_id != job_id:
        raise ConflictError(
            f"checkpoint {checkpoint_id!r} belongs to {existing.job_id!r}",
            code="checkpoint_id_taken",
            hint="Put the job's id into the checkpoint's",
        )


def _require_running(job: JobRow) -> None:
    if job.status in lifecycle.TERMINAL:
        raise ConflictError(
            f"{job.id!r} is {job.status} already and takes no checkpoint", code="job_finished"
        )


def _record(state: ServerState, facts: CheckpointRow, incoming: IncomingFile) -> JsonObject:
    with state.database.write() as session:
        job = jobs.find(session, jobs.TRAINING, facts.job_id)
        facts.organisation_id = job.organisation_id
        session.merge(facts)
        jobs.tell(
            session,
            job,
            "checkpoint_saved",
            {"checkpoint_id": facts.id, "episode": facts.episode, "sha256": facts.sha256},
        )
        session.flush()
        # Last in the transaction: what finds no room in a quota leaves no file.
        incoming.keep()
    with state.database.read() as session:
        return render.checkpoint(jobs.find_checkpoint(session, facts.id))


def _apply(session: Session, row: JobRow, reports: list[Report]) -> None:
    config = governance.effective(session, row.organisation_id, row.version.environment_id)
    hidden = rules.texts(config["pii_fields"])
    for report in reports:
        before = lifecycle.JobState(row.status, row.progress, row.results, row.error)
        if before.finished:
            return
        ask = report.type == "completed" and _asks_people(session, row)
        after = lifecycle.after_report(
            before, report.type, report.data, _goal(row), asks_people=ask
        )
        row.status, row.progress, row.error = after.status, after.progress, after.error
        row.results = dict(after.results)
        if after.finished:
            row.completed_at = datetime.now(UTC)
        # Figures come from what was said, and only what is masked is kept.
        kept = _masked(report.data, hidden)
        row.results = _masked(row.results, hidden)
        outcomes.note(session, row, report.type, kept)
        alerts.watch(session, row, report.type, report.data)
        if report.type not in _NO_EVENTS:
            waits = row.status == lifecycle.AWAITING_HUMAN_EVAL
            kind = lifecycle.AWAITING_HUMAN_EVAL if waits else report.type
            jobs.tell(session, row, kind, kept, report.at)


def _masked(data: JsonObject, hidden: Sequence[str]) -> JsonObject:
    return cast("JsonObject", rules.masked(data, hidden))


def _asks_people(session: Session, row: JobRow) -> bool:
    config = governance.effective(session, row.organisation_id, row.version.environment_id)
    return row.kind == jobs.TRAINING and config.get("human_in_the_loop") is True


def _goal(row: JobRow) -> int:
    seeds = row.request.get("seeds")
    return len(items(seeds)) if seeds else integer(row.request.get("num_episodes")) or 0


def _lines(report: Report) -> list[str]:
    lines = report.data.get("lines")
    if lines is not None:
        return [str(line) for line in items(lines)]
    line = report.data.get("line", report.data.get("message"))
    return [] if line is None else [str(line)]


def _checkpoint(session: Session, checkpoint_id: object) -> JsonObject:
    return render.checkpoint(jobs.find_checkpoint(session, str(checkpoint_id)))
