"""Routes about what agents are put to: checks, dry runs, bindings and exports."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from rlcore import CheckpointNotFound, ConflictError, Error
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server import agent_exports as exports
from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.agent_bodies import Deploy, DryRun, Export
from rleaas.server.routes.agents import record
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.checkpoints import DIGEST
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency, workable_version
from rleaas.server.routes.verifiers import UNSUPPORTED
from rleaas.server.rules.agent_checks import (
    Check,
    checkpoint_reference,
    model_check,
    permissions_check,
    verdict,
)
from rleaas.server.rules.agent_exports import ExportFormat
from rleaas.server.rules.catalogue import new_id
from rleaas.server.rules.requests import evaluation_seeds
from rleaas.server.store import agents, audit, environments, jobs, once
from rleaas.server.store.tables import (
    AgentRecordRow,
    AgentRow,
    CheckpointRow,
    JobRow,
    RolloutRow,
    ToolRow,
)

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

    Only an agent whose `model_ref` is a checkpoint of this platform has a policy that can play.
    """
    given = body.model_dump()
    key = idempotency("agents.dry_run", idempotency_key, {"agent_id": agent_id, **given})
    seeds = evaluation_seeds(None, body.episodes, body.base_seed)
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = agents.find(session, agent_id)
        checkpoint = _playable(session, row)
        version = workable_version(session, str(body.environment_id), None)
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
    """Bind an agent, at its current version, to an environment; nothing is started by that."""
    given = body.model_dump()
    key = idempotency("agents.deploy", idempotency_key, {"agent_id": agent_id, **given})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = agents.find(session, agent_id)
        place = environments.find(session, str(body.environment_id))
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


@router.post("/api/agents/export", responses={**documented(400, 404, 409, 422), **UNSUPPORTED})
def export_checkpoint(
    body: Export, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Give out a checkpoint; the digest is that of the file behind `download_url`."""
    return _export(body, caller, None, idempotency_key)


@router.post(
    "/api/agents/{agent_id}/export",
    responses={**documented(400, 404, 409, 422), **UNSUPPORTED},
)
def export_agent(
    agent_id: str, body: Export, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Give out a checkpoint for an agent, and keep that it was."""
    return _export(body, caller, agent_id, idempotency_key)


@router.get(
    "/api/checkpoints/{checkpoint_id}/export",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/zip": {}}, "description": "The file"},
        **documented(404, 409, 422),
        **UNSUPPORTED,
    },
)
def get_export(
    checkpoint_id: str,
    caller: Caller,
    form: Annotated[ExportFormat, Query(alias="format")] = "huggingface",
    include_metadata: bool = True,
    sha256: str | None = None,
) -> StreamingResponse:
    """A checkpoint's file in a form, with its SHA-256 in a header; it is made when it is asked for.

    With `sha256`, only the file with that digest is given out.
    """
    with caller.read() as session:
        row = jobs.find_checkpoint(session, checkpoint_id)
        source, facts = _source(caller, row), _facts(row)
    kept = ExitStack()
    try:
        made = kept.enter_context(
            exports.artifact(source, form, facts if include_metadata else None)
        )
        if sha256 is not None and made.sha256 != sha256:
            raise ConflictError(
                f"the {form} export of checkpoint {row.id!r} is no longer the one with this digest",
                code="export_changed",
                hint="What it tells about its environment was changed; export it again",
            )
    except BaseException:
        kept.close()
        raise

    def chunks() -> Iterator[bytes]:
        with kept, made.path.open("rb") as file:
            while chunk := file.read(1024 * 1024):
                yield chunk

    return StreamingResponse(
        chunks(),
        media_type="application/zip",
        headers={
            DIGEST: made.sha256,
            "content-length": str(made.size_bytes),
            "content-disposition": f'attachment; filename="{row.id}-{form}.zip"',
        },
    )


def _export(body: Export, caller: CallerOf, agent_id: str | None, header: str | None) -> JsonObject:
    given = body.model_dump()
    key = idempotency("agents.export", header, {"agent_id": agent_id, **given})
    with caller.read() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        checkpoint = jobs.find_checkpoint(session, body.checkpoint_id)
        source, facts = _source(caller, checkpoint), _facts(checkpoint)
    metadata = facts if body.include_metadata else None
    # Outside of any transaction: a large file takes a while to read.
    with exports.artifact(source, body.format, metadata) as made:
        sha256, size = made.sha256, made.size_bytes
    flag = str(body.include_metadata).lower()
    about: JsonObject = {
        "checkpoint_id": checkpoint.id,
        "format": body.format,
        "download_url": f"/api/checkpoints/{checkpoint.id}/export?format={body.format}"
        f"&include_metadata={flag}&sha256={sha256}",
        "size_bytes": size,
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


def _source(caller: CallerOf, row: CheckpointRow) -> exports.Source:
    return exports.Source(row.id, caller.state.files.path(row.job_id, row.id), row.sha256)


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
        "environment_name": job.version.environment.name,
        "environment_version": job.version.version,
        "contract_digest": job.version.contract_digest,
        "hyperparameters": job.request.get("config"),
        "seed": job.request.get("seed"),
        "training_job_id": job.id,
    }


def _checkpoint_check(session: Session, caller: CallerOf, row: AgentRow) -> list[Check]:
    reference = checkpoint_reference(row.model_ref)
    if reference is None:
        return []
    try:
        found = jobs.find_checkpoint(session, reference)
        exports.require_whole(_source(caller, found))
    except Error as error:
        return [Check("checkpoint", False, error.message)]
    return [Check("checkpoint", True, f"{found.id!r} is whole, SHA-256 {found.sha256}")]


def _playable(session: Session, row: AgentRow) -> CheckpointRow:
    reference = checkpoint_reference(row.model_ref)
    if reference is None:
        named = row.model_ref or row.base_model or "none"
        raise ConflictError(
            f"agent {row.id!r} has no policy that this platform could play: its model is {named!r}",
            code="agent_not_playable",
            hint="Configure model_ref='checkpoint://ID' with a checkpoint of this platform",
        )
    try:
        return jobs.find_checkpoint(session, reference)
    except CheckpointNotFound as error:
        raise ConflictError(
            f"the checkpoint {reference!r} of agent {row.id!r} does not exist",
            code="agent_not_playable",
            hint="Configure model_ref with one that exists",
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
