"""The published routes about rollouts: evaluations and the episodes that are stored."""

import json
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse
from pydantic import Discriminator, Tag
from rlcore import ConflictError, InvalidRequestError, NotFoundError
from sqlalchemy.orm import Session

from rleaas.reports import as_csv, page
from rleaas.server import render, render_rollouts
from rleaas.server.access import Caller, CallerOf, State, require_user
from rleaas.server.compared import comparison
from rleaas.server.failures import documented
from rleaas.server.report_pdf import as_pdf
from rleaas.server.routes.bodies import JsonObject, StartRollouts
from rleaas.server.routes.comparisons import compare
from rleaas.server.routes.evaluations import queue, report
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.rollout_bodies import ExportReport, StoreRollout
from rleaas.server.rules.json_values import fields, items, number
from rleaas.server.rules.names import split_version
from rleaas.server.store import attempts, audit, environments, events, jobs, once, rollouts
from rleaas.server.store.tables import EnvironmentRow, JobRow, RolloutRow

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["rollouts"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)

public = APIRouter(tags=["rollouts"])

Limit = Annotated[int, Query(ge=0, le=10**6, description="0 is all of them")]
Offset = Annotated[int, Query(ge=0, le=2**62)]


def _form(body: object) -> str:
    return "store" if isinstance(body, StoreRollout) or _has_steps(body) else "start"


def _has_steps(body: object) -> bool:
    return isinstance(body, dict) and "steps" in body


@router.post("/api/rollouts", responses=documented(400, 404, 409, 422))
async def post_rollouts(
    body: Annotated[
        Annotated[StartRollouts, Tag("start")] | Annotated[StoreRollout, Tag("store")],
        Discriminator(_form),
    ],
    caller: Caller,
    idempotency_key: IdempotencyHeader = None,
) -> JsonObject:
    """Start an evaluation in the published form, compare two checkpoints, or store an episode.

    With `steps` it is an episode; with `comparison`, the two `agent_checkpoints` are compared.
    """
    if isinstance(body, StoreRollout):
        return await run_in_threadpool(_store, body, caller, idempotency_key)
    if body.comparison or body.agent_checkpoints:
        return await compare(body, caller)
    if body.max_episode_steps is None:
        body.max_episode_steps = body.max_steps
    return await run_in_threadpool(queue, body, caller, idempotency_key)


@router.post("/api/rollouts/export", dependencies=[Once], responses=documented(404, 422))
def export_report(body: ExportReport, caller: Caller) -> JsonObject:
    """Write a report about an evaluation, or without one about the newest, to a file to fetch."""
    organisation = caller.principal.organisation_id
    with caller.read() as session:
        if body.evaluation_id:
            rows = [jobs.find(session, jobs.EVALUATION, body.evaluation_id)]
        else:
            rows = [*jobs.page(session, jobs.EVALUATION, limit=body.limit)]
        reports = [_report(session, row, body) for row in rows]
    kept = caller.state.reports.keep(organisation, body.format, _written(reports, body))
    with caller.write() as session:
        audit.record(
            session,
            caller,
            action="report.exported",
            subject=f"report:{kept.name}",
            data={"sha256": kept.sha256, "evaluations": [row.id for row in rows]},
        )
    reply: JsonObject = {
        "report_url": f"/api/rollout-reports/{kept.name}",
        "format": body.format,
        "sha256": kept.sha256,
        "size_bytes": kept.size_bytes,
        "evaluations": len(reports),
    }
    if not body.signature:
        return reply
    return {**reply, "signature": kept.signature, "key_id": caller.state.keys.report_public_key[0]}


@public.get("/api/report-key")
def get_report_key(state: State) -> JsonObject:
    """The public key with which anybody checks the signatures of reports; needs no key."""
    key_id, pem = state.keys.report_public_key
    return {"algorithm": "Ed25519", "key_id": key_id, "public_key": pem}


@router.get("/api/rollout-reports/{name}", responses=documented(404), response_class=FileResponse)
def get_report_file(name: str, caller: Caller) -> FileResponse:
    """The file of an exported report."""
    path = caller.state.reports.find(caller.principal.organisation_id, name)
    return FileResponse(path, headers={"content-security-policy": "sandbox"})


@router.get("/api/rollouts-all", responses=documented(422))
def list_all_rollouts(caller: Caller, limit: Limit = 0, offset: Offset = 0) -> JsonObject:
    """The rollouts of all environments, newest first, without their steps."""
    with caller.read() as session:
        rows, total = rollouts.page(session, limit=limit or None, offset=offset)
        names = rollouts.names(session, rows)
    told = [_told(row, names, whole=False) for row in rows]
    return {"rollouts": told, "total": total, "environments": sorted(set(names.values()))}


@router.get("/api/rollout-comparison/{env}", responses=documented(404, 422))
def compare_rollouts(
    env: str, caller: Caller, baseline_id: str, trained_id: str, job_id: str | None = None
) -> JsonObject:
    """How two rollouts, or two evaluations, of an environment differ."""
    baseline = _one(caller, baseline_id, env)
    trained = _one(caller, trained_id, env)
    for told in (baseline, trained):
        if job_id is not None and job_id not in (told.get("job_id"), told["id"]):
            raise NotFoundError(
                kind="rollout",
                ref=str(told["id"]),
                code="rollout_not_found",
                hint=f"not of {job_id!r}",
            )
    return comparison(str(baseline["environment_name"]), baseline, trained)


@router.get("/api/training/runs/{job_id}/rollouts", responses=documented(404, 422))
def list_rollouts_of_job(
    job_id: str, caller: Caller, limit: Limit = 0, offset: Offset = 0
) -> list[JsonObject]:
    """The rollouts that are stored of a training job, newest first, without their steps.

    All of them, or a page: as a bare list says no total, the last page is the one that is not full.
    """
    with caller.read() as session:
        jobs.find(session, jobs.TRAINING, job_id)
        rows, _ = rollouts.page(session, job_id=job_id, limit=limit or None, offset=offset)
        names = rollouts.names(session, rows)
    return [_told(row, names, whole=False) for row in rows]


@router.get("/api/rollouts/{env}", responses=documented(404, 422))
def list_rollouts(env: str, caller: Caller, limit: Limit = 0, offset: Offset = 0) -> JsonObject:
    """The rollouts of an environment, newest first, without their steps."""
    with caller.read() as session:
        row = environments.find(session, split_version(env)[0])
        found, total = rollouts.page(
            session, environment_id=row.id, limit=limit or None, offset=offset
        )
    told = [_told(one, {row.id: row.name}, whole=False) for one in found]
    return {"rollouts": told, "environment_name": row.name, "total": total}


@router.get("/api/rollouts//{rollout_id}", responses=documented(404), include_in_schema=False)
def get_rollout_anywhere(rollout_id: str, caller: Caller) -> JsonObject:
    """A rollout or an evaluation's report, for a client that does not know its environment."""
    return _one(caller, rollout_id, None)


@router.get("/api/rollouts/{env}/{rollout_id}", responses=documented(404))
def get_rollout(env: str, rollout_id: str, caller: Caller) -> JsonObject:
    """A rollout with its steps, or an evaluation's report, of an environment."""
    return _one(caller, rollout_id, env)


@router.get("/api/rollouts/{env}/{rollout_id}/steps", responses=documented(404, 422))
def list_steps(
    env: str, rollout_id: str, caller: Caller, limit: Limit = 0, offset: Offset = 0
) -> JsonObject:
    """The steps of a rollout of an environment in their order; all of them, or a page."""
    with caller.read() as session:
        environment = environments.find(session, split_version(env)[0])
        row = rollouts.find(session, rollout_id)
        told = _told(row, rollouts.names(session, [row]), whole=True)
    _require_on(environment, told)
    played = caller.state.rollout_files.of_row(row)
    if played is not None:
        told = render_rollouts.with_steps(played)
    steps = [fields(one) for one in items(told.get("steps"))]
    shown = steps[offset : offset + limit] if limit else steps[offset:]
    return {
        "steps": [{"step": place, **one} for place, one in enumerate(shown, offset)],
        "total": len(steps),
        "offset": offset,
    }


def _one(caller: CallerOf, rollout_id: str, env: str | None) -> JsonObject:
    with caller.read() as session:
        environment = None if env is None else environments.find(session, split_version(env)[0])
        job = session.get(JobRow, rollout_id)
        if job is None or job.kind != jobs.EVALUATION:
            row = rollouts.find(session, rollout_id)
            told = _told(row, rollouts.names(session, [row]), whole=True)
            played = caller.state.rollout_files.of_row(row)
            if played is not None:
                told = {**told, **render_rollouts.with_steps(played)}
        else:
            told = report(caller, rollout_id)
    _require_on(environment, told)
    return told


def _require_on(environment: EnvironmentRow | None, told: JsonObject) -> None:
    played_on = told["environment_name"]
    if environment is not None and environment.name != played_on:
        raise NotFoundError(
            kind="rollout",
            ref=str(told["id"]),
            code="rollout_not_found",
            hint=f"It was played on {played_on!r}",
        )


def _told(row: RolloutRow, names: dict[int, str], *, whole: bool) -> JsonObject:
    return render_rollouts.rollout(row, names.get(row.environment_id or 0), whole=whole)


def _store(body: StoreRollout, caller: CallerOf, key: str | None) -> JsonObject:
    given = body.model_dump(mode="json", exclude_none=True)
    asked = idempotency("rollout", key, given)
    with caller.write() as session:
        earlier = once.earlier(session, asked)
        if earlier is not None:
            return earlier
        environment = environments.find(session, split_version(body.environment_name)[0])
        if body.job_id is not None and session.get(JobRow, body.job_id) is None:
            raise InvalidRequestError(
                f"job_id {body.job_id!r} is no job", status_code=422, code="invalid_rollout"
            )
        if body.id is not None and session.get(RolloutRow, body.id) is not None:
            raise ConflictError(f"there is a rollout {body.id!r} already", code="rollout_exists")
        row = rollouts.add(
            session,
            environment,
            given,
            episode=body.episode_number,
            status=body.status,
            total_reward=_total_reward(body),
            total_steps=len(body.steps) if body.total_steps is None else body.total_steps,
            job_id=body.job_id,
            scenario_id=body.scenario_id,
            rollout_id=body.id,
            at=body.timestamp,
        )
        events.add(
            session, f"rollout:{row.id}", "rollout.stored", {"environment": environment.name}
        )
        audit.record(
            session,
            caller,
            action="rollout.stored",
            subject=f"rollout:{row.id}",
            environment_name=environment.name,
            job_id=body.job_id,
        )
        reply: JsonObject = {
            "success": True,
            "id": row.id,
            "environment_name": environment.name,
        }
        once.keep(session, asked, row.id, reply)
    return reply


def _total_reward(body: StoreRollout) -> float | None:
    if body.total_reward is not None:
        return body.total_reward
    rewards = [number(step.get("reward")) for step in body.steps]
    known = [reward for reward in rewards if reward is not None]
    return sum(known) if known and len(known) == len(rewards) else None


def _written(reports: list[JsonObject], asked: ExportReport) -> bytes:
    made = datetime.now(UTC)
    episodes = asked.include_trajectory_summary
    if asked.format == "pdf":
        return as_pdf(reports, made=made, episodes=episodes)
    if asked.format == "csv":
        verifiers = asked.include_verifier_explanations
        return as_csv(reports, episodes=episodes, verifiers=verifiers).encode()
    if asked.format == "html":
        return page(reports, made=made.isoformat(timespec="seconds")).encode()
    told = {
        "created_at": made.isoformat(),
        "selection": {
            "evaluation_id": asked.evaluation_id or None,
            "newest": None if asked.evaluation_id else asked.limit,
            "episodes": asked.include_trajectory_summary,
            "verifier_explanations": asked.include_verifier_explanations,
        },
        "evaluations": reports,
    }
    return json.dumps(told, indent=2).encode()


def _report(session: Session, row: JobRow, asked: ExportReport) -> JsonObject:
    told = render.report(row, attempts.points(session, row, "episode"))
    if not asked.include_trajectory_summary:
        told.pop("episodes", None)
    if not asked.include_verifier_explanations:
        told.pop("verifier_breakdown", None)
    return told
