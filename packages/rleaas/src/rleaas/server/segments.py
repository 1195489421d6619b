"""Escaped slashes in paths: a name such as `team/CartPole` stays one segment.

A web server decodes a path before it is matched, so that `team%2FCartPole` would be two segments.
Before the routes see it, an escaped slash becomes a character that no name has; what the path's
parameters hold is turned back before anything reads them.
"""

from typing import cast
from urllib.parse import unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

FOLDED = "\uffff"  # Unicode promises that it is no character


class Segments:
    """Keeps escaped slashes inside their segments."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with a path whose slashes are those between segments."""
        raw = cast("bytes", scope.get("raw_path") or b"") if scope["type"] == "http" else b""
        if b"%2f" in raw.lower():
            scope["path"] = _folded(raw.decode("latin-1"))
        await self._app(scope, receive, send)


async def unfold(request: Request) -> None:
    """Give the path's parameters their slashes back; a dependency of every route."""
    parameters = cast("dict[str, object]", request.scope["path_params"])
    for name, value in parameters.items():
        if isinstance(value, str):
            parameters[name] = value.replace(FOLDED, "/")


def as_asked(path: str) -> str:
    """Return a path as it reads to people."""
    return path.replace(FOLDED, "/")


def _folded(raw: str) -> str:
    return "/".join(unquote(segment).replace("/", FOLDED) for segment in raw.split("/"))
