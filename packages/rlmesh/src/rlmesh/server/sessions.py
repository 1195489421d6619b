"""The sessions of a server, and who may open the next."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

from rlcore import ProtocolException, SessionBusy, SessionClosed

from rlmesh.protocol.opening import (
    DEFAULT_QUEUE_SECONDS,
    SESSION_EXISTS,
    SHUTTING_DOWN,
    Opening,
)
from rlmesh.server.codecs import Codecs
from rlmesh.server.environments import Environments
from rlmesh.server.last_words import LastWords
from rlmesh.server.places import Places, Ticket
from rlmesh.server.session import Session, unknown_session
from rlmesh.server.several_stage import makes_several
from rlmesh.server.statistics import Statistics, together

# A client that has just left may take a moment to be noticed; the next one need not fail for it.
HANDOVER_SECONDS = 0.2
# How often whoever waits is told the position; whoever cannot be told leaves the queue.
NOTICE_SECONDS = 0.5
MOST_LAST_WORDS = 1024


class Registry:
    """All sessions of one server, and who may open the next.

    Args:
        environments: where sessions get theirs from.
        places: how many environments of sessions there may be at once.
        lease_seconds: how long a session outlives its client.
    """

    def __init__(
        self,
        environments: Environments,
        *,
        places: int,
        lease_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.environments = environments
        self.codecs = Codecs(environments)
        self.lease_seconds = lease_seconds
        self.stopping = False
        self.places = Places(places)
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: dict[int, Session] = {}
        self._by_name: dict[str, Session] = {}
        self._last_words: dict[str, LastWords] = {}
        self._past = Statistics()

    def find(self, opening: Opening, /) -> Session | LastWords | None:
        """Return the session that a client comes back to; None: it opens a new one."""
        if not opening.resumable:
            return None
        with self._lock:
            found = self._by_name.get(opening.session_id) or self._words(opening.session_id)
        if found is None and not opening.resume:
            return None
        if found is None or not found.knows(opening.secret):
            raise unknown_session(opening.session_id)
        return found

    def open(self, opening: Opening, /) -> Generator[int, None, Session]:
        """Yield the client's position in the queue now and then; return its session at its turn."""
        began = self._clock()
        self._require_possible(opening)
        ticket = self.places.enter(opening.places)
        if ticket is None:
            raise SessionBusy("too many clients wait already", code="sessions_exhausted")
        try:
            if not ticket.wait(HANDOVER_SECONDS):
                yield from self._wait_in_line(ticket, opening, began)
            session = Session(self, opening, ticket)
            with self._lock:
                if self.stopping:
                    raise SessionClosed(SHUTTING_DOWN)
                if opening.resumable and opening.session_id in self._by_name:
                    raise SessionBusy(
                        f"there is a session {opening.session_id!r} already", code=SESSION_EXISTS
                    )
                self._sessions[id(session)] = session
                if opening.resumable:
                    self._by_name[opening.session_id] = session
        except BaseException:
            ticket.leave()
            raise
        return session

    def leave(self, opening: Opening, /) -> bool:
        """End a session whose client says that it will not come back."""
        with self._lock:
            session = self._by_name.get(opening.session_id)
        if session is None or not session.knows(opening.secret):
            return False
        session.end("its client left")
        return True

    def stop(self) -> None:
        """Open no more sessions, and end those whose client is away at once."""
        with self._lock:
            self.stopping = True
            parked = [session for session in self._sessions.values() if session.parked]
        for session in parked:
            session.end(SHUTTING_DOWN)

    def end_all(self) -> None:
        """End every session after the request that it is at."""
        for session in self.all():
            session.end(SHUTTING_DOWN)

    def all(self) -> list[Session]:
        """Return the sessions that hold an environment or have a place for one."""
        with self._lock:
            return list(self._sessions.values())

    def forget(self, session: Session) -> None:
        """Take a session out, as it has given everything back."""
        with self._lock:
            if self._sessions.pop(id(session), None) is None:
                return
            self._past.add(session.statistics)
            if self._by_name.get(session.id) is session:
                del self._by_name[session.id]
            if session.ended_by_fault:
                until = self._clock() + self.lease_seconds / 2
                self._last_words[session.id] = LastWords(session, until)
            self._drop_old_words()

    def statistics(self) -> Statistics:
        """Return what all sessions did, those included that have ended."""
        with self._lock:
            return together([self._past, *(one.statistics for one in self._sessions.values())])

    def _require_possible(self, opening: Opening) -> None:
        if opening.num_envs and not makes_several(self.environments):
            raise ProtocolException(
                f"a session with {opening.num_envs} environments was asked for; this server makes "
                "none of several"
            )
        if opening.places > self.places.count:
            raise SessionBusy(
                f"a session with {opening.num_envs} environments was asked for; this server has "
                f"room for {self.places.count} (max_sessions)",
                code="sessions_exhausted",
            )

    def _wait_in_line(self, ticket: Ticket, opening: Opening, began: float) -> Generator[int]:
        patience = self._patience(opening)
        while not ticket.granted:
            left = began + patience - self._clock()
            if self.stopping:
                raise SessionClosed(SHUTTING_DOWN)
            if left <= 0 or not self._is_worth_it(opening):
                raise self._busy(ticket.position(), self._clock() - began)
            if position := ticket.position():
                yield position
            ticket.wait(min(left, NOTICE_SECONDS))

    def _patience(self, opening: Opening) -> float:
        if not opening.queues:
            return 0.0
        if opening.queue_seconds is not None:
            return opening.queue_seconds
        return DEFAULT_QUEUE_SECONDS if self.environments.private else self.lease_seconds

    def _is_worth_it(self, opening: Opening) -> bool:
        # Who drives a shared environment may do so for hours, and a step that was given up on may
        # hang; one who lost its connection has only what is left of the lease. A client that said
        # how long it waits decided for itself.
        if self.environments.private or opening.queue_seconds is not None:
            return True
        return all(session.parked for session in self.all())

    def _busy(self, position: int, waited: float) -> SessionBusy:
        line = f"; position {position} in the queue after {waited:.1f} s" if position else ""
        abandoned = sum(session.abandoned for session in self.all())
        if self.environments.private:
            stuck = (
                f"; in {abandoned} of them a call runs that its client gave up on, which "
                "isolation='process' would have ended"
                if abandoned
                else ""
            )
            return SessionBusy(
                f"all {self.places.count} sessions of this server are taken{stuck}{line}",
                code="sessions_exhausted",
                position=position or None,
            )
        reason = (
            "a step that a client gave up on is still running in this environment"
            if abandoned
            else "another client is stepping this environment"
        )
        return SessionBusy(f"{reason}{line}", position=position or None)

    def _words(self, name: str) -> LastWords | None:
        words = self._last_words.get(name)
        return words if words is not None and words.until > self._clock() else None

    def _drop_old_words(self) -> None:
        now = self._clock()
        for name, words in list(self._last_words.items()):
            # They are in the order in which sessions ended.
            if words.until > now and len(self._last_words) <= MOST_LAST_WORDS:
                break
            del self._last_words[name]
