"""A connection to the web server that cannot be held for ever by a client that does nothing.

The web server itself waits without end for the rest of a request's head, and for a client to read
its answer. Bodies are bounded where they are read, in `guard`.
"""

import asyncio
import json
import resource
from typing import ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# A head is a few hundred bytes; whoever needs longer for it is not asking.
HEAD_SECONDS: Final = 10.0
# How long a client may leave an answer unread that does not fit into the buffers on the way.
READ_SECONDS: Final = 60.0
# Longer than clients keep a connection that they do not use, so that they are the ones to close it.
KEEP_ALIVE_SECONDS: Final = 75
_RETRY_AFTER: Final = 2
# For the database, logs and pipes of processes.
_RESERVED: Final = 64


class WebConnection(H11Protocol):
    """One client's connection, closed when it takes too long or when there are too many."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    read_seconds: ClassVar[float] = READ_SECONDS
    most: ClassVar[int | None] = None

    _head: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Expect a request, or refuse the connection."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        if self.most is not None and len(self.connections) > self.most:
            self.connections.discard(self)  # those that are being turned away are not to count
            self._refuse(503, "server_crowded", "the server has no connection left for more")
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._stop_expecting()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; a part of a head does not give it more time."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._expect_head()
        else:
            self._stop_expecting()

    def pause_writing(self) -> None:
        """Give the client some time to read."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Take note that it does read."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if self.flow is not None:  # pyright: ignore[reportUnnecessaryComparison] - before it is made
            super().resume_writing()

    def _expect_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_expecting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _give_up(self) -> None:
        self._head = None
        self._refuse(408, "request_timeout", f"no request came within {self.head_seconds:g} s")

    def _refuse(self, status: int, code: str, detail: str) -> None:
        said = json.dumps({"detail": detail, "code": code, "retryable": True}).encode()
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(said)).encode()),
            (b"retry-after", str(_RETRY_AFTER).encode()),
            (b"connection", b"close"),
        ]
        answer = h11.Response(status_code=status, headers=headers, reason=b"")
        for event in (answer, h11.Data(data=said), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def room_for_connections() -> int:
    """Let the process open as many files as it may, and return how many may be connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard and hard != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(1, soft - max(_RESERVED, soft // 5))


def connections(most: int | None) -> type[WebConnection]:
    """Return the class for a server with room for so many at once; None: for any number."""

    class Limited(WebConnection):
        pass

    Limited.most = most
    return Limited
