"""Routes about verifiers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from rlcore import PermissionDeniedError, UnsupportedRequestError
from sqlalchemy.orm import Session

from rleaas.server import render_catalogue as render
from rleaas.server.access import Caller, CallerOf, require_user
from rleaas.server.failures import Problem, documented
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.catalogue_bodies import Cursor, PageSize
from rleaas.server.routes.repeats import Once, RepeatableRoute
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.routes.verifier_bodies import (
    JudgeEpisode,
    SetEnabled,
    VerifierFields,
)
from rleaas.server.rules.catalogue import ACTIVE, DISABLED, verifier_type
from rleaas.server.rules.verifiers import is_built
from rleaas.server.store import audit, catalogue, once, verifier_audits, verifiers
from rleaas.server.store.tables import FIRST_ORGANISATION, VerifierRow
from rleaas.server.store.verifier_definitions import finder
from rleaas.verify import Definition, Trajectory, judge_of, judged
from rleaas.verify.definition import PYTHON

router = APIRouter(
    route_class=RepeatableRoute,
    tags=["verifiers"],
    dependencies=[Depends(require_user)],
    responses=documented(401),
)

UNSUPPORTED: dict[int | str, dict[str, object]] = {
    501: {"model": Problem, "description": "Not Implemented"}
}
_COLUMNS = frozenset(
    {
        "id",
        "name",
        "type",
        "system",
        "status",
        "description",
        "logic",
        "config",
        "failure_policy",
        "environment",
        "environment_id",
        "audited",
        # Of the answers of other routes, which clients send back with the rest.
        "success",
        "verifier_id",
    }
)


@router.post("/api/verifiers", responses=documented(400, 404, 409, 422))
def create_verifier(
    body: VerifierFields, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add a verifier, or change the one with this id; what it judges by makes a new version."""
    _require_code_allowed(caller, body.type)
    key = idempotency("verifiers", idempotency_key, body.model_dump(exclude_unset=True))
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = None if body.id is None else catalogue.by_id(session, VerifierRow, body.id)
        if row is None:
            row = verifiers.create(session, body.id, change_of(body))
            _record(session, caller, row, "created")
        else:
            _require_code_allowed(caller, body.type or row.type)
            verifiers.apply(session, row, change_of(body))
            _record(session, caller, row, "updated")
        reply = rendered(session, row)
        once.keep(session, key, row.id, reply)
    return reply


@router.get("/api/verifiers", responses=documented(404, 422))
def list_verifiers(
    caller: Caller,
    environment: str | None = None,
    kind: Annotated[str | None, Query(alias="type")] = None,
    system: str | None = None,
    limit: PageSize = 0,
    cursor: Cursor = "",
) -> JsonObject:
    """Verifiers, oldest first; of an environment those made for it and those attached to it."""
    with caller.read() as session:
        rows, following = verifiers.page(
            session,
            environment_id=catalogue.environment_id(session, environment),
            kind=str(verifier_type(kind)) if kind else None,
            system=system,
            after=int(cursor or 0),
            limit=limit,
        )
        names = catalogue.environment_names(session, (row.environment_id for row in rows))
    shown = [render.verifier(row, names) for row in rows]
    return {"verifiers": shown, "count": len(shown), "cursor": following}


@router.get("/api/verifiers/{verifier_id}", responses=documented(404))
def get_verifier(verifier_id: str, caller: Caller) -> JsonObject:
    """One verifier."""
    with caller.read() as session:
        row = verifiers.find(session, verifier_id)
        counts = verifier_audits.is_audited(session, row, caller.state.judging.model)
        return {**rendered(session, row), "audited": counts}


@router.get("/api/verifiers/{verifier_id}/versions", responses=documented(404))
def list_versions(verifier_id: str, caller: Caller) -> JsonObject:
    """What a verifier judged by, oldest first."""
    with caller.read() as session:
        row = verifiers.find(session, verifier_id)
        shown = [render.verifier_version(one, row.id) for one in verifiers.versions(session, row)]
    return {"versions": shown, "count": len(shown)}


@router.put("/api/verifiers/{verifier_id}", responses=documented(400, 404, 422))
def update_verifier(verifier_id: str, body: VerifierFields, caller: Caller) -> JsonObject:
    """Change the fields that are sent, or all of them; the answer is the whole record."""
    with caller.write() as session:
        before = verifiers.find(session, verifier_id)
        _require_code_allowed(caller, body.type or before.type)
        row = verifiers.apply(session, before, change_of(body))
        _record(session, caller, row, "updated")
        return rendered(session, row)


@router.put("/api/verifiers/{verifier_id}/enabled", responses=documented(400, 404, 422))
def set_enabled(verifier_id: str, body: SetEnabled, caller: Caller) -> JsonObject:
    """Say whether a verifier judges; saying it again changes nothing."""
    with caller.write() as session:
        return _switch(session, caller, verifiers.find(session, verifier_id), body.enabled)


@router.patch("/api/verifiers/{verifier_id}/disable", responses=documented(404))
def toggle_verifier(verifier_id: str, caller: Caller) -> JsonObject:
    """Disable a verifier, or enable a disabled one; `PUT .../enabled` says which is meant."""
    with caller.write() as session:
        row = verifiers.find(session, verifier_id)
        return _switch(session, caller, row, row.status != ACTIVE)


@router.delete("/api/verifiers/{verifier_id}", responses=documented(404, 409))
def delete_verifier(verifier_id: str, caller: Caller) -> JsonObject:
    """Delete a verifier with its versions; environments that it judged go without it.

    One that a composite consists of stays: 409, which names the composite.
    """
    with caller.write() as session:
        row = verifiers.find(session, verifier_id)
        verifiers.remove(session, row)
        _record(session, caller, row, "deleted")
    return {"status": "deleted", "id": row.id}


@router.post("/api/verifiers/{verifier_id}/duplicate", responses=documented(404, 409))
def duplicate_verifier(
    verifier_id: str, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add a verifier that judges the same, with an id of its own and version 1."""
    key = idempotency("verifiers.duplicate", idempotency_key, {"id": verifier_id})
    with caller.write() as session:
        before = once.earlier(session, key)
        if before is not None:
            return before
        row = verifiers.find(session, verifier_id)
        made = verifiers.copy(session, row, name=_copy_name(row.name), source="cloned")
        _record(session, caller, made, "created", {"duplicate_of": row.id})
        reply = rendered(session, made)
        once.keep(session, key, made.id, reply)
    return reply


@router.post(
    "/api/verifiers/{verifier_id}/test",
    dependencies=[Once],
    responses={**documented(400, 404, 422), **UNSUPPORTED},
)
def test_verifier(verifier_id: str, body: JudgeEpisode, caller: Caller) -> JsonObject:
    """Judge an episode that is sent along, also by a verifier that is disabled.

    Nothing is kept of it, and a failure is no event. A verifier that could not judge says so in
    `outcome`: `grader_error` has neither a score nor a pass.
    """
    with caller.read() as session:
        row = verifiers.find(session, verifier_id)
        if not is_built(row.type):
            raise UnsupportedRequestError(
                f"{row.type} verifiers cannot be tested: this build has no engine for them",
                code="verifier_engine_missing",
                hint="Nothing was scored",
            )
        definitions: dict[str, Definition] = {}
        find = finder(session, definitions)
        definition = find(row.id)
        # Whatever it consists of is read now: nothing holds the database while a model is asked.
        judge_of(definition, find, means=caller.state.judging.checking)
    trajectory = Trajectory.of(body.trajectory, body.state)
    with caller.state.judging.judge(definition, definitions.__getitem__) as judge:
        return judged(judge, trajectory).to_dict()


def rendered(session: Session, row: VerifierRow) -> JsonObject:
    """The verifier with the name of its environment."""
    return render.verifier(row, catalogue.environment_names(session, [row.environment_id]))


def _require_code_allowed(caller: CallerOf, kind: str | None) -> None:
    own = caller.principal.organisation_id == FIRST_ORGANISATION
    if kind == PYTHON and not (own or caller.state.settings.allow_code):
        raise PermissionDeniedError(
            "a python verifier is code, which this server runs only for its operator",
            code="code_not_allowed",
            hint="The operator can start the server with --allow-code; rule_based needs no code",
        )


def _switch(session: Session, caller: CallerOf, row: VerifierRow, enabled: bool) -> JsonObject:
    status = ACTIVE if enabled else DISABLED
    if row.status != status:
        verifiers.apply(session, row, verifiers.VerifierChange(status=status))
        _record(session, caller, row, "enabled" if enabled else "disabled")
    return {"success": True, "verifier_id": row.id, **rendered(session, row)}


def _record(
    session: Session,
    caller: CallerOf,
    row: VerifierRow,
    what: str,
    data: JsonObject | None = None,
) -> None:
    audit.record(
        session,
        caller,
        action=f"verifier.{what}",
        subject=f"verifier:{row.id}",
        data={"version": row.version, **(data or {})},
    )


def _copy_name(name: str) -> str:
    suffix = " (Copy)"
    return name[: 200 - len(suffix)] + suffix


def change_of(body: VerifierFields) -> verifiers.VerifierChange:
    """What the body says."""
    given = body.model_dump(exclude_unset=True)
    policy = body.failure_policy
    return verifiers.VerifierChange(
        name=body.name,
        type=body.type,
        system=body.system,
        status=body.status,
        description=body.description,
        logic=body.config if body.logic is None else body.logic,
        failure_policy=None if policy is None else policy.model_dump(exclude_unset=True),
        environment=body.named_environment,
        details={key: value for key, value in given.items() if key not in _COLUMNS},
    )
