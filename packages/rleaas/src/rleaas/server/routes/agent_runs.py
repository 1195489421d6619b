"""Routes about what agents are put to: checks, dry runs, bindings and exports."""

from contextlib import ExitStack
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse
from rlcore import ConflictError, Error
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.background import BackgroundTask

from rleaas.server import render as shown
from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.exporting import Wanted
from rleaas.server.failures import documented
from rleaas.server.routes.agent_bodies import Deploy, DryRun, Export
from rleaas.server.routes.agents import record
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.checkpoints import DIGEST
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency, workable_version
from rleaas.server.routes.verifiers import UNSUPPORTED
from rleaas.server.rules import agent_exports as rules
from rleaas.server.rules.agent_checks import (
    Check,
    checkpoint_reference,
    model_check,
    permissions_check,
    verdict,
)
from rleaas.server.rules.agent_exports import ExportFormat
from rleaas.server.rules.cards import card_of
from rleaas.server.rules.catalogue import new_id
from rleaas.server.rules.requests import evaluation_seeds
from rleaas.server.starting_points import require_same_spaces
from rleaas.server.store import agents, audit, environments, jobs, once
from rleaas.server.store.tables import (
    AgentRecordRow,
    AgentRow,
    CheckpointRow,
    JobRow,
    RolloutRow,
    ToolRow,
)

# Less than clients wait; they ask again with the same key, and the work goes on meanwhile.
_WAIT_SECONDS: Final = 20.0

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["agents"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)


@router.post("/api/agents/{agent_id}/validate", dependencies=[Once], responses=documented(404))
def validate_agent(agent_id: str, caller: Caller) -> JsonObject:
    """Check an agent's configuration: its model, the model's file, and its permissions."""
    with caller.read() as session:
        row = agents.find(session, agent_id)
        tools = {
            text for pair in session.execute(select(ToolRow.id, ToolRow.name)) for text in pair
        }
        checks = [
            model_check(row.base_model, row.model_ref),
            *_checkpoint_check(session, caller, row),
            permissions_check(row.tool_permissions, tools),
        ]
    return {"agent_id": row.id, "version": f"v{row.version}", **verdict(checks)}


@router.post("/api/agents/{agent_id}/dry-run", responses=documented(400, 404, 409, 422, 503))
def dry_run(
    agent_id: str, body: DryRun, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Play episodes with the agent's policy, as an evaluation that goes on in the background.

    A checkpoint that is not whole, or was trained on other spaces, is refused at once.
    Only an agent whose `model_ref` is a checkpoint of this platform has a policy that can play.
    """
    given = body.model_dump()
    key = idempotency("agents.dry_run", idempotency_key, {"agent_id": agent_id, **given})
    seeds = evaluation_seeds(None, body.episodes, body.base_seed)
    _require_whole(caller, agent_id, key)
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = agents.find(session, agent_id)
        checkpoint = _playable(session, row)
        version = workable_version(session, str(body.environment_id), None)
        require_same_spaces(checkpoint, version)
        request: JsonObject = {
            "checkpoint_id": checkpoint.id,
            "checkpoint_sha256": checkpoint.sha256,
            "seeds": seeds,
            "max_episode_steps": body.max_episode_steps,
            "success_threshold": None,
            "purpose": "evaluation",
        }
        name = f"dry run of {row.name}"
        job = jobs.create(
            session, caller, jobs.EVALUATION, version, request, name=name, idempotency=None
        )
        done = agents.note(
            session,
            row,
            agents.DRY_RUN,
            job.status,
            {
                "evaluation_id": job.id,
                "environment_id": version.environment_id,
                "environment": version.environment.name,
                "environment_version": version.version,
                "agent_version": f"v{row.version}",
                "checkpoint_id": checkpoint.id,
                "episodes": len(seeds),
                "seeds": seeds,
            },
        )
        record(session, caller, row, "dry_run_started", {"evaluation_id": job.id})
        reply = _dry_run(session, done, row)
        once.keep(session, key, done.id, reply)
    caller.state.scheduler.wake()
    return reply


@router.get("/api/agents/{agent_id}/dry-runs", responses=documented(404))
def list_dry_runs(agent_id: str, caller: Caller) -> list[JsonObject]:
    """An agent's dry runs as they stand now, newest first."""
    with caller.read() as session:
        row = agents.find(session, agent_id)
        return [_dry_run(session, one, row) for one in agents.notes(session, row, agents.DRY_RUN)]


@router.post("/api/agents/{agent_id}/deploy", responses=documented(400, 404, 409, 422))
def deploy_agent(
    agent_id: str, body: Deploy, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Bind an agent, at its current version, to an environment; nothing is started by that.

    An agent whose model is a checkpoint is refused where that is missing or damaged, or was trained
    on other observations or actions than the environment's.
    """
    given = body.model_dump()
    key = idempotency("agents.deploy", idempotency_key, {"agent_id": agent_id, **given})
    _require_whole(caller, agent_id, key)
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = agents.find(session, agent_id)
        place = environments.find(session, str(body.environment_id))
        checkpoint = agents.own_checkpoint(session, row)
        if checkpoint is not None:
            require_same_spaces(checkpoint, environments.find_version(session, place.name))
        made = agents.note(
            session,
            row,
            agents.DEPLOYMENT,
            "bound",
            {
                "environment_id": place.id,
                "environment": place.name,
                "label": body.label,
                "agent_version": f"v{row.version}",
            },
        )
        record(session, caller, row, "bound", {"environment": place.name, "label": body.label})
        reply: JsonObject = {**render.agent_record(made, row.id), "deployment_id": made.id}
        once.keep(session, key, made.id, reply)
    return reply


@router.get("/api/agents/{agent_id}/deployments", responses=documented(404))
def list_deployments(agent_id: str, caller: Caller) -> JsonObject:
    """The environments that an agent was bound to, newest first."""
    with caller.read() as session:
        row = agents.find(session, agent_id)
        shown = [
            {**render.agent_record(one, row.id), "deployment_id": one.id}
            for one in agents.notes(session, row, agents.DEPLOYMENT)
        ]
    return {"deployments": shown, "count": len(shown)}


@router.post("/api/agents/export", responses={**documented(400, 404, 409, 422, 503), **UNSUPPORTED})
def export_checkpoint(
    body: Export, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Give out a checkpoint; the digest is that of the file behind `download_url`."""
    return _export(body, caller, None, idempotency_key)


@router.post(
    "/api/agents/{agent_id}/export",
    responses={**documented(400, 404, 409, 422, 503), **UNSUPPORTED},
)
def export_agent(
    agent_id: str, body: Export, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Give out a checkpoint for an agent, and keep that it was."""
    return _export(body, caller, agent_id, idempotency_key)


@router.get(
    "/api/checkpoints/{checkpoint_id}/export",
    response_class=FileResponse,
    responses={
        200: {
            "content": {"application/zip": {}, "application/octet-stream": {}},
            "description": "The file",
        },
        **documented(404, 409, 422, 503),
        **UNSUPPORTED,
    },
)
def get_export(
    checkpoint_id: str,
    caller: Caller,
    form: Annotated[ExportFormat, Query(alias="format")] = "huggingface",
    include_metadata: bool = True,
    sha256: str | None = None,
) -> FileResponse:
    """A checkpoint's file in a form, with its SHA-256 in a header; made if it was not before.

    With `sha256`, only the file with that digest is given out.
    """
    rules.require_available(form)
    with caller.read() as session:
        row = jobs.find_checkpoint(session, checkpoint_id)
        wanted = _wanted(row, form, _facts(row) if include_metadata else None)
    exporter = caller.state.exporter
    if sha256 is None:
        made = exporter.made(wanted, wait=_WAIT_SECONDS)
    else:
        found = exporter.find(wanted.organisation, row.id, sha256)
        if found is None:
            raise ConflictError(
                f"no export of checkpoint {row.id!r} has the digest {sha256}",
                code="export_changed",
                hint="Export it again",
            )
        made = found
    kept = ExitStack()
    path = kept.enter_context(caller.state.artifacts.fetched(made.sha256, row.id))
    return FileResponse(
        path,
        media_type=rules.MEDIA_TYPES.get(form, rules.OTHER_MEDIA),
        filename=f"{row.id}-{form}.{rules.ENDINGS[form]}",
        headers={DIGEST: made.sha256},
        background=BackgroundTask(kept.close),
    )


def _export(body: Export, caller: CallerOf, agent_id: str | None, header: str | None) -> JsonObject:
    given = body.model_dump()
    key = idempotency("agents.export", header, {"agent_id": agent_id, **given})
    with caller.read() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        checkpoint = jobs.find_checkpoint(session, body.checkpoint_id)
        facts = _facts(checkpoint)
    rules.require_available(body.format)
    # Outside of any transaction: it takes a while.
    wanted = _wanted(checkpoint, body.format, facts if body.include_metadata else None)
    made = caller.state.exporter.made(wanted, wait=_WAIT_SECONDS)
    sha256 = made.sha256
    flag = str(body.include_metadata).lower()
    about: JsonObject = {
        "checkpoint_id": checkpoint.id,
        "format": body.format,
        "download_url": f"/api/checkpoints/{checkpoint.id}/export?format={body.format}"
        f"&include_metadata={flag}&sha256={sha256}",
        "size_bytes": made.size_bytes,
        "checks": made.checks,
        **({"metadata": facts} if body.include_metadata else {}),
        **({"sha256": sha256} if body.include_audit_hash else {}),
    }
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        if agent_id is None:
            audit.record(
                session,
                caller,
                action="checkpoint.exported",
                subject=f"checkpoint:{checkpoint.id}",
                data={"format": body.format, "sha256": sha256},
            )
            reply: JsonObject = {**about, "artifact_id": new_id("artifact"), "agent_id": None}
        else:
            row = agents.find(session, agent_id)
            kept = agents.note(session, row, agents.EXPORT, "completed", about)
            record(session, caller, row, "exported", {"format": body.format, "sha256": sha256})
            reply = {**render.agent_record(kept, row.id), "artifact_id": kept.id}
        once.keep(session, key, str(reply["artifact_id"]), reply)
    return reply


def _wanted(row: CheckpointRow, form: str, facts: JsonObject | None) -> Wanted:
    return Wanted(
        organisation=row.organisation_id,
        checkpoint_id=row.id,
        sha256=row.sha256,
        form=form,
        facts=facts,
    )


def _facts(row: CheckpointRow) -> JsonObject:
    job = row.job
    return {
        "checkpoint_id": row.id,
        "checkpoint_sha256": row.sha256,
        "algorithm": job.request.get("algorithm"),
        "episode": row.episode,
        "timestep": row.timestep,
        "avg_reward": row.avg_reward,
        "success_rate": row.success_rate,
        "metrics": shown.metrics(row),
        "environment_name": job.version.environment.name,
        "environment_version": job.version.version,
        "contract_digest": job.version.contract_digest,
        "training_job_id": job.id,
        **card_of(row.manifest, job.request),
    }


def _checkpoint_check(session: Session, caller: CallerOf, row: AgentRow) -> list[Check]:
    reference = checkpoint_reference(row.model_ref)
    if reference is None:
        return []
    try:
        found = jobs.find_checkpoint(session, reference)
        caller.state.artifacts.check(found.sha256, found.id)
    except Error as error:
        return [Check("checkpoint", False, error.message)]
    return [Check("checkpoint", True, f"{found.id!r} is whole, SHA-256 {found.sha256}")]


def _playable(session: Session, row: AgentRow) -> CheckpointRow:
    found = agents.own_checkpoint(session, row)
    if found is None:
        named = row.model_ref or row.base_model or "none"
        raise ConflictError(
            f"agent {row.id!r} has no policy that this platform could play: its model is {named!r}",
            code="agent_not_playable",
            hint="Configure model_ref='checkpoint://ID' with a checkpoint of this platform",
        )
    return found


def _require_whole(caller: CallerOf, agent_id: str, key: jobs.IdempotencyKey | None) -> None:
    """Refuse an agent whose checkpoint's file is not whole; before any transaction that writes."""
    with caller.read() as session:
        if once.earlier(session, key) is not None:
            return
        row = agents.find(session, agent_id)
        found = agents.own_checkpoint(session, row)
    if found is None:
        return
    try:
        caller.state.artifacts.check(found.sha256, found.id)
    except Error as error:
        raise ConflictError(
            f"the checkpoint {found.id!r} of agent {row.id!r} cannot be used: {error.message}",
            code="agent_not_playable",
            hint="Configure model_ref with one that is whole",
        ) from error


def _dry_run(session: Session, done: AgentRecordRow, row: AgentRow) -> JsonObject:
    job = session.get(JobRow, str(done.data["evaluation_id"]))
    shown = render.agent_record(done, row.id)
    if job is None:  # deleted with its environment
        return {**shown, "status": "deleted", "avg_reward": None, "pass_rate": None}
    results = job.results
    return {
        **shown,
        "status": job.status,
        "avg_reward": results.get("mean_return"),
        "pass_rate": results.get("success_rate"),
        "scored": results.get("scored"),
        "failed": results.get("failed"),
        "error": job.error,
        "rollout_ids": list(
            session.scalars(select(RolloutRow.id).where(RolloutRow.job_id == job.id))
        ),
        "completed_at": render.time(job.completed_at),
    }
