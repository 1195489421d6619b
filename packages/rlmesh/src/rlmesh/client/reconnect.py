"""A session as its client holds it: opened, taken up again where its way broke, and let go."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from rlcore import AccessDenied, Deadline, ServerUnreachable, SessionBusy, SessionClosed
from rlcore.backoff import Backoff
from rlcore.log import logger

from rlmesh.client.dialling import Dialled
from rlmesh.client.lanes import open_lane
from rlmesh.protocol.handshake import CLIENT_CAPABILITIES, RESUME
from rlmesh.protocol.identifiers import time_ordered_id
from rlmesh.protocol.opening import (
    CONNECTION_LOST,
    CUT_OFF,
    SERVER_GONE,
    SHUTTING_DOWN,
    Opening,
    new_opening,
)
from rlmesh.transport.lane import Lane

T = TypeVar("T")

log = logger("rlmesh", "client")
DELAYS = Backoff(first=0.02, factor=2.0, cap=1.0, jitter=0.2)
# Where nobody listens any more, a server that is only being restarted has lost its sessions anyway.
NOBODY_THERE_SECONDS = 0.3
# Until the server has told its lease.
OPENING_SECONDS = 10.0
PARTING_SECONDS = 0.5
RETRIED = (CONNECTION_LOST, CUT_OFF, ServerUnreachable.default_code)
NOBODY_THERE = (SERVER_GONE, ServerUnreachable.default_code)
MS = 1000


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits for what.

    Attributes:
        request_seconds: for each reply; None: no limit.
        resume_seconds: for the way to a session to work again; None: as long as the server keeps
            the session.
        queue_seconds: for a place on the server; None: as the server sees fit.
        told: hears the position in the queue.
        reconnects: whether `reset` opens another session where the last one was lost.
    """

    request_seconds: float | None
    resume_seconds: float | None = None
    queue_seconds: float | None = None
    told: Callable[[int], None] | None = None
    reconnects: bool = True

    @property
    def timeout_ms(self) -> int:
        """The time for each request as it is said to the server; 0: no limit."""
        return 0 if self.request_seconds is None else max(1, int(self.request_seconds * MS))


class Wires:
    """What has to be hung up when a client is forgotten; it holds no way back to the client.

    Args:
        dialled: the connection.
        patience: how long to wait for what.
        renew: dials anew with another credential; None: there is only the one.
        num_envs: how many environments the session is to have, each with its own episodes; 0: what
            the server serves, as one.
    """

    def __init__(
        self,
        dialled: Dialled,
        patience: Patience,
        renew: Callable[[], Dialled] | None = None,
        num_envs: int = 0,
    ) -> None:
        self.num_envs = num_envs
        self.dialled = dialled
        self.patience = patience
        self._renew = renew
        self.lane: Lane | None = None
        self.pid = os.getpid()
        self.opening: Opening | None = None
        self.session_id = time_ordered_id()
        self._lease_seconds = 0.0
        self._position: int | None = None

    def open(self, number: int) -> Lane:
        """Open a new session and pin its edition; once more where its way breaks meanwhile.

        Raises:
            SessionBusy: the server has no place for it.
            SessionClosed: the server is gone, or the way did not work again in time.
            Error: as `Lane.configure`.
        """
        self.let_go()
        offered = self.dialled.welcome.offers(RESUME)
        if offered:
            self.opening = new_opening(
                CLIENT_CAPABILITIES, self.patience.queue_seconds, self.num_envs
            )
        self.session_id = time_ordered_id() if self.opening is None else self.opening.session_id
        self._lease_seconds = 0.0
        edition, self._position = self.dialled.edition, None
        try:
            try:
                lane = self.lane = self._lane(self.opening)
                lane.configure(number, edition)
            except (SessionClosed, ServerUnreachable) as error:
                lane = self.again(error, lambda fresh: _configured(fresh, number, edition))
        except SessionBusy as error:
            error.position = self._position
            raise
        self._lease_seconds = lane.lease_seconds
        if not self._lease_seconds:
            self.opening = None
        return lane

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on; None: no limit."""
        self.patience = replace(self.patience, request_seconds=seconds)
        if self.lane is not None and self.lane.is_open:
            self.lane.be_patient(seconds)

    def again(self, error: SessionClosed | ServerUnreachable, ask: Callable[[Lane], T]) -> T:
        """Ask again what broke off, over a fresh connection to the same session.

        The server knows a request by its number: one that it has run already gets the answer that
        it gave.

        Raises:
            SessionClosed: it cannot be resumed, or the way did not work again in time.
            Error: whatever `ask` raises.
        """
        opening = self.opening
        patience = self._resume_seconds()
        if opening is None or error.code not in RETRIED or not patience:
            raise error
        comes_back = replace(opening, resume=self._lease_seconds > 0)
        window = _Window(patience)
        renewed = False
        log.info("the connection of session %s broke; it is resumed: %s", opening.session_id, error)
        while True:
            try:
                lane = self._redial(comes_back)
                if comes_back.resume:
                    lane.resume()
                return ask(lane)
            except (SessionClosed, ServerUnreachable) as failure:
                if window.is_over_after(failure):
                    if error.code == CUT_OFF and failure.code in NOBODY_THERE:
                        raise _shut_down(error) from failure
                    if isinstance(failure, ServerUnreachable):
                        raise error from failure  # that the session was lost is the news
                    raise
            except AccessDenied:
                # What a resolver gave for it may have ended meanwhile; the session has not.
                if renewed or self._renew is None:
                    raise
                renewed = True
                old, self.dialled = self.dialled, self._renew()
                old.connection.close()
            window.pause()

    def let_go(self, *, wait: float = 0.0) -> None:
        """Hang up, and tell the server that nobody comes back, so that it need not wait.

        Args:
            wait: how many seconds to wait until the server has heard it.
        """
        lane, self.lane = self.lane, None
        opening, self.opening = self.opening, None
        if opening is not None:
            self.dialled.connection.leave(opening, wait=wait)
        if lane is not None:
            lane.close()

    def has_ended(self) -> None:
        """Hang up without a word, as the server has ended the session itself."""
        self.opening = None
        if self.lane is not None:
            self.lane.close()

    def hang_up(self) -> None:
        """End the session and the connection, unless they belong to the process before a fork."""
        if self.pid != os.getpid():
            return
        self.let_go(wait=PARTING_SECONDS)
        self.dialled.connection.close()

    def _lane(self, opening: Opening | None) -> Lane:
        return open_lane(
            self.dialled,
            self.dialled.connection,
            opening,
            timeout=self.patience.request_seconds,
            told=self._hear,
        )

    def _hear(self, position: int) -> None:
        if position != self._position:
            log.info("waiting for a session: position %d in the queue", position)
            if self.patience.told is not None:
                self.patience.told(position)
        self._position = position

    def _redial(self, opening: Opening) -> Lane:
        if self.lane is not None:
            self.lane.close()
        old = self.dialled.connection
        # The old one may take a while to notice that it is broken, or wait before it dials again.
        self.dialled = replace(self.dialled, connection=old.again())
        old.close()
        self.lane = self._lane(opening)
        return self.lane

    def _resume_seconds(self) -> float:
        if self.patience.resume_seconds is not None:
            return self.patience.resume_seconds
        return self._lease_seconds or OPENING_SECONDS


class _Window:
    """The time in which it is worth trying again."""

    def __init__(self, seconds: float) -> None:
        self._deadline = Deadline.after(seconds)
        self._nobody_there: Deadline | None = None
        self._delays = DELAYS.delays()

    def is_over_after(self, failure: SessionClosed | ServerUnreachable) -> bool:
        """Tell whether no other attempt is to follow one that failed like this."""
        if isinstance(failure, ServerUnreachable) or failure.code == SERVER_GONE:
            self._nobody_there = self._nobody_there or Deadline.after(NOBODY_THERE_SECONDS)
            return self._nobody_there.expired() or self._deadline.expired()
        return failure.code not in RETRIED or self._deadline.expired()

    def pause(self) -> None:
        """Wait until the next attempt is due."""
        time.sleep(self._deadline.at_most(next(self._delays)))


def _shut_down(error: SessionClosed | ServerUnreachable) -> SessionClosed:
    return SessionClosed(
        f"{error.message}: {SHUTTING_DOWN}",
        address=error.address,
        code=SERVER_GONE,
        hint=error.hint,
    )


def _configured(lane: Lane, number: int, edition: str) -> Lane:
    lane.configure(number, edition)
    return lane
