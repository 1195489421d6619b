"""How large a request's body may be, counted as it comes in."""

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MEBIBYTE = 2**20
MAX_BODY = 16 * MEBIBYTE
MAX_REPORTS = 256 * MEBIBYTE  # an evaluation's end brings up to 100 000 episodes at once
MAX_EPISODE = 2 * MEBIBYTE  # judging an episode that is sent along takes the server's own time
_FILE = re.compile(r"/api/worker/[^/]+/[^/]+/(checkpoints/[^/]+(/state)?|rollouts/[^/]+)")
_TEST = re.compile(r"/api/verifiers/[^/]+/test")
_REPORTS = re.compile(r"/api/worker/[^/]+/[^/]+/reports")


class BodyLimit:
    """Ends a request whose body is too large where the body is read, before it is in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a body that cannot be read beyond its limit."""
        limit = _limit_of(scope) if scope["type"] == "http" else None
        if limit is None:
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "")
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            if declared.isdecimal() and int(declared) > limit:
                raise _too_large(limit)
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise _too_large(limit)
            return message

        await self._app(scope, receive_counted, send)


def _limit_of(scope: Scope) -> int | None:
    path: str = scope["path"]
    if scope["method"] == "PUT" and _FILE.fullmatch(path):
        return None  # its route counts against a limit of its own
    if scope["method"] == "POST" and path == "/api/data-assets":
        return None  # so does this one
    if scope["method"] == "POST" and _TEST.fullmatch(path):
        return MAX_EPISODE
    return MAX_REPORTS if _REPORTS.fullmatch(path) else MAX_BODY


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {limit // MEBIBYTE} MiB")
