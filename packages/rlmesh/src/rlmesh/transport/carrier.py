"""What a host and a session are to each other, whatever carries the messages between them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from rlmesh.protocol.messages import Answer, Request
from rlmesh.protocol.opening import Opening
from rlmesh.transport.traffic import Traffic


class Session(Protocol):
    """One client's conversation, which outlives its connections.

    All of it but `attach` and `end` belongs to one thread, the session's own, in which its
    environment lives: the one that calls `live`, or `begin` and `go_on`.
    """

    @property
    def id(self) -> str:
        """The session's name."""
        ...

    def answer(self, request: Request, /) -> tuple[Answer, bool]:
        """Return the answer, and whether the session is over after it.

        A request with the number of the last one is that one, asked again: it gets the answer that
        was kept, and nothing runs twice.
        """
        ...

    def too_large(self, operation: str, size: int, limit: int, /) -> Answer:
        """End the session; return what is said instead of an answer that is too large."""
        ...

    def unwritable(self, operation: str, error: Exception, /) -> Answer:
        """End the session; return what is said instead of an answer that cannot be written."""
        ...

    def note_simplified(self, keys: Sequence[str], /) -> None:
        """Hear which info values could not travel as they are."""
        ...

    def live(self, carrier: Carrier, /) -> None:
        """Let a carrier serve it, then each that a returning client brings; return at its end.

        The environment has then been given back.
        """
        ...

    def begin(self, carrier: Carrier, /) -> None:
        """Note that this carrier serves it, where the caller does so itself instead of `live`.

        Whoever calls this has to call `go_on` afterwards.
        """
        ...

    def go_on(self) -> None:
        """Go on as `live` does after its first carrier."""
        ...

    def attach(self, carrier: Carrier, /) -> None:
        """Hand over to this carrier, from any thread; one that still serves is cut off.

        Raises:
            SessionClosed: the session has ended meanwhile.
        """
        ...

    def end(self, reason: str, /) -> None:
        """End it from any thread, after the request that it is at."""
        ...


class Carrier(Protocol):
    """One connection that carries a session's messages."""

    @property
    def kind(self) -> str:
        """What it is: `grpc`, `unix`, `tcp`, `shared-memory`."""
        ...

    @property
    def traffic(self) -> Traffic:
        """How many bytes it has carried so far."""
        ...

    def serve(self, session: Session, /) -> None:
        """Answer requests until the connection breaks or the session is over; never raises.

        Called in the session's thread.
        """
        ...

    def cut(self) -> None:
        """Break the connection, from any thread, so that `serve` returns soon."""
        ...


class Registry(Protocol):
    """The sessions of one server."""

    @property
    def lease_seconds(self) -> float:
        """How long a session outlives its client: half to notice, half to wait for its return."""
        ...

    def find(self, opening: Opening, /) -> Session | None:
        """Return the session that a client comes back to; None: it opens a new one.

        Raises:
            SessionClosed: it wants to come back to one that is not here (any more).
        """
        ...

    def open(self, opening: Opening, /) -> Generator[int, None, Session]:
        """Yield the client's position in the queue now and then; return its session at its turn.

        Positions are for a client that `Opening.queues`; it leaves the queue when the generator is
        closed. See `wait_in_line`.

        Raises:
            SessionBusy: there is no place, now or in the time that the client waits.
            SessionClosed: the server is shutting down.
        """
        ...

    def leave(self, opening: Opening, /) -> bool:
        """End a session whose client says that it will not come back; False: there is none."""
        ...

    def stop(self) -> None:
        """Open no more sessions, and end those whose client is away at once."""
        ...

    def end_all(self) -> None:
        """End every session after the request that it is at."""
        ...


def wait_in_line(line: Generator[int, None, Session], told: Callable[[int], None]) -> Session:
    """Return the session that `Registry.open` gives, telling each position meanwhile.

    Raises:
        SessionBusy: there is no place.
        SessionClosed: the server is shutting down.
        Exception: whatever `told` raises; the client is then out of the queue.
    """
    try:
        while True:
            told(next(line))
    except StopIteration as end:
        session: Session = end.value
        return session
    finally:
        line.close()
