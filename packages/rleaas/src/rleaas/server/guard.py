"""What is refused before any route sees it, and the headers that every reply has."""

import asyncio
import time
from urllib.parse import urlsplit

from rlcore import PermissionDeniedError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rleaas.server import failures
from rleaas.server.settings import ServerSettings, is_loopback

# A body must not pause longer than this, and in the long run not be slower than so many bytes a
# second.
BODY_SECONDS = 30.0
BODY_RATE = 4096
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_NOTHING_ELSE = "default-src 'none'; frame-ancestors 'none'"


def protect(headers: MutableHeaders) -> None:
    """Add the headers that keep browsers from guessing, framing and keeping; no CORS ones."""
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    if not headers.get("content-type", "").startswith("text/html"):
        headers.setdefault("content-security-policy", _NOTHING_ELSE)


class Guard:
    """Keeps pages of other sites from using a server through the browser of somebody near it.

    A server of this machine that asks for no key would do what any web page says: a page may send
    simple requests anywhere, and give a host name of its own our address.
    """

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._is_local = settings.is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it comes from another site."""
        problem = self._problem(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        reply = failures.ours(Request(scope), PermissionDeniedError(problem, code="cross_site"))
        await reply(scope, receive, send)

    def _problem(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if self._is_local and not is_loopback(name):
            return f"this server is for its own machine, and not for requests to {name[:80]!r}"
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in _SAFE and urlsplit(origin).netloc != host:
            return "pages of other sites may not ask this server for changes"
        return None


class Patience:
    """Ends a request whose body does not come, or only in drops."""

    def __init__(
        self, app: ASGIApp, *, seconds: float = BODY_SECONDS, rate: int = BODY_RATE
    ) -> None:
        self._app = app
        self._seconds = seconds
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a body that is not waited for for ever."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        complete = False
        size = 0
        began = time.monotonic()

        async def receive_in_time() -> Message:
            nonlocal complete, size
            if complete:  # from here on it is only told of the client's leaving
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(
                    408, f"the body did not go on for {self._seconds:g} s"
                ) from error
            complete = not message.get("more_body", False)
            size += len(message.get("body", b""))
            if not complete and time.monotonic() - began > self._seconds + size / self._rate:
                raise HTTPException(408, f"the body came with less than {self._rate} bytes/s")
            return message

        await self._app(scope, receive_in_time, send)
