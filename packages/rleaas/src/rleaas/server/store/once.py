"""Requests that were answered before: the same idempotency key gets the same reply.

Look and keep in the transaction that does the work. There is one writer at a time, so that of two
requests with one key the second finds what the first was answered with.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import delete
from sqlalchemy.orm import Session

from rleaas.server.store.jobs import IdempotencyKey, asked_before
from rleaas.server.store.tables import IdempotencyRow, JsonObject

# Longer than anybody repeats a request for; keys of jobs stay as long as their job.
KEPT_FOR: Final = timedelta(days=7)


def earlier(session: Session, asked: IdempotencyKey | None) -> JsonObject | None:
    """The reply that the same key got before; None without a key, or when it is a new one.

    Ask first of all: what the request names may be gone by now, and it was granted then.

    Raises:
        ConflictError: the key was used for a different request.
    """
    row = asked_before(session, asked)
    return None if row is None else row.reply


def keep(
    session: Session, asked: IdempotencyKey | None, resource_id: str, reply: JsonObject
) -> None:
    """Remember the reply for the next request with this key; without a key there is nothing to do.

    What the organisation was answered long ago is forgotten on the way.

    Args:
        session: the transaction that did the work.
        asked: a key that `earlier` did not know.
        resource_id: what the request made or changed.
        reply: what it is answered with. It is stored as it is: leave out what is secret.
    """
    if asked is None:
        return
    now = datetime.now(UTC)
    session.execute(
        delete(IdempotencyRow).where(
            IdempotencyRow.created_at < now - KEPT_FOR, IdempotencyRow.reply.is_not(None)
        )
    )
    session.add(
        IdempotencyRow(
            scope=asked.scope,
            key=asked.key,
            body_digest=asked.body_digest,
            resource_id=resource_id,
            reply=reply,
            created_at=now,
        )
    )
    session.flush()


def forget(session: Session, scope: str, resource_id: str) -> None:
    """Drop what was answered about something that is deleted."""
    session.execute(
        delete(IdempotencyRow).where(
            IdempotencyRow.scope == scope, IdempotencyRow.resource_id == resource_id
        )
    )
