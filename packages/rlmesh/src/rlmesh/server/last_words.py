"""What is left of a session that has ended."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rlmesh.protocol.faults import FaultCode, refusal
from rlmesh.protocol.messages import Answer, Refused, Request, Timing
from rlmesh.server.session import Session
from rlmesh.transport.carrier import Carrier


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
