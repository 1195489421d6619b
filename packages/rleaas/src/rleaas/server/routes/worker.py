"""Routes for workers: what to do, how it is going, what it made."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, cast

from fastapi import APIRouter, Depends
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ModelFailed, VerifierNotFound
from sqlalchemy.orm import Session

from rleaas.server import job_reports, render
from rleaas.server.access import Attempt, State, require_worker
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import JsonObject, Report, Reports
from rleaas.server.routes.verifier_bodies import CompleteForWorker, JudgeForWorker
from rleaas.server.rules import lifecycle, worlds
from rleaas.server.rules.json_values import items
from rleaas.server.rules.worker_tokens import require_current
from rleaas.server.state import ServerState
from rleaas.server.store import attempts, jobs, rollouts
from rleaas.verify import Trajectory, definition_of, judged

router = APIRouter(
    tags=["worker"], dependencies=[Depends(require_worker)], responses=documented(401)
)

Kind = Literal["training", "evaluation"]


@router.get("/api/worker/{kind}/{id}/assignment", responses=documented(404, 409, 422, 503))
async def get_assignment(kind: Kind, id: str, state: State, attempt: Attempt) -> JsonObject:
    """Everything that a worker needs to know about its job.

    A later attempt goes on from the job's own last checkpoint: `resume` says `same_job`.
    """
    version_id = await run_in_threadpool(_version_id, state, kind, id, attempt)
    await state.envhost.ensure(version_id)  # the identity of what the job works on is known now
    return await run_in_threadpool(_assignment, state, kind, id)


def _version_id(state: ServerState, kind: Kind, id: str, attempt: int) -> int:
    with state.database.read() as session:
        row = jobs.find(session, kind, id)
        require_current(id, row.status, row.attempts, attempt)
        return row.version_id


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
            "contract": row.version.contract,
            "cancel_requested": row.cancel_requested_at is not None,
            "attempt": row.attempts,
            **row.request,
        }
        if kind == jobs.TRAINING:
            resume = row.request.get("resume_from_checkpoint")
            common["job_id"] = id
            common["run_name"] = row.name
            common["tracking_directory"] = str(state.settings.data_dir / "tracking")
            own = attempts.last_checkpoint(row) if row.attempts > 1 else None
            if own is not None:
                common["resume"] = {**render.checkpoint(own), "same_job": True}
            else:
                found = _checkpoint(session, resume) if resume else None
                common["resume"] = found and {**found, "same_job": False}
        else:
            common["evaluation_id"] = id
            world = worlds.world_of(row.version.source)
            if world is not None:
                config = {k: v for k, v in row.version.config.items() if k != worlds.FACE}
                common["world"] = {"vertical": world.name, "config": config}
            common["complete_at"] = f"/api/worker/{kind}/{id}/complete"
            common["journal_directory"] = str(state.settings.data_dir / "evaluations")
            checkpoint = row.request.get("checkpoint_id")
            common["checkpoint"] = _checkpoint(session, checkpoint) if checkpoint else None
            if checkpoint:
                trained_on = jobs.find_checkpoint(session, str(checkpoint)).job.version
                common["trained_contract"] = trained_on.contract
            source = row.request.get("source_evaluation_id")
            if source:
                common["source_rollouts"] = rollouts.files_of(session, str(source))
    verifiers = common.get("verifiers")
    if isinstance(verifiers, dict):
        path = f"/api/worker/{kind}/{id}/judge"
        common["verifiers"] = {**cast("JsonObject", verifiers), "judge_at": path}
    return common


@router.post("/api/worker/{kind}/{id}/judge", responses=documented(404, 409, 422))
def judge_episode(
    kind: Kind, id: str, body: JudgeForWorker, state: State, attempt: Attempt
) -> JsonObject:
    """Judge an episode by a verifier of the job, as it was when the job was asked for.

    Workers have no key of the language model; a verifier that could not judge says `grader_error`.
    """
    with state.database.read() as session:
        row = jobs.find(session, kind, id)
        require_current(id, row.status, row.attempts, attempt)
        given = row.request.get("verifiers")
    records = cast("JsonObject", given).get("definitions") if isinstance(given, dict) else None
    known = {
        one.id: one
        for one in map(definition_of, cast("Sequence[JsonObject]", items(records or [])))
    }
    if body.verifier_id not in known:
        raise VerifierNotFound(body.verifier_id, hint="The job does not have it")
    trajectory = Trajectory.of(body.steps, body.state, truncated=body.truncated)
    with state.judging.judge(known[body.verifier_id], known.__getitem__) as judge:
        return judged(judge, trajectory).to_dict()


@router.post("/api/worker/{kind}/{id}/complete", responses=documented(404, 409, 422))
def complete_conversation(
    kind: Kind, id: str, body: CompleteForWorker, state: State, attempt: Attempt
) -> JsonObject:
    """What the language model that plays the evaluation says next, or why it said nothing.

    Workers have no key of it.
    """
    with state.database.read() as session:
        row = jobs.find(session, kind, id)
        require_current(id, row.status, row.attempts, attempt)
        agent = row.request.get("agent")
    if not isinstance(agent, dict):
        raise ConfigurationError(f"{kind} {id!r} is not of a language model", code="unknown_agent")
    try:
        said = state.agent_models.complete(cast("JsonObject", agent), body.messages, body.tools)
    except ModelFailed as error:
        return {"error": {"reason": error.reason, "detail": _text(error.detail)}}
    return {
        "text": _text(said.text),
        "tool_calls": [
            {"id": _text(one.id), "name": _text(one.name), "arguments": _text(one.arguments)}
            for one in said.tool_calls
        ],
        "input_tokens": said.input_tokens,
        "output_tokens": said.output_tokens,
    }


def _text(said: str) -> str:
    """What a model said, without halves of letters, which nobody could send on."""
    return said.encode("utf-8", "replace").decode()


@router.post("/api/worker/{kind}/{id}/reports", responses=documented(400, 404, 409, 422))
def post_reports(kind: Kind, id: str, body: Reports, state: State, attempt: Attempt) -> JsonObject:
    """Take reports in; the reply tells the worker whether it should end."""
    with state.database.write() as session:
        row = jobs.find(session, kind, id)
        if row.attempts != attempt or body.seq > row.last_seq:
            require_current(id, row.status, row.attempts, attempt)
        row.last_seen_at = datetime.now(UTC)
        fresh = body.seq > row.last_seq and row.status not in lifecycle.TERMINAL
        if fresh:
            row.last_seq = body.seq
            job_reports.take(
                session,
                row,
                body.reports,
                stopping=state.draining,
                most_restarts=state.settings.max_restarts,
            )
            # Before the commit: who dies in between is told the batch again, with its number.
            told = [
                one for report in body.reports if report.type == "log" for one in _lines(report)
            ]
            state.logs.append_once(id, f"{attempt}.{body.seq}", told)
        stop = row.cancel_requested_at is not None or row.status in lifecycle.TERMINAL
        finished = row.status != lifecycle.RUNNING
    if finished:
        state.scheduler.wake()
    return {"cancel_requested": stop, "accepted": fresh}


def _lines(report: Report) -> list[str]:
    lines = report.data.get("lines")
    if lines is not None:
        return [str(line) for line in items(lines)]
    line = report.data.get("line", report.data.get("message"))
    return [] if line is None else [str(line)]


def _checkpoint(session: Session, checkpoint_id: object) -> JsonObject:
    return render.checkpoint(jobs.find_checkpoint(session, str(checkpoint_id)))
