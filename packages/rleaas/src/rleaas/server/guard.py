"""What is refused before any route sees it, and the headers that every reply has."""

import asyncio
import time
from urllib.parse import urlsplit

from rlcore import Error, InvalidRequestError, PermissionDeniedError
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
_AMBIGUOUS = "ambiguous_body"
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
        reply = failures.ours(Request(scope), problem)
        if problem.code == _AMBIGUOUS:
            reply.headers["connection"] = "close"  # where the next request begins is not certain
        await reply(scope, receive, send)

    def _problem(self, scope: Scope) -> Error | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        origin = headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname or ""
            site = None if origin is None else urlsplit(origin).netloc
        except ValueError as error:
            return _malformed(f"the header Host or Origin cannot be read: {error}")
        if self._is_local and not is_loopback(name):
            return _cross_site(
                f"this server is for its own machine, and not for requests to {name[:80]!r}"
            )
        if site is not None and scope["method"] not in _SAFE and site != host:
            return _cross_site("pages of other sites may not ask this server for changes")
        return _ambiguity(headers)


def _cross_site(detail: str) -> Error:
    return PermissionDeniedError(detail, code="cross_site")


def _malformed(detail: str, code: str = "invalid_header") -> Error:
    return InvalidRequestError(detail, status_code=400, code=code)


def _ambiguity(headers: Headers) -> Error | None:
    """What proxies before this server might take for another request than it does."""
    if "content-length" in headers and "transfer-encoding" in headers:
        return _malformed("Content-Length and Transfer-Encoding exclude each other", _AMBIGUOUS)
    if len(headers.getlist("authorization")) > 1:
        return _malformed("there are several Authorization headers")
    encoding = headers.get("content-encoding", "")
    if encoding.strip().lower() not in ("", "identity"):
        return InvalidRequestError(
            f"the body has the encoding {encoding[:80]!r}, which this server does not decode",
            status_code=415,
            code="encoding_not_supported",
            hint="Send it without Content-Encoding",
        )
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
