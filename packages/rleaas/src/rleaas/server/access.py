"""Who is asking, and whether they may.

Asynchronous, though nothing waits: else each would take a worker thread, which may all be busy.
"""

import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from rlcore import (
    AuthenticationError,
    PermissionDeniedError,
    RateLimitError,
    TokenRejected,
    verify_token,
)
from sqlalchemy.orm import Session

from rleaas.server.principals import WORKER, Principal, Scope
from rleaas.server.rules.grants import RATE
from rleaas.server.rules.worker_tokens import read_subject
from rleaas.server.state import ServerState

READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_bearer = HTTPBearer(auto_error=False, description="An API key; not needed in the open mode")

Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


async def state_of(request: Request) -> ServerState:
    """The parts of the server that answers the request."""
    state = request.app.state.rleaas
    assert isinstance(state, ServerState)
    return state


State = Annotated[ServerState, Depends(state_of)]


@dataclass(frozen=True, slots=True)
class CallerOf:
    """Whoever asks, with the part of the database that is theirs."""

    principal: Principal
    state: ServerState
    request_id: str

    def read(self) -> AbstractContextManager[Session]:
        """A view of the organisation's rows."""
        return self.state.database.read(self.principal.organisation_id)

    def write(self) -> AbstractContextManager[Session]:
        """A transaction on the organisation's rows; what is added belongs to it."""
        principal = self.principal
        return self.state.database.write(principal.organisation_id, limits=dict(principal.limits))


async def principal_of(request: Request, state: State, bearer: Bearer) -> Principal:
    """Who asks.

    Raises:
        AuthenticationError: the key is missing, unknown, expired or revoked.
        RateLimitError: it, or its organisation, asks too often.
    """
    found = await _identified(state, bearer)
    request.state.principal = found  # for the record, should it be refused what it asks
    _require_patience(state, found)
    return found


Asking = Annotated[Principal, Depends(principal_of)]


async def require_user(request: Request, asking: Asking) -> Principal:
    """Let users pass whose key may do this: reading needs `read`, all else `write`.

    Raises:
        AuthenticationError: the key is missing, unknown, expired or revoked, or a worker's token.
        PermissionDeniedError: the key has not the scope.
    """
    if asking.user_id.startswith(f"{WORKER}:"):
        raise AuthenticationError("the API key is not valid here")
    return _with_scope(asking, "read" if request.method in READING_METHODS else "write")


async def require_reader(request: Request, asking: Asking) -> Principal:
    """Let users pass, and the workers of this server, which read what their job needs.

    Raises:
        AuthenticationError: neither a valid key nor a worker's token.
        PermissionDeniedError: the key has not the scope.
    """
    return _with_scope(asking, "read" if request.method in READING_METHODS else "write")


async def require_reading(request: Request, asking: Asking) -> Principal:
    """Let users pass whose key may read, also to a POST: what it asks changes nothing.

    Raises:
        AuthenticationError: the key is missing, unknown, expired or revoked, or a worker's token.
        PermissionDeniedError: the key has not the scope.
    """
    if asking.user_id.startswith(f"{WORKER}:"):
        raise AuthenticationError("the API key is not valid here")
    return _with_scope(asking, "read")


async def require_admin(asking: Asking) -> Principal:
    """Let users pass whose key has the scope `admin`.

    Raises:
        AuthenticationError: the key is missing, unknown, expired or revoked.
        PermissionDeniedError: it is not an admin's.
    """
    return _with_scope(asking, "admin")


async def require_still(request: Request, caller: CallerOf) -> None:
    """Look again whether who asked may read, as keys end while an answer goes on.

    Raises:
        AuthenticationError: the key was revoked or has expired since.
        PermissionDeniedError: it has lost the scope.
    """
    _with_scope(await _identified(caller.state, await _bearer(request)), "read")


async def may_still(request: Request, caller: CallerOf) -> bool:
    """Whether `require_still` lets who asked go on; a stream has no place for an error."""
    try:
        await require_still(request, caller)
    except (AuthenticationError, PermissionDeniedError):
        return False
    return True


async def require_worker(kind: str, id: str, state: State, bearer: Bearer) -> int:
    """Let only workers of this job pass, until shortly after the job's end.

    Returns:
        The attempt that the token is for; `require_current` says whether it still counts.

    Raises:
        AuthenticationError: there is no token, it is not one of ours, or its job has ended.
        PermissionDeniedError: it is the token of another job.
    """
    if bearer is None:
        raise AuthenticationError("a worker's token is needed")
    try:
        claims = verify_token(state.keys.workers, bearer.credentials, subject=None, now=time.time())
    except TokenRejected as error:
        raise AuthenticationError(str(error)) from error
    subject = read_subject(claims.subject)
    if subject is None or (subject.kind, subject.job_id) != (kind, id):
        raise PermissionDeniedError("the token is for another job")
    found = await _identified(state, bearer)
    if not found.user_id.startswith(f"{WORKER}:"):  # an open server takes it for anybody's
        raise AuthenticationError("the job of this token has ended")
    return subject.attempt


Attempt = Annotated[int, Depends(require_worker)]


def _caller(
    require: Callable[..., Coroutine[Any, Any, Principal]],
) -> Callable[..., Coroutine[Any, Any, CallerOf]]:
    async def caller_of(
        request: Request, state: State, principal: Annotated[Principal, Depends(require)]
    ) -> CallerOf:
        return CallerOf(principal, state, request.state.request_id)

    return caller_of


Caller = Annotated[CallerOf, Depends(_caller(require_user))]
Reader = Annotated[CallerOf, Depends(_caller(require_reader))]
Asker = Annotated[CallerOf, Depends(_caller(require_reading))]
Admin = Annotated[CallerOf, Depends(_caller(require_admin))]


async def _identified(state: ServerState, bearer: HTTPAuthorizationCredentials | None) -> Principal:
    text = None if bearer is None else bearer.credentials
    found = state.principals.remembered(text)
    if found is None:
        assert text is not None
        found = await run_in_threadpool(state.principals.find, text)
    return found


def _require_patience(state: ServerState, asking: Principal) -> None:
    limits = [(f"key:{asking.key_id}", rate) for name, rate in asking.limits if name == RATE]
    shared = f"organisation:{asking.organisation_id}"
    limits += [(shared, rate) for name, rate in asking.shared_limits if name == RATE]
    wait = state.rates.take(limits, time.monotonic()) if limits else None
    if wait is not None:
        raise RateLimitError("too many requests were sent with this key", retry_after=wait)


def _with_scope(asking: Principal, scope: Scope) -> Principal:
    if scope not in asking.scopes:
        raise PermissionDeniedError(
            f"the API key has not the scope {scope!r}",
            hint=f"It has {', '.join(sorted(asking.scopes)) or 'none'}; ask for another key",
        )
    return asking
