"""What create routes share: idempotency keys, and picking the environment version to work on."""

import hashlib
import json
from typing import Annotated

from fastapi import Header
from rlcore import ConflictError, EnvironmentFailed
from sqlalchemy.orm import Session

from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules import lifecycle
from rleaas.server.rules.names import split_version
from rleaas.server.store import environments
from rleaas.server.store.jobs import IdempotencyKey
from rleaas.server.store.tables import VersionRow

IdempotencyHeader = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)
]


def idempotency(scope: str, key: str | None, request: JsonObject) -> IdempotencyKey | None:
    """The request's key, if it has one, with the digest of what it asks for."""
    if key is None:
        return None
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return IdempotencyKey(scope, key, hashlib.sha256(text.encode()).hexdigest())


def workable_version(session: Session, reference: str, version: int | None) -> VersionRow:
    """The version that a job would work on: the newest, or the one of `name@3`.

    Raises:
        EnvironmentNotFound: there is none.
        ConflictError: it has no source, or is deprovisioned.
        EnvironmentFailed: it did not come up when it was last tried.
    """
    name, pinned = split_version(reference)
    row = environments.find_version(session, name, version if version is not None else pinned)
    label = row.environment.name
    if row.source is None:
        raise ConflictError(
            f"environment {label!r} cannot be served: {row.status_reason}",
            code="environment_without_source",
        )
    if row.status == lifecycle.DEPROVISIONED:
        raise ConflictError(
            f"environment {label!r} is deprovisioned",
            code="environment_deprovisioned",
            hint=f"POST /api/environments/{label}/start brings it back",
        )
    if row.status == lifecycle.FAILED:
        raise EnvironmentFailed(label, row.status_reason or "", hint="Register it again")
    return row
