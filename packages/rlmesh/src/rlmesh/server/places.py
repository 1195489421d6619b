"""A server's places, and the queue for them: whoever came first is served first."""

from __future__ import annotations

import threading
from collections import deque

from rlmesh.transport.limits import LONGEST_QUEUE


class Ticket:
    """One client's claim to a place, or to several: waiting, granted, or given back.

    Attributes:
        size: how many places it is for.
    """

    __slots__ = ("_granted", "_left", "_news", "_places", "size")

    def __init__(self, places: Places, size: int = 1) -> None:
        self.size = size
        self._places = places
        self._news = threading.Event()
        self._granted = False
        self._left = False

    @property
    def granted(self) -> bool:
        """Whether the place is this ticket's."""
        return self._granted

    def wait(self, seconds: float) -> bool:
        """Wait for the place; False after `seconds`, or when the ticket was given back."""
        self._news.wait(seconds)
        return self._granted

    @property
    def left(self) -> bool:
        """Whether the ticket was given back."""
        return self._left

    def position(self) -> int:
        """Return how many are to be served until this ticket is, itself included; 0: granted."""
        return self._places.position(self)

    def leave(self) -> None:
        """Give the place back, or leave the queue; a second call does nothing."""
        self._places.take_back(self)

    def grant(self) -> None:
        """Hear that the place is this ticket's; the places' own call."""
        self._granted = True
        self._news.set()

    def drop(self) -> bool:
        """Note that the ticket is given back; False when it was before. The places' own call."""
        if self._left:
            return False
        self._left = True
        self._news.set()
        return True


class Places:
    """So many sessions at once, and a fair queue for the next.

    Args:
        count: how many places there are.
        longest_queue: how many may wait.
    """

    def __init__(self, count: int, *, longest_queue: int = LONGEST_QUEUE) -> None:
        self.count = count
        self._free = count
        self._longest_queue = longest_queue
        self._queue: deque[Ticket] = deque()
        self._lock = threading.Lock()

    def enter(self, size: int = 1) -> Ticket | None:
        """Return a ticket, granted already where places are free; None when the queue is full.

        Whoever asks for several places waits for all of them, and whoever comes later waits behind.
        """
        ticket = Ticket(self, size)
        with self._lock:
            if size <= self._free and not self._queue:
                self._free -= size
                ticket.grant()
            elif len(self._queue) >= self._longest_queue:
                return None
            else:
                self._queue.append(ticket)
        return ticket

    def position(self, ticket: Ticket) -> int:
        """Return a ticket's place in the queue, from 1; 0 when it does not wait."""
        with self._lock:
            if ticket.granted or ticket not in self._queue:
                return 0
            return self._queue.index(ticket) + 1

    def take_back(self, ticket: Ticket) -> None:
        """Free what a ticket holds, for the one that waits longest."""
        with self._lock:
            if not ticket.drop():
                return
            if ticket.granted:
                self._free += ticket.size
            else:
                self._queue.remove(ticket)
            while self._queue and self._queue[0].size <= self._free:
                self._free -= self._queue[0].size
                self._queue.popleft().grant()

    @property
    def waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return len(self._queue)

    @property
    def taken(self) -> int:
        """How many places are taken."""
        with self._lock:
            return self.count - self._free
