"""Routes about deployments: records, manifests, and what is known of where they run.

This server makes no clouds or clusters and applies nothing to one; no answer pretends that it did.
"""

import time
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError, ConflictError, Secret
from sqlalchemy.orm import Session

from rleaas.server.access import Caller, CallerOf, require_still, require_user
from rleaas.server.dialling import Answer
from rleaas.server.failures import documented
from rleaas.server.probes import parsed
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.deployment_bodies import (
    CheckAvailability,
    ConfigureModel,
    CreateDeployment,
    ProbeModel,
    SaveUrls,
    SetAppStatus,
)
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import deployments as rules
from rleaas.server.rules.json_values import fields, items, text
from rleaas.server.store import audit, deployments, environments, once
from rleaas.server.store.tables import DeploymentRow, EnvironmentRow, EventRow

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["deployments"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)

PURPOSE = "deployments"
_LOOK_SECONDS = 0.25
_MARGIN_SECONDS = 2.0  # a client that waits as long as it asked for must get the answer


@router.post("/api/deployments", responses=documented(404, 409, 422))
def create_deployment(
    body: CreateDeployment, caller: Caller, key: IdempotencyHeader = None
) -> JsonObject:
    """Record what is to run where; it is `not_connected` until somebody applies its manifests."""
    request = idempotency("deployments", key, body.model_dump(mode="json", exclude={"repo_token"}))
    with caller.write() as session:
        done = once.earlier(session, request)
        if done is not None:
            return done
        environment = environments.find(session, body.env_name) if body.env_name else None
        record = _record(body, environment, caller)
        row = deployments.add(session, environment, record, rules.NOT_CONNECTED)
        deployments.log(session, row, f"recorded for cluster {row.cluster_name}")
        deployments.log(session, row, rules.NO_CLUSTER)
        _note(session, caller, "created", row)
        reply = deployments.shown(session, row)
        once.keep(session, request, row.id, reply)
    return reply


@router.get("/api/deployments", responses=documented(404))
def list_deployments(caller: Caller, env_name: str | None = None) -> JsonObject:
    """Every deployment, or those of one environment."""
    with caller.read() as session:
        environment = environments.find(session, env_name) if env_name else None
        rows = deployments.page(session, environment)
        found = [deployments.shown(session, row) for row in rows]
    return {"deployments": found, "count": len(found)}


@router.get("/api/deployments/{id}", responses=documented(404))
def get_deployment(id: str, caller: Caller) -> JsonObject:
    """One deployment."""
    with caller.read() as session:
        return deployments.shown(session, deployments.find(session, id))


@router.delete("/api/deployments/{id}", responses=documented(404))
def delete_deployment(id: str, caller: Caller) -> JsonObject:
    """Forget a deployment; what runs on a cluster is not touched."""
    with caller.write() as session:
        row = deployments.find(session, id)
        _note(session, caller, "deleted", row)
        session.delete(row)
    return {"status": "deleted", "id": id}


@router.post("/api/deployments/{id}/sync", dependencies=[Once], responses=documented(404))
def sync_deployment(id: str, caller: Caller) -> JsonObject:
    """Say what is known of the cluster: nothing, as long as none is connected."""
    with caller.write() as session:
        row = deployments.find(session, id)
        row.status = rules.NOT_CONNECTED
        deployments.change(row, status_msg=rules.NO_CLUSTER)
        _note(session, caller, "synced", row)
        return deployments.shown(session, row)


@router.post("/api/deployments/{id}/deploy-app", dependencies=[Once], responses=documented(404))
def deploy_app(id: str, caller: Caller) -> JsonObject:
    """Say that the application has to be applied by hand; nothing is deployed from here."""
    with caller.write() as session:
        row = deployments.find(session, id)
        row.app_status = rules.NOT_CONNECTED
        deployments.change(row, app_status_msg=rules.NO_CLUSTER)
        deployments.log(session, row, rules.NO_CLUSTER)
        _note(session, caller, "app_asked_for", row)
        return deployments.shown(session, row)


@router.post(
    "/api/deployments/{id}/set-app-status", dependencies=[Once], responses=documented(404, 422)
)
def set_app_status(id: str, body: SetAppStatus, caller: Caller) -> JsonObject:
    """Record how somebody says that the application is, and who says so."""
    with caller.write() as session:
        row = deployments.find(session, id)
        row.app_status = body.status
        deployments.change(row, app_status_msg=body.message, app_status_from=caller.principal.actor)
        line = f"{caller.principal.actor} says: {body.status}"
        deployments.log(session, row, f"{line}: {body.message}" if body.message else line)
        _note(session, caller, "app_status_set", row, {"status": body.status})
        return deployments.shown(session, row)


@router.get("/api/deployments/{id}/logs/stream", responses=documented(404, 422))
async def stream_logs(
    request: Request,
    id: str,
    caller: Caller,
    cursor: Annotated[int, Query(ge=0, le=2**53)] = 0,
    wait_seconds: float = 20.0,
) -> JsonObject:
    """The lines after `cursor`; without any, held for a while as long as some may come."""
    held = min(max(wait_seconds, 1.0), 30.0) - _MARGIN_SECONDS
    until = time.monotonic() + held
    while True:
        row, found = await run_in_threadpool(_lines, caller, id, cursor)
        await require_still(request, caller)
        settled = row.app_status in rules.SETTLED
        if found or settled or caller.state.draining or time.monotonic() >= until:
            break
        await anyio.sleep(_LOOK_SECONDS)
    lines = [str(event.data.get("line", "")) for event in found]
    return {
        "lines": lines,
        "cursor": found[-1].id if found else cursor,
        "done": settled,
        "status": row.status,
        "app_status": row.app_status,
        "app_status_msg": row.record.get("app_status_msg", ""),
        "events": [],
        "suggestions": [rules.NO_CLUSTER] if row.app_status == rules.NOT_CONNECTED else [],
        "terminal_event": {"app_status": row.app_status} if settled else None,
    }


@router.put("/api/deployments/{id}/urls", responses=documented(404, 422))
def save_urls(id: str, body: SaveUrls, caller: Caller) -> JsonObject:
    """Replace the URLs of a deployment."""
    with caller.write() as session:
        row = deployments.find(session, id)
        deployments.change(row, deployment_urls=[url.model_dump() for url in body.urls])
        _note(session, caller, "urls_saved", row, {"urls": [url.url for url in body.urls]})
        return deployments.shown(session, row)


@router.post(
    "/api/deployments/{id}/availability-test", dependencies=[Once], responses=documented(404, 422)
)
async def check_availability(
    id: str, caller: Caller, body: CheckAvailability | None = None
) -> JsonObject:
    """Ask each URL of a deployment until all answer or the time is over."""
    asked = body or CheckAvailability.model_validate({})
    row = await run_in_threadpool(_row, caller, id)
    urls = [fields(url) for url in items(row.record.get("deployment_urls"))]
    started = time.monotonic()
    until = started + asked.timeout_seconds
    checks: list[JsonObject] = []
    while True:
        checks = await run_in_threadpool(_checks, caller, urls, until)
        left = until - time.monotonic()
        if all(check["reachable"] for check in checks) or left <= asked.interval_seconds:
            break
        if caller.state.draining:
            break
        await anyio.sleep(asked.interval_seconds)
    reachable = sum(1 for check in checks if check["reachable"])
    message = f"{reachable} of {len(checks)} URLs answer" if checks else "it has no URLs to ask"
    return {
        "acknowledged": True,
        "deployment_id": id,
        "message": message,
        "checks": checks,
        "elapsed_seconds": round(time.monotonic() - started, 3),
    }


@router.post(
    "/api/deployments/{id}/probe-model", dependencies=[Once], responses=documented(404, 422)
)
def probe_model(id: str, caller: Caller, body: ProbeModel | None = None) -> JsonObject:
    """Ask a model one question."""
    asked = body or ProbeModel.model_validate({})
    row = _row(caller, id)
    known = [fields(url) for url in items(row.record.get("deployment_urls"))]
    stored = next((text(url.get("url")) for url in known if url.get("type") == "model"), None)
    url = asked.model_url or stored
    if url is None:
        raise ConfigurationError(
            "the deployment has no model URL",
            code="model_url_missing",
            hint="Pass model_url, or configure one with POST .../configure-model",
        )
    model = asked.model or text(row.record.get("model_id")) or ""
    endpoint, answer = caller.state.probes.question(url, model, asked.prompt, stream=asked.stream)
    return {
        "ok": answer.status_code is not None and answer.status_code < 400,
        "endpoint": endpoint,
        "status_code": answer.status_code,
        "result": parsed(answer.body) if answer.error is None else None,
        "error": answer.error,
    }


@router.post(
    "/api/deployments/{id}/configure-model",
    dependencies=[Once],
    responses=documented(404, 409, 422),
)
def configure_model(id: str, body: ConfigureModel, caller: Caller) -> JsonObject:
    """Register where a model that runs already is reached; none is started from here."""
    if not body.endpoint_url:
        raise ConflictError(
            "this server is connected to no cluster and can start no model",
            code="cluster_not_connected",
            hint="Start it yourself and pass its endpoint_url",
        )
    problem = rules.url_problem(body.endpoint_url)
    if problem:
        raise ConfigurationError(problem, code="invalid_url")
    with caller.write() as session:
        row = deployments.find(session, id)
        others = [url for url in items(row.record.get("deployment_urls")) if not _is_model(url)]
        model = {"label": body.model_id, "url": body.endpoint_url, "type": "model"}
        sealed = fields(row.record.get(deployments.SECRETS))
        if body.hf_token:
            sealed = {**sealed, "hf_token": caller.state.keys.seal(PURPOSE, Secret(body.hf_token))}
        changes: JsonObject = {deployments.SECRETS: sealed, "model_id": body.model_id}
        if body.namespace:
            changes["model_namespace"] = body.namespace
        deployments.change(row, deployment_urls=[*others, model], **changes)
        _note(session, caller, "model_configured", row, {"model_id": body.model_id})
        return deployments.shown(session, row)


def _record(
    body: CreateDeployment, environment: EnvironmentRow | None, caller: CallerOf
) -> JsonObject:
    """What was asked for, over what the environment's infrastructure says."""
    given = body.model_dump(exclude_none=True, exclude={"env_name", "repo_token"})
    asked = {name: value for name, value in given.items() if value != ""}
    wanted = {} if environment is None else fields(environment.details.get("infrastructure"))
    record = {**rules.from_infrastructure(wanted), **asked}
    provider = rules.provider_named(text(record.get("provider")) or "")
    if provider is None:
        raise ConfigurationError(
            f"{record.get('provider', '')!r} is not a provider",
            code="invalid_provider",
            hint=f"Use one of {', '.join(rules.PROVIDERS)}",
        )
    record["provider"] = provider
    if not text(record.get("cluster_name")):
        if environment is None:
            raise ConfigurationError(
                "the deployment names neither a cluster nor an environment to name one after",
                code="cluster_name_missing",
                hint="Pass cluster_name or env_name",
            )
        record["cluster_name"] = rules.cluster_name(provider, environment.name)
    record["status_msg"] = rules.NO_CLUSTER
    record["app_status_msg"] = rules.NO_CLUSTER
    if body.repo_token:
        sealed = caller.state.keys.seal(PURPOSE, Secret(body.repo_token))
        record[deployments.SECRETS] = {"repo_token": sealed}
    return record


def _checks(caller: CallerOf, urls: list[JsonObject], until: float) -> list[JsonObject]:
    checks: list[JsonObject] = []
    for url in urls:
        left = until - time.monotonic()
        late = Answer(None, error="there was no time left to ask it")
        answer = caller.state.probes.get(str(url.get("url")), left) if left > 0 else late
        checks.append(
            {
                "label": url.get("label"),
                "url": url.get("url"),
                "reachable": answer.status_code is not None and answer.status_code < 500,
                "status_code": answer.status_code,
                "error": answer.error,
            }
        )
    return checks


def _row(caller: CallerOf, id: str) -> DeploymentRow:
    with caller.read() as session:
        return deployments.find(session, id)


def _lines(caller: CallerOf, id: str, cursor: int) -> tuple[DeploymentRow, list[EventRow]]:
    with caller.read() as session:
        row = deployments.find(session, id)
        return row, list(deployments.lines(session, row, cursor))


def _is_model(url: object) -> bool:
    return fields(url).get("type") == "model"


def _note(
    session: Session,
    caller: CallerOf,
    what: str,
    row: DeploymentRow,
    data: JsonObject | None = None,
) -> None:
    environment = None
    if row.environment_id is not None:
        environment = session.get(EnvironmentRow, row.environment_id)
    audit.record(
        session,
        caller,
        action=f"deployment.{what}",
        subject=f"deployment:{row.id}",
        environment_name=None if environment is None else environment.name,
        data=data or {},
    )
