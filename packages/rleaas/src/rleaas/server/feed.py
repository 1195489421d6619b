"""Who waits for events is woken when there are new ones.

The newest number is looked up in the database, and only while somebody waits, so that events which
another server process wrote wake them as well.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from fastapi.concurrency import run_in_threadpool
from rlcore import RateLimitError

from rleaas.server.store import events
from rleaas.server.store.database import Database

logger = logging.getLogger("rleaas.server.feed")

LOOK_SECONDS: Final = 0.1
HEARTBEAT_SECONDS: Final = 10.0
MOST_WAITING: Final = 500
MOST_OF_ONE: Final = 250
_RETRY_SECONDS: Final = 2


class Feed:
    """Wakes those who wait, on the event loop of the server."""

    def __init__(
        self,
        database: Database,
        *,
        most_waiting: int = MOST_WAITING,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        self._database = database
        self._most_waiting = most_waiting
        self._most_of_one = most_of_one
        self.heartbeat_seconds = HEARTBEAT_SECONDS
        self._waiting: dict[int, int] = {}
        self._wakers: set[asyncio.Event] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the server is stopping."""
        return self._closed

    @property
    def waiting(self) -> int:
        """How many places are taken."""
        return sum(self._waiting.values())

    def close(self) -> None:
        """Let everybody go; may be called from any thread, and is noticed at the next look."""
        self._closed = True

    @contextmanager
    def place(self, organisation: int) -> Generator[None]:
        """Take a place among those who wait, until the block ends.

        Raises:
            RateLimitError: all are taken, or all that one organisation may take.
        """
        own = self._waiting.get(organisation, 0)
        if own >= self._most_of_one or self.waiting >= self._most_waiting:
            raise RateLimitError(
                "too many are waiting for events already",
                retry_after=_RETRY_SECONDS,
                hint="Close streams that nobody reads",
            )
        self._waiting[organisation] = own + 1
        try:
            yield
        finally:
            self._waiting[organisation] -= 1
            if not self._waiting[organisation]:
                del self._waiting[organisation]

    async def changed(self, seconds: float) -> bool:
        """Wait until there may be new events; False: there were none within the time."""
        waker = asyncio.Event()
        self._wakers.add(waker)
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            await asyncio.wait_for(waker.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._wakers.discard(waker)
        return True

    async def _look(self) -> None:
        # Whoever came between the last look and this one may have missed something: wake them once.
        before = -1
        while self._wakers:
            try:
                newest = await run_in_threadpool(self._newest)
            except Exception:
                # A locked database must not end the waiting of everybody.
                logger.exception("the newest event could not be looked up; it is tried again")
                newest = before
            if newest != before or self._closed:
                before = newest
                self._wake()
            await asyncio.sleep(LOOK_SECONDS)

    def _wake(self) -> None:
        for waker in self._wakers:
            waker.set()

    def _newest(self) -> int:
        with self._database.read() as session:
            return events.newest(session)
