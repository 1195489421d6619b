"""Routes about organisations and the people in them, for admins."""

from fastapi import APIRouter
from rlcore import ConflictError, NotFoundError, PermissionDeniedError
from sqlalchemy.orm import Session

from rleaas.server import render_access
from rleaas.server.access import Admin, CallerOf
from rleaas.server.failures import documented
from rleaas.server.routes.access_bodies import (
    ChangeOrganisation,
    CreateOrganisation,
    PutMember,
    limits_of,
)
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules.grants import ADMIN, SCOPES
from rleaas.server.store import audit, keys, once, organisations
from rleaas.server.store.tables import OrganisationRow

router = APIRouter(tags=["access"], responses=documented(401, 403))
_BY_REFERENCE = "/api/organisations/{organisation}"


@router.post("/api/organisations", responses=documented(400, 409, 422))
def create_organisation(
    body: CreateOrganisation, caller: Admin, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Add an organisation with its first admin, whose `key` is told this once.

    For the admins of the organisation that the server began with.
    """
    _require_operator(caller)
    asked = idempotency("organisation", idempotency_key, body.model_dump(mode="json"))
    with caller.write() as session:
        if once.earlier(session, asked) is not None:
            raise ConflictError(
                "this organisation was made before, and the key of its admin was told",
                code="secret_was_told",
                hint="GET /api/organisations lists it",
            )
        row = organisations.create(session, body.name, limits_of(body.limits))
        user = organisations.user_of_email(session, body.admin)
        organisations.put_member(session, row.id, user, ADMIN)
        key, secret = keys.make(session, row.id, user, name="first admin key", scopes=SCOPES)
        once.keep(session, asked, str(row.id), {"id": row.id})
        audit.record(
            session,
            caller,
            action="organisation.created",
            subject=f"organisation:{row.id}",
            data={"name": row.name, "admin": user.email},
        )
        return {
            **render_access.organisation(row),
            "admin": {"user_id": user.id, "email": user.email},
            "key": render_access.new_key(key, secret),
        }


@router.get("/api/organisations")
def list_organisations(caller: Admin) -> JsonObject:
    """The organisation of whoever asks; the operators of the server see all."""
    with caller.read() as session:
        rows = [row for row in organisations.every(session) if _may_see(caller, row)]
        shown = [render_access.organisation(row) for row in rows]
    return {"organisations": shown, "count": len(shown)}


@router.get(_BY_REFERENCE, responses=documented(404))
def get_organisation(organisation: str, caller: Admin) -> JsonObject:
    """One organisation, by its name or id."""
    with caller.read() as session:
        return render_access.organisation(_find(session, caller, organisation))


@router.put(_BY_REFERENCE, responses=documented(400, 404, 422))
def change_organisation(organisation: str, body: ChangeOrganisation, caller: Admin) -> JsonObject:
    """Set the limits of an organisation; for the operators of the server."""
    _require_operator(caller)
    with caller.write() as session:
        row = _find(session, caller, organisation)
        row.limits = limits_of(body.limits)
        audit.record(
            session,
            caller,
            action="organisation.changed",
            subject=f"organisation:{row.id}",
            data={"limits": row.limits},
        )
        shown = render_access.organisation(row)
    caller.state.principals.forget()
    return shown


@router.get(f"{_BY_REFERENCE}/members", responses=documented(404))
def list_members(organisation: str, caller: Admin) -> JsonObject:
    """The people in an organisation, in the order in which they joined."""
    with caller.state.database.read() as session:
        row = _find(session, caller, organisation)
        shown = [render_access.member(one) for one in organisations.members(session, row.id)]
    return {"members": shown, "count": len(shown)}


@router.put(f"{_BY_REFERENCE}/members", responses=documented(400, 404, 409, 422))
def put_member(organisation: str, body: PutMember, caller: Admin) -> JsonObject:
    """Take somebody into an organisation, or change their role.

    Who is no admin any more has no key with the scope `admin` either.
    """
    with caller.state.database.write() as session:
        row = _find(session, caller, organisation)
        user = organisations.user_of_email(session, body.email)
        organisations.put_member(session, row.id, user, body.role)
        audit.record(
            session,
            caller,
            action="member.put",
            subject=f"user:{user.id}",
            data={"organisation": row.name, "email": user.email, "role": body.role},
        )
        shown = render_access.member(organisations.find_member(session, row.id, user.id))
    caller.state.principals.forget()
    return shown


@router.delete(f"{_BY_REFERENCE}/members/{{user}}", responses=documented(404, 409))
def remove_member(organisation: str, user: str, caller: Admin) -> JsonObject:
    """Take somebody out of an organisation, by user id or email; their keys there end at once."""
    with caller.state.database.write() as session:
        row = _find(session, caller, organisation)
        found = organisations.find_member(session, row.id, user)
        organisations.remove_member(session, row.id, found)
        audit.record(
            session,
            caller,
            action="member.removed",
            subject=f"user:{found.user.id}",
            data={"organisation": row.name, "email": found.user.email},
        )
    caller.state.principals.forget()
    return {"removed": True, "user_id": found.user.id}


def _require_operator(caller: CallerOf) -> None:
    if not caller.principal.is_operator:
        raise PermissionDeniedError(
            "this is for the operators of the server",
            hint="They are the admins of the organisation that it began with",
        )


def _find(session: Session, caller: CallerOf, reference: str) -> OrganisationRow:
    row = organisations.find(session, reference)
    if not _may_see(caller, row):
        raise NotFoundError(kind="organisation", ref=reference)
    return row


def _may_see(caller: CallerOf, row: OrganisationRow) -> bool:
    return caller.principal.is_operator or row.id == caller.principal.organisation_id
