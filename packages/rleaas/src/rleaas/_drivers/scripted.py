"""A transport that answers from a function instead of the network, for both drivers."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from rleaas._flow.wire import Reply


def answering(handler: Callable[[httpx.Request], Reply]) -> httpx.MockTransport:
    """Return a transport for `Client(transport=...)` and `AsyncClient(transport=...)`."""

    def answer(request: httpx.Request) -> httpx.Response:
        reply = handler(request)
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)

    return httpx.MockTransport(answer)
