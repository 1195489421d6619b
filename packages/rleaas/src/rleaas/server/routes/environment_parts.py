"""Routes about what an environment is put together from: its scenarios and its verifiers."""

from fastapi import APIRouter, Depends
from rlcore import InvalidRequestError
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import documented
from rleaas.server.routes import scenarios as scenario_routes
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.catalogue_bodies import Cursor, PageSize
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.scenario_bodies import ScenarioFields
from rleaas.server.routes.verifier_bodies import AttachVerifier, CloneFrom
from rleaas.server.routes.verifiers import rendered
from rleaas.server.store import audit, environments, once, scenarios, verifiers
from rleaas.server.store.tables import EnvironmentRow

router = APIRouter(
    tags=["environments"], dependencies=[Depends(require_user)], responses=documented(401)
)


@router.post("/api/environments/{env}/scenarios", responses=documented(400, 404, 409, 422))
def create_scenario(
    env: str, body: ScenarioFields, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add a scenario to an environment; the answer has the id that it got."""
    given = body.model_dump(exclude_unset=True)
    key = idempotency("environment.scenarios", idempotency_key, {"env": env, **given})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        place = str(environments.find(session, env).id)
        reply = scenario_routes.make(session, caller, body, place)
        once.keep(session, key, str(reply["id"]), reply)
    return reply


@router.get("/api/environments/{env}/scenarios", responses=documented(404, 422))
def list_scenarios(
    env: str, caller: Caller, limit: PageSize = 0, cursor: Cursor = ""
) -> JsonObject:
    """An environment's scenarios, oldest first; all of them, or a page."""
    with caller.read() as session:
        row = environments.find(session, env)
        found, following = scenarios.page(
            session, environment_id=row.id, category=None, after=int(cursor or 0), limit=limit
        )
    shown = [render.scenario(one, {row.id: row.name}) for one in found]
    return {"scenarios": shown, "count": len(shown), "cursor": following}


@router.post("/api/environments/{env}/clone-scenarios", responses=documented(400, 404, 409, 422))
def clone_scenarios(
    env: str, body: CloneFrom, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Copy another environment's scenarios to this one, with ids of their own."""
    key = idempotency("clone.scenarios", idempotency_key, {"env": env, "source": body.source})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        target, source = _two(session, env, str(body.source))
        ids = [row.id for row in scenarios.clone(session, source, target)]
        reply = _cloned(session, caller, "scenarios", target, source, ids)
        once.keep(session, key, str(target.id), reply)
    return reply


@router.post("/api/environments/{env}/verifiers", responses=documented(400, 404, 409, 422))
def attach_verifier(
    env: str, body: AttachVerifier, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Let a verifier judge an environment; attached again, it has the new weight."""
    given = body.model_dump()
    key = idempotency("environment.verifiers", idempotency_key, {"env": env, **given})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        place = environments.find(session, env)
        row = verifiers.find(session, body.verifier_id)
        verifiers.attach(session, place, row, body.weight)
        _record(session, caller, place, "verifier_attached", given)
        reply: JsonObject = {
            "status": "attached",
            "environment": place.name,
            "environment_id": place.id,
            "verifier_id": row.id,
            "weight": body.weight,
        }
        once.keep(session, key, row.id, reply)
    return reply


@router.get("/api/environments/{env}/verifiers", responses=documented(404))
def list_attached(env: str, caller: Caller) -> JsonObject:
    """The verifiers that judge an environment, with their weights."""
    with caller.read() as session:
        place = environments.find(session, env)
        shown = [
            {**rendered(session, row), "verifier_id": row.id, "weight": attachment.weight}
            for row, attachment in verifiers.attached(session, place)
        ]
    return {"verifiers": shown, "count": len(shown)}


@router.delete("/api/environments/{env}/verifiers/{verifier_id}", responses=documented(404))
def detach_verifier(env: str, verifier_id: str, caller: Caller) -> JsonObject:
    """Let a verifier judge an environment no more; the verifier stays."""
    with caller.write() as session:
        place = environments.find(session, env)
        row = verifiers.find(session, verifier_id)
        verifiers.detach(session, place, row)
        _record(session, caller, place, "verifier_detached", {"verifier_id": row.id})
    return {"status": "detached", "environment": place.name, "verifier_id": row.id}


@router.post("/api/environments/{env}/clone-verifiers", responses=documented(400, 404, 409, 422))
def clone_verifiers(
    env: str, body: CloneFrom, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Copy another environment's verifiers to this one, attached with the same weights."""
    key = idempotency("clone.verifiers", idempotency_key, {"env": env, "source": body.source})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        target, source = _two(session, env, str(body.source))
        ids = [row.id for row in verifiers.clone(session, source, target)]
        reply = _cloned(session, caller, "verifiers", target, source, ids)
        once.keep(session, key, str(target.id), reply)
    return reply


def _two(session: Session, env: str, source: str) -> tuple[EnvironmentRow, EnvironmentRow]:
    target, other = environments.find(session, env), environments.find(session, source)
    if target.id == other.id:
        raise InvalidRequestError(
            f"{target.name!r} cannot be cloned into itself", hint="Name another source"
        )
    return target, other


def _cloned(
    session: Session,
    caller: CallerOf,
    what: str,
    target: EnvironmentRow,
    source: EnvironmentRow,
    ids: list[str],
) -> JsonObject:
    told: JsonObject = {"source": source.name, "ids": ids}
    _record(session, caller, target, f"{what}_cloned", told)
    return {"status": "ok", "cloned": len(ids), "target": target.name, **told}


def _record(
    session: Session, caller: CallerOf, place: EnvironmentRow, what: str, data: JsonObject
) -> None:
    audit.record(
        session,
        caller,
        action=f"environment.{what}",
        subject=f"environment:{place.id}",
        environment_name=place.name,
        data=data,
    )
