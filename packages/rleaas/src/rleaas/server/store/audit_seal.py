"""The seal of an audit chain: its newest record, signed with a key that no database holds.

Each record holds the digest of the one before it, so that the seal of the newest one is about all
of them. Whoever has the database but not `server.key` can change records, and rehash them, but not
seal what comes of it.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rlcore import ConfigurationError, Secret
from sqlalchemy import select
from sqlalchemy.orm import Session

from rleaas.server.store.tables import JsonObject, SettingRow

KEY: Final = "audit_key"
"""Where a session has the key, if it has one."""

_NAME: Final = "audit_seal"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a chain."""

    number: int
    digest: str


class NotOurs(Exception):
    """The seal was not made with this server's key, or was changed."""


def has_key(session: Session) -> bool:
    """Whether the session can check seals and make them."""
    return session.info.get(KEY) is not None


def sealed(session: Session, organisation: int) -> Head | None:
    """The newest record of an organisation's chain, as it was sealed; None: there is no seal.

    Raises:
        NotOurs: there is one that cannot be trusted.
        ConfigurationError: there is one, and the session has no key.
    """
    row = _row(session, organisation)
    if row is None:
        return None
    number, digest = row.value.get("number"), row.value.get("digest")
    if not isinstance(number, int) or not isinstance(digest, str):
        raise NotOurs
    found = Head(number, digest)
    if not hmac.compare_digest(_seal(session, organisation, found), str(row.value.get("seal"))):
        raise NotOurs
    return found


def put(session: Session, organisation: int, head: Head) -> None:
    """Seal a chain whose newest record this is; without a key, nothing is sealed."""
    if not has_key(session):
        return
    value: JsonObject = {
        "number": head.number,
        "digest": head.digest,
        "seal": _seal(session, organisation, head),
    }
    row = _row(session, organisation)
    if row is None:
        row = SettingRow(organisation_id=organisation, name=_NAME)
        session.add(row)
    row.value, row.updated_at = value, datetime.now(UTC)


def _row(session: Session, organisation: int) -> SettingRow | None:
    return session.scalar(
        select(SettingRow)
        .where(SettingRow.organisation_id == organisation, SettingRow.name == _NAME)
        .order_by(SettingRow.id)
        .limit(1)
    )


def _seal(session: Session, organisation: int, head: Head) -> str:
    key = session.info.get(KEY)
    if not isinstance(key, Secret):
        raise ConfigurationError(
            "the audit chain is sealed, and the server.key that it is sealed with is not there",
            code="audit_key_missing",
            hint="Name the server's data directory with --data",
        )
    said = f"{organisation}:{head.number}:{head.digest}"
    return hmac.new(key.reveal().encode(), said.encode(), hashlib.sha256).hexdigest()
