"""Routes about environments: register, look up, serve, forget."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError, EnvironmentIdentity, mint_token

from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, Reader, require_reader, require_user
from rleaas.server.envhost.host import Hosted
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import CreateEnvironment, JsonObject, UpdateEnvironment
from rleaas.server.rules import lifecycle
from rleaas.server.rules.names import name_problem
from rleaas.server.rules.sources import SourceProblem, no_source_reason, parse_source
from rleaas.server.store import environments, jobs
from rleaas.server.store.tables import VersionRow

router = APIRouter(
    tags=["environments"], dependencies=[Depends(require_user)], responses=documented(401)
)
readable = APIRouter(
    tags=["environments"], dependencies=[Depends(require_reader)], responses=documented(401)
)

GRANT_SECONDS = 3600.0
_DETAILS = (
    "tools",
    "scenarios",
    "verifiers",
    "simulations",
    "owner",
    "sdk",
    "compute",
    "license",
    "infrastructure",
    "infra",
    "verifier_configs",
    "metadata",
)


@router.post("/api/custom-environments", responses=documented(400, 422))
def create_environment(body: CreateEnvironment, caller: Caller) -> JsonObject:
    """Register an environment, or update it; what changes its serving makes a new version."""
    asked, reason = _registration(body)
    with caller.write() as session:
        version, _ = environments.upsert(session, asked, reason)
        restart = version.source is not None and version.status in (
            lifecycle.REGISTERED,
            lifecycle.FAILED,
        )
        if restart:
            version.status, version.status_reason = lifecycle.REGISTERED, None
    if restart:
        caller.state.envhost.start_soon(version.id)
    return render.environment(version)


@router.get("/api/environments", responses=documented(422))
def list_environments(
    caller: Caller,
    status: str | None = None,
    vertical: str | None = None,
    category: str | None = None,
    limit: Annotated[int, Query(ge=0, le=1000)] = 0,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    cursor: Annotated[str, Query(pattern="^[0-9]{0,18}$")] = "",
) -> JsonObject:
    """All environments, or a page of them; `cursor` of one page leads to the next."""
    with caller.read() as session:
        rows = list(
            environments.page(
                session,
                status=status,
                vertical=vertical or category,
                after=int(cursor or 0),
                limit=limit + offset + 1 if limit else None,
            )
        )[offset:]
    shown = rows[:limit] if limit else rows
    return {
        "environments": [render.environment(row.latest) for row in shown],
        "count": len(shown),
        "cursor": str(shown[-1].id) if len(rows) > len(shown) else None,
    }


@readable.get("/api/environments/{env}", responses=documented(404))
def get_environment(env: str, caller: Reader) -> JsonObject:
    """One environment, by its name or numeric id."""
    with caller.read() as session:
        return render.environment(environments.find(session, env).latest)


@router.get("/api/environments/{env}/versions", responses=documented(404))
def list_versions(env: str, caller: Caller) -> JsonObject:
    """Every version of an environment, oldest first."""
    with caller.read() as session:
        row = environments.find(session, env)
        versions = [render.environment_version(version) for version in row.versions]
    return {"versions": versions, "count": len(versions)}


@router.put("/api/environments/{env}", responses=documented(400, 404, 409, 422))
def update_environment(env: str, body: UpdateEnvironment, caller: Caller) -> JsonObject:
    """Rename an environment, or change its config, which makes a new version."""
    if body.name is not None:
        _require_name(body.name)
    with caller.write() as session:
        row = environments.find(session, env)
        version, is_new = environments.change(session, row, name=body.name, config=body.config)
    if is_new and version.source is not None:
        caller.state.envhost.start_soon(version.id)
    return render.environment(version)


@router.delete("/api/custom-environments/{env}", responses=documented(404, 409))
@router.delete("/api/environments/{env}", responses=documented(404, 409), include_in_schema=False)
def delete_environment(env: str, caller: Caller) -> JsonObject:
    """Delete an environment for good, with its jobs, checkpoints and evaluations."""
    with caller.write() as session:
        row = environments.find(session, env)
        busy = environments.unfinished_jobs(session, row)
        if busy:
            raise ConflictError(
                f"environment {row.name!r} is in use by {', '.join(busy[:5])}",
                code="environment_in_use",
                hint="Cancel these jobs, or wait for their end",
            )
        versions = [version.id for version in row.versions]
        job_ids = [job.id for job in jobs.of_environment(session, row.id)]
        jobs.forget(session, job_ids)
        session.delete(row)
    for version_id in versions:
        caller.state.envhost.stop(version_id)
    for job_id in job_ids:
        caller.state.files.remove(job_id)
        caller.state.logs.remove(job_id)
    return {"status": "deleted", "name": row.name, "id": row.id}


@readable.get("/api/environments/{env}/endpoint", responses=documented(404, 409, 422, 503))
async def get_endpoint(
    env: str, caller: Reader, version: Annotated[int | None, Query(ge=1, le=10**9)] = None
) -> JsonObject:
    """Where a version answers, with a token; it is brought up if it is not there yet."""
    row = await run_in_threadpool(_version, caller, env, version)
    hosted = await caller.state.envhost.ensure(row.id)
    return await run_in_threadpool(_grant, caller, row, hosted)


@router.post("/api/environments/{env}/start", responses=documented(404, 409, 503))
async def start_environment(env: str, caller: Caller) -> JsonObject:
    """Bring an environment up now, also a deprovisioned one."""
    version = await run_in_threadpool(_provisioned, caller, env)
    await caller.state.envhost.ensure(version.id)
    return await run_in_threadpool(
        lambda: render.environment(_version(caller, env, version.version))
    )


@router.post("/api/environments/{env}/stop", responses=documented(404))
def stop_environment(env: str, caller: Caller) -> JsonObject:
    """End an environment's processes; the next one who needs it starts it again."""
    with caller.read() as session:
        row = environments.find(session, env)
    stopped = [version.version for version in row.versions if caller.state.envhost.stop(version.id)]
    return {"status": "stopped", "name": row.name, "versions_stopped": stopped}


@router.post("/api/environments/{env}/deprovision", responses=documented(404))
def deprovision_environment(env: str, caller: Caller) -> JsonObject:
    """End an environment's processes until it is started again; its data stays."""
    with caller.write() as session:
        row = environments.find(session, env)
        for version in row.versions:
            environments.set_status(session, version.id, lifecycle.DEPROVISIONED)
    for version in row.versions:
        caller.state.envhost.stop(version.id)
    return {"status": lifecycle.DEPROVISIONED, "name": row.name, "id": row.id}


def _version(caller: CallerOf, env: str, version: int | None) -> VersionRow:
    with caller.read() as session:
        return environments.find_version(session, env, version)


def _provisioned(caller: CallerOf, env: str) -> VersionRow:
    with caller.write() as session:
        version = environments.find(session, env).latest
        if version.status == lifecycle.DEPROVISIONED:
            environments.set_status(session, version.id, lifecycle.REGISTERED)
    return version


def _grant(caller: CallerOf, version: VersionRow, hosted: Hosted) -> JsonObject:
    name = version.environment.name
    expires_at = time.time() + GRANT_SECONDS
    token = None
    if hosted.needs_token:
        identity = EnvironmentIdentity(name, version.version, hosted.contract_digest)
        token = mint_token(
            caller.state.keys.environment(version.id),
            subject=f"{identity.name}@{identity.version}",
            expires_at=expires_at,
        )
    return {
        "address": hosted.address,
        "token": token,
        "expires_at": expires_at,
        "environment_id": version.environment_id,
        "environment_name": name,
        "version": version.version,
        "contract_digest": hosted.contract_digest,
        "contract": hosted.contract,
    }


def _registration(body: CreateEnvironment) -> tuple[environments.Registration, str | None]:
    _require_name(body.name)
    vertical = body.vertical or body.category
    try:
        source = parse_source(body.source)
    except SourceProblem as error:
        raise ConfigurationError(str(error), code="invalid_source") from error
    given = body.model_dump(exclude_none=True)
    details = {key: given[key] for key in _DETAILS if key in given}
    if body.repo:  # the token of a repository is not kept where everybody can read it
        details["repo"] = {key: value for key, value in body.repo.items() if key != "token"}
    registration = environments.Registration(
        name=body.name,
        description=body.description,
        vertical=vertical,
        domain=body.domain,
        tags=body.tags or [],
        details=details,
        source=source.text if source else None,
        kwargs=body.kwargs or {},
        config=body.config or {},
    )
    return registration, None if source else no_source_reason(vertical)


def _require_name(name: str) -> None:
    problem = name_problem(name)
    if problem:
        raise ConfigurationError(problem, code="invalid_name")
