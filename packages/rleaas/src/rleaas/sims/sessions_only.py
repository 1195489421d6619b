"""A part of the way into an MCP server over HTTP: who speaks without sessions is told to open one.

The newest version of the protocol has none, each of its requests stands alone. Clients that speak
it ask first what there is, and go back to a handshake when they hear of none of its versions.
"""

from __future__ import annotations

import json
from typing import Any

from mcp_types import UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

# What ASGI calls an application, and its messages.
Value = Any
_HEADER = b"mcp-protocol-version"


class SessionsOnly:
    """Answers requests of versions without sessions; the others go on to the application."""

    def __init__(self, app: Value) -> None:
        self._app = app

    async def __call__(self, scope: Value, receive: Value, send: Value) -> None:
        """Serve one connection of ASGI."""
        headers: dict[bytes, bytes] = dict(scope.get("headers") or ())
        version = headers.get(_HEADER, b"").decode("latin-1")
        if not version or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
            return
        data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version[:64]}
        message = "a world is played in a session: initialize one first"
        error = {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": message, "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        told = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 400, "headers": told})
        await send({"type": "http.response.body", "body": body})
