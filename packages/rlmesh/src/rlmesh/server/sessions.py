"""The sessions of a server: each outlives its connections, and answers no request twice."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Generator, Sequence

from rlcore import SessionBusy, SessionClosed
from rlcore.log import logger

from rlmesh.protocol.faults import FaultCode, code_of, refusal
from rlmesh.protocol.messages import Answer, Refused, Request, ResetAnswer, Timing
from rlmesh.protocol.opening import (
    DEFAULT_QUEUE_SECONDS,
    SESSION_EXISTS,
    SESSION_UNKNOWN,
    SHUTTING_DOWN,
    Opening,
)
from rlmesh.server.codecs import Codecs
from rlmesh.server.conversation import Conversation
from rlmesh.server.environments import Environments
from rlmesh.server.places import Places, Ticket
from rlmesh.server.statistics import Statistics, together
from rlmesh.transport.carrier import Carrier

log = logger("rlmesh", "server")

# A client that has just left may take a moment to be noticed; the next one need not fail for it.
HANDOVER_SECONDS = 0.2
# How often whoever waits is told the position; whoever cannot be told leaves the queue.
NOTICE_SECONDS = 0.5
MOST_LAST_WORDS = 1024


class Session:
    """One client's session, its last answer, and the thread that its environment lives in."""

    def __init__(self, sessions: Registry, opening: Opening, ticket: Ticket) -> None:
        self.opening = opening
        self.id = opening.session_id
        self.statistics = Statistics()
        self.over = False
        self._sessions = sessions
        self._ticket = ticket
        self._hold = sessions.lease_seconds / 2
        self._conversation = Conversation(
            sessions.environments,
            sessions.codecs,
            on_close=self._gave_back,
            capabilities=opening.capabilities,
        )
        self._resumable = opening.resumable
        self._last_number: str | None = None
        self._kept: tuple[Answer, bool] | None = None
        self._news = threading.Condition()
        self._carrier: Carrier | None = None
        self._next: Carrier | None = None
        self._kind = ""
        self._parked_since: float | None = None
        self._dismissed = ""
        self._gone = False

    def answer(self, request: Request, /) -> tuple[Answer, bool]:
        """Return the answer, and whether the session is over after it."""
        number = request.request_id
        if number == self._last_number and self._kept is not None:
            self.statistics.repeated += 1
            return self._kept
        answer, over = self._conversation.answer(request)
        self.over = over
        if self._resumable:
            self._last_number, self._kept = number, (answer, over)
        statistics = self.statistics
        statistics.by_kind[request.kind].note(answer.timing.total)
        if isinstance(answer, ResetAnswer):
            statistics.episodes += max(1, len(request.lanes))
        elif isinstance(answer, Refused):
            statistics.note_fault(code_of(answer.fault))
        statistics.last_request = self._conversation.last_request
        if over:
            # Not before: what the last request was and ended in belongs to what is left of it.
            self._sessions.forget(self)
        return answer, over

    def too_large(self, operation: str, size: int, limit: int, /) -> Answer:
        """End the session; return what is said instead of an answer that is too large."""
        return self._said_instead(self._conversation.too_large(operation, size, limit))

    def unwritable(self, operation: str, error: Exception, /) -> Answer:
        """End the session; return what is said instead of an answer that cannot be written."""
        return self._said_instead(self._conversation.unwritable(operation, error))

    def _said_instead(self, answer: Answer) -> Answer:
        if isinstance(answer, Refused):
            self.statistics.note_fault(code_of(answer.fault))
        self.over = True
        self._kept = answer, True
        return answer

    def note_simplified(self, keys: Sequence[str], /) -> None:
        """Warn of info values that could not travel as they are."""
        self._conversation.note_simplified(keys)

    def live(self, carrier: Carrier, /) -> None:
        """Let a carrier serve it, then each that a returning client brings; return at its end."""
        try:
            self.begin(carrier)
            carrier.serve(self)
        finally:
            self.go_on()

    def begin(self, carrier: Carrier, /) -> None:
        """Note that this carrier serves it."""
        with self._news:
            self._serve_by(carrier)

    def go_on(self) -> None:
        """Wait for the client to return and go on, or end where it does not."""
        try:
            while (carrier := self._park()) is not None:
                carrier.serve(self)
        finally:
            self.close()

    def attach(self, carrier: Carrier, /) -> None:
        """Hand over to this carrier; one that still serves is cut off."""
        with self._news:
            if self._gone:
                raise _unknown(self.id)
            replaced = [one for one in (self._carrier, self._next) if one is not None]
            self._next = carrier
            self._news.notify()
        for one in replaced:
            one.cut()

    def end(self, reason: str, /) -> None:
        """End it after the request that it is at."""
        with self._news:
            self._dismissed = self._dismissed or reason
            carrier = self._carrier
            self._news.notify()
        self._conversation.give_up()
        if carrier is not None:
            carrier.cut()

    def close(self) -> None:
        """Give back what the session holds; in its thread. A second call does nothing."""
        with self._news:
            self._gone = True
            late, self._next = self._next, None
        if late is not None:
            late.cut()
        self._conversation.close()

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._conversation.busy

    @property
    def abandoned(self) -> bool:
        """Whether it is at a request that nobody waits for any more."""
        return self.busy and bool(self._dismissed)

    @property
    def parked(self) -> bool:
        """Whether it waits for its client to return."""
        return self._parked_since is not None

    def heard_last(self, number: str) -> tuple[Answer, bool] | None:
        """Return the answer that was kept for a request; None: that was not the last one."""
        return self._kept if number == self._last_number else None

    @property
    def ended_by_fault(self) -> bool:
        """Whether its last words are an error, which its client should hear."""
        return self.over and self._kept is not None and isinstance(self._kept[0], Refused)

    def knows(self, secret: str) -> bool:
        """Tell whether somebody may take the session over."""
        return hmac.compare_digest(self.opening.secret.encode(), secret.encode())

    @property
    def state(self) -> str:
        """`busy` with a request, `attached`, or `detached`: it waits for its client to return."""
        if self.parked:
            return "detached"
        return "busy" if self.busy else "attached"

    def to_dict(self) -> dict[str, object]:
        """Return what it is and has done, as plain data."""
        since = self._parked_since
        left = self._sessions.lease_seconds
        if since is not None:
            left = max(0.0, since + self._hold - time.monotonic())
        return {
            "id": self.id,
            "peer": self.opening.peer,
            "lane": self._kind,
            "state": self.state,
            "resumable": self._resumable,
            "lease_left_seconds": left if self._resumable else None,
            **self.statistics.to_dict(),
        }

    def _park(self) -> Carrier | None:
        with self._news:
            self._carrier = None
            self._parked_since = since = time.monotonic()
            try:
                while not self._is_finished():
                    carrier, self._next = self._next, None
                    if carrier is not None:
                        self._serve_by(carrier)
                        self.statistics.resumed += 1
                        return carrier
                    left = since + self._hold - time.monotonic()
                    if left <= 0:
                        log.info("session %s ends: its client did not come back", self.id)
                        break
                    self._news.wait(left)
            finally:
                self._parked_since = None
            self._gone = True
            return None

    def _serve_by(self, carrier: Carrier) -> None:
        self._carrier, self._kind = carrier, carrier.kind
        self.statistics.carried.append((carrier.kind, carrier.traffic))

    def _is_finished(self) -> bool:
        return self.over or bool(self._dismissed) or not self._resumable or self._sessions.stopping

    def _gave_back(self, _: Conversation) -> None:
        self._ticket.leave()
        if not self.busy:
            self._sessions.forget(self)


class LastWords:
    """What is left of a session that ended: its last answer, for a client that did not hear it."""

    def __init__(self, session: Session, until: float) -> None:
        self.id = session.id
        self.until = until
        self._session = session

    def knows(self, secret: str) -> bool:
        """Tell whether somebody may hear it."""
        return self._session.knows(secret)

    def answer(self, request: Request, /) -> tuple[Answer, bool]:
        """Return the kept answer to the last request; any other is refused."""
        kept = self._session.heard_last(request.request_id)
        if kept is not None:
            return kept
        fault = refusal(FaultCode.CLOSED, f"the session {self.id} has ended")
        return Refused(fault, Timing()), True

    def too_large(self, operation: str, size: int, limit: int, /) -> Answer:
        """Return what was said instead of an answer that is too large."""
        return self._session.too_large(operation, size, limit)

    def unwritable(self, operation: str, error: Exception, /) -> Answer:
        """Return what was said instead of an answer that cannot be written."""
        return self._session.unwritable(operation, error)

    def note_simplified(self, keys: Sequence[str], /) -> None:
        """Do nothing: they were noted when the answer was first written."""

    def live(self, carrier: Carrier, /) -> None:
        """Let a carrier serve it."""
        carrier.serve(self)

    def begin(self, carrier: Carrier, /) -> None:
        """Do nothing: nobody waits for what this carrier does."""

    def go_on(self) -> None:
        """Do nothing: there is nothing to go on with."""

    def attach(self, carrier: Carrier, /) -> None:
        """Let a carrier serve it in a thread of its own, as the session's has ended."""
        threading.Thread(
            target=carrier.serve, args=(self,), name="rlmesh-last-words", daemon=True
        ).start()

    def end(self, reason: str, /) -> None:
        """Do nothing: it has ended."""


class Registry:
    """All sessions of one server, and who may open the next.

    Args:
        environments: where sessions get theirs from.
        places: how many sessions there may be at once.
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
            raise _unknown(opening.session_id)
        return found

    def open(self, opening: Opening, /) -> Generator[int, None, Session]:
        """Yield the client's position in the queue now and then; return its session at its turn."""
        began = self._clock()
        ticket = self.places.enter()
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


def _unknown(name: str) -> SessionClosed:
    return SessionClosed(
        f"the session {name!r} is not here: it has ended, or it was another server's",
        code=SESSION_UNKNOWN,
        hint="Call reset() to start again.",
    )
