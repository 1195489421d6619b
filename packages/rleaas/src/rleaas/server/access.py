"""Who is asking, and whether they may.

Asynchronous, though nothing waits: else each would take a worker thread, which may all be busy.
"""

import time
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from rlcore import AuthenticationError, PermissionDeniedError, Secret, TokenRejected, verify_token

from rleaas.server.jobs.scheduler import worker_subject
from rleaas.server.state import ServerState

_bearer = HTTPBearer(auto_error=False, description="An API key; not needed in the open mode")

Bearer = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


async def state_of(request: Request) -> ServerState:
    """The parts of the server that answers the request."""
    state = request.app.state.rleaas
    assert isinstance(state, ServerState)
    return state


State = Annotated[ServerState, Depends(state_of)]


async def require_user(state: State, bearer: Bearer) -> None:
    """Let callers with the API key pass; in the open mode, everybody.

    Raises:
        AuthenticationError: the key is missing or not the right one.
    """
    key = state.settings.api_key
    if key is None:
        return
    if bearer is None:
        raise AuthenticationError(
            "an API key is needed", hint="Send it as 'Authorization: Bearer <key>'"
        )
    if Secret(bearer.credentials) != key:
        raise AuthenticationError("the API key is not valid here")


async def require_reader(state: State, bearer: Bearer) -> None:
    """Let users pass, and the workers of this server, which read what their job needs.

    Raises:
        AuthenticationError: neither a valid key nor a worker's token.
    """
    if state.settings.api_key is not None and bearer is not None:
        try:
            verify_token(state.keys.workers, bearer.credentials, subject=None, now=time.time())
        except TokenRejected:
            pass  # then it has to be the API key
        else:
            return
    await require_user(state, bearer)


async def require_worker(kind: str, id: str, state: State, bearer: Bearer) -> None:
    """Let only the worker of this job pass.

    Raises:
        AuthenticationError: there is no token, or it is not one of ours.
        PermissionDeniedError: it is the token of another job.
    """
    if bearer is None:
        raise AuthenticationError("a worker's token is needed")
    try:
        claims = verify_token(state.keys.workers, bearer.credentials, subject=None, now=time.time())
    except TokenRejected as error:
        raise AuthenticationError(str(error)) from error
    if claims.subject != worker_subject(kind, id):
        raise PermissionDeniedError("the token is for another job")
