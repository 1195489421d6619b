"""A client of HTTP/1.1 that costs next to nothing, so that what is measured is the server."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, cast

TIMEOUT = 60.0


class ConnectionEnded(Exception):
    """The connection was lost before the answer was there, or could not be made."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole."""

    status: int
    headers: bytes
    body: bytes

    @property
    def json(self) -> Any:
        """What the body says."""
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """Return one header; None: it is not there."""
        wanted = name.lower().encode()
        for line in self.headers.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == wanted:
                return value.strip().decode()
        return None


class Connection(asyncio.Protocol):
    """One connection, kept alive; one request at a time."""

    def __init__(self, key: str | None) -> None:
        self._authorization = f"authorization: Bearer {key}\r\n" if key else ""
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiting: asyncio.Future[Reply] | None = None

    @classmethod
    async def open(cls, port: int, key: str | None = None, *, patience: float = TIMEOUT) -> Self:
        """Connect to this machine.

        Raises:
            ConnectionEnded: nobody listens there, or not in time.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(patience):
                _, made = await loop.create_connection(lambda: cls(key), "127.0.0.1", port)
        except (OSError, TimeoutError) as error:
            raise ConnectionEnded(f"no connection: {error or 'not in time'}") from error
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Complete the answer that is waited for, when all of it is there."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end])
        at = head.lower().find(b"content-length:")
        if at < 0:
            self._fail("an answer without a length")
            return
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        whole = end + 4 + length
        if len(self._buffer) < whole:
            return
        body = bytes(self._buffer[end + 4 : whole])
        del self._buffer[:whole]
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(int(head[9:12]), head, body))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        self._transport = None
        self._fail(f"the connection was lost: {exc or 'closed by the server'}")

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        patience: float = TIMEOUT,
    ) -> Reply:
        """Send a request and wait for its answer.

        Raises:
            ConnectionEnded: there was none.
        """
        if self._transport is None:
            raise ConnectionEnded("the connection is not open")
        content = b"" if body is None else json.dumps(body).encode()
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{self._authorization}{lines}"
        if body is not None:
            head += "content-type: application/json\r\n"
        if content or method != "GET":
            head += f"content-length: {len(content)}\r\n"
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(f"{head}\r\n".encode() + content)
        try:
            async with asyncio.timeout(patience):
                return await self._waiting
        except TimeoutError as error:
            self.close()
            raise ConnectionEnded(f"no answer in {patience:g} s") from error

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, why: str) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(ConnectionEnded(why))
        self.close()


@dataclass(slots=True)
class Tally:
    """What a load came to: how long each answer took, and what went wrong."""

    seconds: list[float] = field(default_factory=list[float])
    errors: Counter[str] = field(default_factory=Counter[str])
    began: float = field(default_factory=time.perf_counter)
    elapsed: float = 0.0

    def end(self) -> None:
        """Stop the clock."""
        self.elapsed = time.perf_counter() - self.began

    def figures(self) -> dict[str, object]:
        """Return requests, rate, percentiles in milliseconds, and errors."""
        ordered = sorted(self.seconds)

        def percentile(part: float) -> float | None:
            if not ordered:
                return None
            return round(1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 3)

        return {
            "requests": len(ordered),
            "seconds": round(self.elapsed, 3),
            "requests_per_second": round(len(ordered) / self.elapsed, 1) if self.elapsed else None,
            "p50_ms": percentile(0.50),
            "p95_ms": percentile(0.95),
            "p99_ms": percentile(0.99),
            "max_ms": percentile(1.0),
            "errors": dict(self.errors),
        }
