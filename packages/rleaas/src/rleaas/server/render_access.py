"""How keys, people and organisations look in answers."""

from typing import cast

from rlcore import Secret

from rleaas.server.store.organisations import Membership
from rleaas.server.store.tables import ApiKeyRow, JsonObject, OrganisationRow, UserRow

PROFILE_FIELDS = ("full_name", "title", "bio", "avatar_url")


def api_key(row: ApiKeyRow) -> JsonObject:
    """A key without its secret."""
    return {
        "id": str(row.id),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "limits": row.limits,
        "user_id": row.user_id,
        "is_active": row.is_active,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
    }


def new_key(row: ApiKeyRow, secret: Secret) -> JsonObject:
    """A key with its secret, which is told this once."""
    return {**api_key(row), "key": secret.reveal()}


def said(user: UserRow, organisation_id: int) -> JsonObject:
    """What a person has said about themselves in this organisation.

    Its admins may act for its members, but only there.
    """
    found = user.profile.get(str(organisation_id))
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def profile(user: UserRow, organisation_id: int) -> JsonObject:
    """What a person says about themselves; what they have not said is null."""
    known = said(user, organisation_id)
    fields = {name: known.get(name) for name in PROFILE_FIELDS}
    return {"user_id": user.id, "email": user.email, **fields}


def organisation(row: OrganisationRow) -> JsonObject:
    """An organisation with its limits."""
    return {"id": row.id, "name": row.name, "limits": row.limits, "created_at": row.created_at}


def member(found: Membership) -> JsonObject:
    """A person in an organisation."""
    return {
        "user_id": found.user.id,
        "email": found.user.email,
        "role": found.member.role,
        "joined_at": found.member.created_at,
    }
