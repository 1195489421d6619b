"""One session: it outlives its connections, and answers no request twice."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlcore import SessionClosed
from rlcore.log import logger

from rlmesh.protocol.faults import code_of
from rlmesh.protocol.messages import Answer, Refused, Request, ResetAnswer
from rlmesh.protocol.opening import SESSION_UNKNOWN, Opening
from rlmesh.server.conversation import Conversation
from rlmesh.server.places import Ticket
from rlmesh.server.statistics import Statistics
from rlmesh.transport.carrier import Carrier

if TYPE_CHECKING:
    from rlmesh.server.sessions import Registry

log = logger("rlmesh", "server")


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
            several=opening.num_envs,
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
                raise unknown_session(self.id)
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
            "environments": self.opening.places,
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


def unknown_session(name: str) -> SessionClosed:
    """Return what is said of a session that is not here."""
    return SessionClosed(
        f"the session {name!r} is not here: it has ended, or it was another server's",
        code=SESSION_UNKNOWN,
        hint="Call reset() to start again.",
    )
