"""Server-sent events: the answer that goes on, and how its messages are written."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from typing import Final

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rleaas.server.feed import Feed

STREAM: Final = "text/event-stream"
RECONNECT_MILLISECONDS: Final = 1000


class EventStream(StreamingResponse):
    """A stream with its place among those who wait, which it gives back however it ends."""

    def __init__(self, place: ExitStack, content: AsyncIterator[str]) -> None:
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        super().__init__(content, media_type=STREAM, headers=headers)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the messages until the reader or the server ends it."""
        with self._place:
            await super().__call__(scope, receive, send)


def preamble(cursor: int) -> str:
    """What a stream begins with: when to come back, and where to go on."""
    return f"retry: {RECONNECT_MILLISECONDS}\nid: {cursor}\n\n"


def message(cursor: int, data: str, name: str | None = None) -> str:
    """One message; `data` is JSON, which has no line breaks in it."""
    # An event name with a line break could forge a message.
    event = "" if name is None else f"event: {' '.join(name.split())}\n"
    return f"id: {cursor}\n{event}data: {data}\n\n"


async def messages(
    request: Request,
    feed: Feed,
    following: Callable[[], Awaitable[str]],
    rest: Callable[[float], Awaitable[object]],
    *,
    allowed: Callable[[], Awaitable[bool]],
    over: Callable[[], bool],
    glance: float,
    seconds: float | None,
) -> AsyncIterator[str]:
    """Yield what `following` finds, and a beat in silence, until it is over.

    Args:
        request: whose reader may go.
        feed: of the server, which may stop.
        following: returns the messages that are new; empty where there are none.
        rest: waits until there may be some, at most that many seconds.
        allowed: whether the reader may still read it.
        over: whether what was returned last was the end.
        glance: the longest rest, so that it is noticed soon that the reader has gone.
        seconds: how long the stream goes on at most.
    """
    end = None if seconds is None else time.monotonic() + seconds
    silent_since = time.monotonic()
    while not feed.closed and not await request.is_disconnected():
        found = await following()
        if not await allowed():
            return
        now = time.monotonic()
        if found:
            yield found
            silent_since = now
            if over():
                return
            continue
        left = glance if end is None else end - now
        if left <= 0:
            return
        if now - silent_since >= feed.heartbeat_seconds:
            yield ": still here\n\n"
            silent_since = now
        await rest(min(left, glance, feed.heartbeat_seconds))
