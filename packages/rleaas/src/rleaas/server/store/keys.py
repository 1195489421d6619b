"""API keys: made, found by their secret, listed and revoked."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rlcore import NotFoundError, Secret
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from rleaas.server.store.tables import ApiKeyRow, JsonObject, OrganisationRow, UserRow

PREFIX = "rleaas_sk_"
SHOWN = len(PREFIX) + 6
SECRET_BYTES = 32
SCOPES = ("read", "write", "admin")


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key with whoever it belongs to."""

    key: ApiKeyRow
    user: UserRow
    organisation: OrganisationRow


def digest_of(secret: Secret) -> str:
    """Return what a key is kept and found by: the SHA-256 of its text, in hexadecimal digits."""
    return hashlib.sha256(secret.reveal().encode()).hexdigest()


def make(
    session: Session,
    organisation_id: int,
    user: UserRow,
    *,
    name: str,
    scopes: Sequence[str],
    expires_at: datetime | None = None,
    limits: JsonObject | None = None,
) -> tuple[ApiKeyRow, Secret]:
    """Add a key of 256 random bits; the secret is returned here and kept nowhere."""
    secret = _new_secret()
    row = ApiKeyRow(
        organisation_id=organisation_id,
        user_id=user.id,
        name=name,
        prefix=secret.reveal()[:SHOWN],
        digest=digest_of(secret),
        scopes=[*scopes],
        limits=limits or {},
        is_active=True,
        created_at=datetime.now(UTC),
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    return row, secret


def renew(row: ApiKeyRow) -> Secret:
    """Give a key another secret, as nobody has received the first; that one is worth nothing."""
    secret = _new_secret()
    row.prefix, row.digest = secret.reveal()[:SHOWN], digest_of(secret)
    return secret


def find_secret(session: Session, secret: Secret) -> FoundKey | None:
    """Return the key with this secret, active or not; None: there is none."""
    found = session.execute(
        select(ApiKeyRow, UserRow, OrganisationRow)
        .join(UserRow, UserRow.id == ApiKeyRow.user_id)
        .join(OrganisationRow, OrganisationRow.id == ApiKeyRow.organisation_id)
        .where(ApiKeyRow.digest == digest_of(secret))
    ).first()
    return None if found is None else FoundKey(*found)


def find(session: Session, key_id: str) -> ApiKeyRow:
    """Return the key with this id.

    Raises:
        NotFoundError: there is none.
    """
    row = session.scalar(select(ApiKeyRow).where(ApiKeyRow.id == _number(key_id)))
    if row is None:
        raise NotFoundError(f"API key not found: {key_id!r}", kind="api_key", ref=key_id)
    return row


def every(session: Session) -> Sequence[ApiKeyRow]:
    """Return all keys, the newest first."""
    return session.scalars(select(ApiKeyRow).order_by(ApiKeyRow.id.desc())).all()


def touch(session: Session, key_id: int, at: datetime) -> None:
    """Note that a key was used."""
    session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(last_used_at=at))


def _new_secret() -> Secret:
    return Secret(PREFIX + secrets.token_urlsafe(SECRET_BYTES))


def _number(key_id: str) -> int:
    return int(key_id) if key_id.isascii() and key_id.isdecimal() and len(key_id) < 10 else -1
