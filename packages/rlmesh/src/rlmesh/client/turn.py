"""One call at a time: a client is not for two threads at once."""

from __future__ import annotations

import threading

from rlcore import ProtocolException


class Turn:
    """A call's turn; as a context, it is given back at the end.

    Raises:
        ProtocolException: another thread has it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.release = self._lock.release

    def take(self) -> None:
        """Take the turn.

        Raises:
            ProtocolException: another thread has it.
        """
        if not self._lock.acquire(blocking=False):
            raise ProtocolException(
                "two threads use one client at the same time",
                code="concurrent_use",
                hint="Give each thread a client of its own.",
            )

    def try_take(self) -> bool:
        """Take the turn if nobody has it, and tell whether that was so."""
        return self._lock.acquire(blocking=False)

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.release()
