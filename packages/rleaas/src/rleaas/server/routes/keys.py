"""Routes about API keys, and about whoever asks."""

from datetime import UTC, datetime
from typing import cast

from fastapi import APIRouter
from rlcore import ConflictError, NotFoundError, PermissionDeniedError, Secret
from sqlalchemy.orm import Session

from rleaas.server import render_access
from rleaas.server.access import Caller, CallerOf
from rleaas.server.failures import documented
from rleaas.server.routes.access_bodies import ChangeProfile, CreateKey, limits_of
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules.grants import ADMIN, Role, expiry, scopes_to_give
from rleaas.server.store import audit, keys, once, organisations
from rleaas.server.store.tables import ApiKeyRow, UserRow

router = APIRouter(tags=["access"], responses=documented(401, 403))


@router.post("/api/keys", responses=documented(400, 404, 409, 422))
def create_key(
    body: CreateKey, caller: Caller, idempotency_key: IdempotencyHeader = None
) -> JsonObject:
    """Make a key; `key` is its secret, which is told this once and stored nowhere.

    A request that is repeated with its idempotency key gets the same key with a new secret, as long
    as nobody has used it; afterwards it is refused.
    """
    principal = caller.principal
    asked = idempotency("key", idempotency_key, body.model_dump(mode="json"))
    now = datetime.now(UTC)
    with caller.write() as session:
        earlier = once.earlier(session, asked)
        if earlier is not None:
            return _told_again(session, str(earlier["id"]))
        holder, role = _holder(session, caller, body.user)
        row, secret = keys.make(
            session,
            principal.organisation_id,
            holder,
            name=body.name,
            scopes=scopes_to_give(body.scopes, principal.scopes, role),
            expires_at=expiry(
                now,
                expires_in=body.expires_in,
                expires_at=body.expires_at,
                latest=principal.expires_at,
            ),
            limits=_limits(caller, body),
        )
        once.keep(session, asked, str(row.id), {"id": row.id})
        audit.record(
            session,
            caller,
            action="key.created",
            subject=f"key:{row.id}",
            data={"prefix": row.prefix, "scopes": row.scopes, "user_id": row.user_id},
        )
        return render_access.new_key(row, secret)


@router.get("/api/keys")
def list_keys(caller: Caller) -> list[JsonObject]:
    """The keys of whoever asks, newest first; an admin sees all of the organisation."""
    with caller.read() as session:
        return [render_access.api_key(row) for row in keys.every(session) if _may_see(caller, row)]


@router.delete("/api/keys/{key_id}", responses=documented(404, 409))
def revoke_key(key_id: str, caller: Caller) -> JsonObject:
    """End a key at once; whoever is not an admin ends their own only."""
    with caller.write() as session:
        row = keys.find(session, key_id)
        if not _may_see(caller, row):
            raise NotFoundError(kind="api_key", ref=key_id)
        if row.is_active:
            row.is_active = False
            audit.record(
                session,
                caller,
                action="key.revoked",
                subject=f"key:{row.id}",
                data={"prefix": row.prefix},
            )
    caller.state.principals.forget()
    return {"revoked": True, "id": key_id}


@router.get("/api/me")
def me(caller: Caller) -> JsonObject:
    """Who asks, for which organisation, and what they may."""
    principal = caller.principal
    return {
        "user_id": principal.user_id,
        "email": principal.email,
        "org": principal.organisation,
        "organisation_id": principal.organisation_id,
        "scopes": sorted(principal.scopes),
        "key_id": None if principal.key_id is None else str(principal.key_id),
        "limits": dict(principal.limits),
        "expires_at": principal.expires_at,
    }


@router.get("/api/sso-status")
def sso_status(caller: Caller) -> JsonObject:
    """Whether people sign in elsewhere: not at this server, which knows API keys only."""
    return {"sso_enabled": False, "provider": "", "domains": []}


@router.get("/api/profile")
def get_profile(caller: Caller) -> JsonObject:
    """What the person who asks says about themselves."""
    principal = caller.principal
    with caller.read() as session:
        user = session.get(UserRow, principal.user_id)
    # Somebody of the open mode, or with the operator's key, who has said nothing yet.
    unknown = UserRow(id=principal.user_id, email=principal.email, profile={})
    return render_access.profile(user or unknown, principal.organisation_id)


@router.put("/api/profile", responses=documented(400, 422))
def change_profile(body: ChangeProfile, caller: Caller) -> JsonObject:
    """Change the fields that are sent, and answer with all of them."""
    principal = caller.principal
    changes = body.model_dump(exclude_unset=True)
    with caller.write() as session:
        user = _asker(session, caller)
        merged = {**render_access.said(user, principal.organisation_id), **changes}
        said = {name: value for name, value in merged.items() if value is not None}
        user.profile = {**user.profile, str(principal.organisation_id): said}
        audit.record(
            session,
            caller,
            action="profile.changed",
            subject=f"user:{user.id}",
            data={"fields": sorted(changes)},
        )
        return render_access.profile(user, principal.organisation_id)


def _asker(session: Session, caller: CallerOf) -> UserRow:
    principal = caller.principal
    return organisations.user_of_id(session, principal.user_id, principal.email)


def _holder(session: Session, caller: CallerOf, wanted: str | None) -> tuple[UserRow, Role]:
    principal = caller.principal
    own: Role = "admin" if ADMIN in principal.scopes else "member"
    if wanted is None or wanted in (principal.user_id, principal.email):
        return _asker(session, caller), own
    if own != "admin":
        raise PermissionDeniedError(
            "only an admin makes keys for others", hint="Leave `user` out for one of your own"
        )
    found = organisations.find_member(session, principal.organisation_id, wanted)
    return found.user, cast("Role", found.member.role)


def _limits(caller: CallerOf, body: CreateKey) -> JsonObject:
    principal = caller.principal
    if ADMIN in principal.scopes:
        return limits_of(body.limits)
    if body.limits is not None:
        raise PermissionDeniedError(
            "only an admin sets the limits of a key", hint="Leave `limits` out"
        )
    # Else a key with limits could make itself one without.
    return dict[str, object](principal.limits)


def _may_see(caller: CallerOf, row: ApiKeyRow) -> bool:
    return ADMIN in caller.principal.scopes or row.user_id == caller.principal.user_id


def _told_again(session: Session, key_id: str) -> JsonObject:
    row = keys.find(session, key_id)
    if row.last_used_at is not None or not row.is_active:
        raise ConflictError(
            "this key was made before, and its secret was told",
            code="secret_was_told",
            hint="Revoke it, and ask for another with a new idempotency key",
        )
    secret: Secret = keys.renew(row)
    return render_access.new_key(row, secret)
