"""Routes about environments: register, look up, serve, forget."""

import time
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError, EnvironmentIdentity, mint_token
from sqlalchemy.orm import Session

from rleaas.models.environment import DOMAIN_OF_VERTICAL
from rleaas.server import render
from rleaas.server.access import Caller, CallerOf, Reader, require_reader, require_user
from rleaas.server.envhost.slots import Hosted
from rleaas.server.failures import documented
from rleaas.server.routes.bodies import CreateEnvironment, JsonObject, UpdateEnvironment
from rleaas.server.routes.embedded import adopt
from rleaas.server.routes.environment_bodies import (
    DETAILS,
    MergeEnvironment,
    SetCategory,
    SetSystem,
)
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import lifecycle, tool_access
from rleaas.server.rules.json_values import fields
from rleaas.server.rules.names import canonical_name, name_problem
from rleaas.server.rules.sources import (
    SourceProblem,
    no_source_reason,
    parse_source,
    require_permitted,
)
from rleaas.server.rules.worlds import require_world_config, world_of, world_source
from rleaas.server.store import audit, environments, jobs, once, repositories, worlds
from rleaas.server.store.tables import FIRST_ORGANISATION, EnvironmentRow, VersionRow

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["environments"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)
readable = APIRouter(
    tags=["environments"], dependencies=[Depends(require_reader)], responses=documented(401)
)

GRANT_SECONDS = 3600.0
_CREATES = "environments"


@router.post("/api/custom-environments", responses=documented(400, 403, 404, 409, 422))
def create_environment(
    body: CreateEnvironment, caller: Caller, key: IdempotencyHeader = None
) -> JsonObject:
    """Register an environment, or update it; what changes its serving makes a new version.

    Fields that are left out, and a source that is `custom`, leave what is there as it is.
    """
    asked = _described(caller, body, _require_name(body.name), body.vertical or body.category)
    request = idempotency(_CREATES, key, body.model_dump(mode="json", exclude={"repo"}))
    with caller.write() as session:
        done = once.earlier(session, request)
        if done is not None:
            return done
        asked = _with_world(asked, environments.existing(session, asked.name))
        reason = None if asked.serves else no_source_reason(asked.vertical)
        version, changed = environments.upsert(session, asked, reason)
        worlds.take_in(session, version)
        is_new = changed and version.version == 1
        unknown = adopt(
            session,
            version.environment,
            given_tools=body.tools,
            given_scenarios=body.scenarios,
            given_verifiers=body.verifiers,
            keys=caller.state.keys,
        )
        about: JsonObject = {"unknown_verifiers": unknown} if unknown else {}
        _note(session, caller, "created" if is_new else "updated", version.environment, about)
        if body.repo and repositories.url_in(body.repo):
            repositories.save(
                session, version.environment, repositories.from_client(body.repo), caller.state.keys
            )
        restart = version.source is not None and version.status in (
            lifecycle.REGISTERED,
            lifecycle.FAILED,
        )
        if restart:
            version.status, version.status_reason = lifecycle.REGISTERED, None
        reply = {**render.environment(version), **about}
        once.keep(session, request, str(version.environment_id), reply)
    if restart:
        caller.state.envhost.start_soon(version.id)
    return reply


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
    """One environment, by its name or numeric id; `name@3` shows it as it was at that version."""
    with caller.read() as session:
        return render.environment(environments.read_version(session, env))


@router.get("/api/environments/{env}/versions", responses=documented(404))
def list_versions(env: str, caller: Caller) -> JsonObject:
    """Every version of an environment, oldest first."""
    with caller.read() as session:
        row = environments.find(session, env)
        versions = [render.environment_version(version) for version in row.versions]
    return {"versions": versions, "count": len(versions)}


@router.put("/api/environments/{env}", responses=documented(400, 403, 404, 409, 422))
def update_environment(env: str, body: UpdateEnvironment, caller: Caller) -> JsonObject:
    """Rename an environment, or change its config, which makes a new version."""
    return _merged(env, MergeEnvironment(new_name=body.name, config=body.config), caller)


@router.put("/api/custom-environments/{env}", responses=documented(400, 403, 404, 409, 422))
@router.put(
    "/api/environments/{env}/tools",
    responses=documented(400, 403, 404, 409, 422),
    include_in_schema=False,
)
def merge_environment(env: str, body: MergeEnvironment, caller: Caller) -> JsonObject:
    """Change the given fields of an environment, such as which tools its episodes may call."""
    return _merged(env, body, caller)


@router.put("/api/environments/{env}/system", responses=documented(404, 422))
def set_system(env: str, body: SetSystem, caller: Caller) -> JsonObject:
    """Say which system an environment stands for."""
    return _merged(env, MergeEnvironment(system=body.system, metadata=body.metadata), caller)


@router.put("/api/environments/{env}/category", responses=documented(404, 422))
def set_category(env: str, body: SetCategory, caller: Caller) -> JsonObject:
    """Say which vertical an environment belongs to."""
    return _merged(env, MergeEnvironment(category=body.category), caller)


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
        digests = jobs.digests(session, job_ids)
        jobs.forget(session, job_ids)
        once.forget(session, _CREATES, str(row.id))
        _note(session, caller, "deleted", row)
        session.delete(row)
    for version_id in versions:
        caller.state.envhost.forget(version_id)
    for job_id in job_ids:
        caller.state.logs.remove(job_id)
    caller.state.artifact_round.discard(digests)
    return {"status": "deleted", "name": row.name, "id": row.id}


@readable.get("/api/environments/{env}/endpoint", responses=documented(404, 409, 422, 503))
async def get_endpoint(
    env: str, caller: Reader, version: Annotated[int | None, Query(ge=1, le=10**9)] = None
) -> JsonObject:
    """Where a version answers, with a token; it is brought up if it is not there yet."""
    row = await run_in_threadpool(_version, caller, env, version)
    if row.status == lifecycle.DEPROVISIONED:  # maybe by another server, while this one serves it
        raise ConflictError(
            f"environment {row.environment.name!r} is deprovisioned",
            code="environment_deprovisioned",
            hint=f"POST /api/environments/{row.environment.name}/start brings it back",
        )
    caller.state.envhost.needed(row.id)
    hosted = await caller.state.envhost.ensure(row.id)
    return await run_in_threadpool(_grant, caller, row, hosted)


@router.post(
    "/api/environments/{env}/start", dependencies=[Once], responses=documented(404, 409, 503)
)
async def start_environment(env: str, caller: Caller) -> JsonObject:
    """Bring an environment up now, also a deprovisioned one."""
    version = await run_in_threadpool(_provisioned, caller, env)
    await caller.state.envhost.ensure(version.id)
    return await run_in_threadpool(
        lambda: render.environment(_version(caller, env, version.version))
    )


@router.post("/api/environments/{env}/stop", dependencies=[Once], responses=documented(404))
def stop_environment(env: str, caller: Caller) -> JsonObject:
    """End an environment's processes; the next one who needs it starts it again."""
    with caller.write() as session:
        row = environments.find(session, env)
        for version in row.versions:
            if version.status == lifecycle.READY:
                reason = "stopped by request; it starts again on demand"
                environments.set_reason(session, version.id, reason)
        _note(session, caller, "stopped", row)
    stopped = [version.version for version in row.versions if caller.state.envhost.stop(version.id)]
    return {"status": "stopped", "name": row.name, "versions_stopped": stopped}


@router.post("/api/environments/{env}/deprovision", dependencies=[Once], responses=documented(404))
def deprovision_environment(env: str, caller: Caller) -> JsonObject:
    """End an environment's processes until it is started again; its data stays."""
    with caller.write() as session:
        row = environments.find(session, env)
        for version in row.versions:
            environments.set_status(session, version.id, lifecycle.DEPROVISIONED)
        _note(session, caller, "deprovisioned", row)
    for version in row.versions:
        caller.state.envhost.stop(version.id)
    return {"status": lifecycle.DEPROVISIONED, "name": row.name, "id": row.id}


def _version(caller: CallerOf, env: str, version: int | None) -> VersionRow:
    with caller.read() as session:
        return environments.read_version(session, env, version)


def _provisioned(caller: CallerOf, env: str) -> VersionRow:
    with caller.write() as session:
        version = environments.find(session, env).latest
        if version.status == lifecycle.DEPROVISIONED:
            environments.set_status(session, version.id, lifecycle.REGISTERED)
        _note(session, caller, "started", version.environment)
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
        # In force only once it is known who has it.
        with caller.write() as session:
            data: JsonObject = {"version": version.version, "expires_at": expires_at}
            _note(session, caller, "endpoint_granted", version.environment, data)
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


def _merged(env: str, body: MergeEnvironment, caller: CallerOf) -> JsonObject:
    with caller.write() as session:
        row = environments.find(session, env)
        name = row.name if body.new_name is None else _require_name(body.new_name)
        if body.tool_names is not None:
            problem = tool_access.problem_with(
                body.access_pattern, body.tool_names, environments.tool_references(session, row)
            )
            if problem:
                raise ConfigurationError(problem, code="invalid_tool_access")
        before = row.name
        asked = _described(caller, body, name, body.vertical or body.category)
        asked = _with_world(asked, row)
        if asked.details.get("metadata") is not None:
            asked.details["metadata"] = {**_metadata(row), **(body.metadata or {})}
        version, is_new = environments.merge(session, row, asked)
        worlds.take_in(session, version)
        changes = sorted(body.model_dump(exclude_unset=True, exclude_none=True))
        _note(session, caller, "updated", row, {"fields": changes, "version": version.version})
        if before != row.name:
            _note(session, caller, "renamed", row, {"before": before})
    if is_new and version.source is not None:
        caller.state.envhost.start_soon(version.id)
    return {**render.environment(version), "environment_id": version.environment_id}


def _described(
    caller: CallerOf, body: CreateEnvironment | MergeEnvironment, name: str, vertical: str | None
) -> environments.Registration:
    try:
        source = parse_source(body.source)
    except SourceProblem as error:
        raise ConfigurationError(str(error), code="invalid_source") from error
    own = caller.principal.organisation_id == FIRST_ORGANISATION
    require_permitted(source, may_run_code=own or caller.state.settings.allow_code)
    given = body.model_dump(include=set(DETAILS), exclude_none=True)
    return environments.Registration(
        name=name,
        description=body.description,
        vertical=vertical,
        domain=body.domain or DOMAIN_OF_VERTICAL.get(vertical or ""),
        tags=body.tags,
        details=tool_access.settled(given),
        serves=source is not None,
        source=source.text if source else None,
        kwargs=body.kwargs,
        config=body.config,
    )


def _with_world(
    asked: environments.Registration, row: EnvironmentRow | None
) -> environments.Registration:
    """The registration, served by the built-in world of its vertical if by nothing else."""
    latest = None if row is None else row.latest
    source = asked.source if asked.serves or latest is None else latest.source
    if source is None:
        source = world_source(asked.vertical or (None if row is None else row.vertical))
        if source is not None:
            config = asked.config if asked.config is not None or latest is None else latest.config
            asked = replace(asked, serves=True, source=source, config=config)
    vertical = world_of(source)
    if vertical is None:
        return asked
    require_world_config(source, asked.config, asked.kwargs)
    return replace(asked, vertical=vertical.name, domain=asked.domain or vertical.domain)


def _metadata(row: EnvironmentRow) -> JsonObject:
    return fields(row.details.get("metadata"))


def _note(
    session: Session,
    caller: CallerOf,
    what: str,
    row: EnvironmentRow,
    data: JsonObject | None = None,
) -> None:
    audit.record(
        session,
        caller,
        action=f"environment.{what}",
        subject=f"environment:{row.id}",
        environment_name=row.name,
        data=data or {},
    )


def _require_name(name: str) -> str:
    canonical = canonical_name(name)
    problem = name_problem(canonical)
    if problem:
        raise ConfigurationError(problem, code="invalid_name")
    return canonical
