"""A client's session: opened when it is needed, found lost, and left in good order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from rlcore import (
    AccessDenied,
    EnvironmentIdentity,
    Error,
    RLMeshException,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)
from rlcore.log import logger

from rlmesh.client.ahead import Ahead
from rlmesh.client.dialling import Destination, dial
from rlmesh.client.lanes import require_offered, require_several
from rlmesh.client.reconnect import Patience, Wires
from rlmesh.client.refusals import is_closed, is_foreign, is_not_ready, was_lost
from rlmesh.client.reset_options import ResetOptions
from rlmesh.client.turn import Turn
from rlmesh.protocol.faults import Occasion, error_of
from rlmesh.protocol.messages import FaultReceived
from rlmesh.spaces.coerce import shown
from rlmesh.specs import EnvContract
from rlmesh.transport.lane import Lane

log = logger("rlmesh", "client")
# A server that does not answer a goodbye in this time ends the session by its lease.
GOODBYE_SECONDS = 1.0
T = TypeVar("T")
Outcome = tuple[object, float, bool, bool, dict[str, object]]


class HeldSession:
    """A session with one server, and what is known of it.

    It is opened by the first call that needs one. Where only the way to it breaks, it is taken up
    again, and the caller notices nothing but the delay. After a failure that ended it another is
    opened; if the server was lost, or what a resolver gave for it has expired, it is dialled anew,
    and the contract is checked again. A call that is interrupted, as by Ctrl-C, ends the session
    too, as nobody knows whether it took effect.
    """

    def __init__(
        self,
        destination: Destination,
        *,
        patience: Patience,
        num_envs: int = 0,
    ) -> None:
        dialled = dial(destination)
        try:
            require_offered(dialled)
            require_several(dialled, num_envs)
        except UnsupportedError:
            dialled.connection.close()
            raise
        self.episode_id = ""
        # As it was given, for an error that tells of it.
        self.last_action: object = None
        known = self._destination = replace(destination, contract=dialled.contract)
        renew = (lambda: dial(known)) if known.is_resolved else None
        self.wires = Wires(dialled, patience, renew, num_envs)
        self._timeout_ms = patience.timeout_ms
        self._options = ResetOptions()
        self._turn = Turn()
        self._ahead: Ahead | None = None
        # What the server told of the last step, in nanoseconds; 0 where it does not.
        self.served_ns = self.user_ns = 0
        self._requests = 0
        self._seed: int | None = None
        self._steps = 0
        self._was_reset = False
        self.was_interrupted = False
        self._one_of_several = False
        self._lost = False
        self._closed = False
        if self.is_taken:
            log.warning(
                "the environment at %s is being driven by another client: reset() will be refused "
                "until that one leaves (queue_timeout_seconds= waits for it)",
                dialled.connection.address,
            )

    @property
    def is_running(self) -> bool:
        """Whether there is a session in which steps can be taken."""
        return self.wires.lane is not None and self._was_reset

    @property
    def is_taken(self) -> bool:
        """Whether somebody else was driving the one environment when this client connected."""
        return self.wires.dialled.welcome.is_taken

    @property
    def session_id(self) -> str:
        """The id of the session, which the server knows it by as well."""
        return self.wires.session_id

    @property
    def contract(self) -> EnvContract:
        """What the server promises."""
        return self.wires.dialled.contract

    @property
    def identity(self) -> EnvironmentIdentity:
        """Which environment it is: the registered one, where it was resolved by name."""
        return self.wires.dialled.identity

    def require_running(self) -> None:
        """Do nothing where a step can be taken.

        Raises:
            EnvironmentException: there is no running episode.
            SessionClosed: this client was closed, or made before a fork.
        """
        if self.wires.pid != os.getpid():
            raise is_foreign(self._address)
        if self.wires.lane is None or not self._was_reset:
            raise self._not_ready()

    def close(self) -> None:
        """Leave the server, within two seconds also where it is stuck; it never fails.

        A second call does nothing.
        """
        if self._closed:
            return
        self._closed = True
        if self.wires.pid != os.getpid():
            return  # a goodbye from here would end the session of the process that has it
        lane = self.wires.lane
        ahead, self._ahead = self._ahead, None
        # A goodbye would have to wait for the answer to a step that is under way.
        if ahead is None and lane is not None and lane.is_open and self._turn.try_take():
            try:
                lane.say_goodbye(self._next(), "client close", GOODBYE_SECONDS)
                self.wires.has_ended()
            except (RLMeshException, FaultReceived):
                pass  # the session is over, which is all that was asked for
            finally:
                self._turn.release()
        self.wires.hang_up()

    def _joined(self) -> Lane:
        self.require_open()
        lane = self.wires.lane
        if lane is not None and lane.is_open:
            return lane
        if self._lost and not self.wires.patience.reconnects:
            raise was_lost(self._address)
        if not self._lost and not self._is_expired():
            try:
                return self._join()
            except AccessDenied:
                if not self._destination.is_resolved:
                    raise
        self._dial_again()
        return self._join()

    def _join(self) -> Lane:
        try:
            return self.wires.open(self._next())
        except (FaultReceived, Error) as error:
            if isinstance(error, AccessDenied):
                self._destination.advise(error)
            raise self._failure("opening a session", error) from error.__cause__
        except BaseException as error:
            self._note_interruption(error)
            raise

    def _is_expired(self) -> bool:
        return self._destination.is_resolved and self.wires.dialled.endpoint.expired(time.time())

    def _dial_again(self) -> None:
        self._lost = True
        self.wires.hang_up()
        self.wires.dialled = dial(self._destination)
        require_several(self.wires.dialled, self.wires.num_envs)
        self._lost = False

    def _recovered(
        self, operation: str, error: FaultReceived | Error, ask: Callable[[Lane], T]
    ) -> T:
        """Return what asking again gives where only the way broke; else raise what it means."""
        if isinstance(error, SessionClosed):
            if self._closed:  # by another thread, meanwhile
                raise is_closed(self._address) from error
            try:
                return self.wires.again(error, ask)
            except (FaultReceived, Error) as failure:
                error = failure
        raise self._failure(operation, error) from error.__cause__

    def _note_interruption(self, error: BaseException) -> None:
        # As by Ctrl-C: whether the request ran is unknown, and its answer may still be under way.
        if isinstance(error, FaultReceived | Error):
            return
        self._was_reset, self.was_interrupted = False, True
        self.wires.let_go()

    def _failure(self, operation: str, error: FaultReceived | Error) -> Error:
        if isinstance(error, FaultReceived):
            fault = error.fault
            if not fault.recoverable and not self._one_of_several:
                # The server ends the session after this; the next reset opens another.
                self._was_reset = False
                self.wires.has_ended()
            return error_of(fault, self._occasion(operation))
        self._was_reset = False
        if isinstance(error, SessionBusy):
            self.wires.has_ended()
        else:
            self._lost = True
            if not self.wires.patience.reconnects:
                error.hint = "Make a new client: this one was told not to open another session."
            # It may still be in the environment: it ends there once that returns.
            self.wires.let_go()
        return error

    def _not_ready(self) -> Error:
        if self._closed:
            return is_closed(self._address)
        return is_not_ready(self.identity.name, was_interrupted=self.was_interrupted)

    @property
    def _address(self) -> str:
        return str(self.wires.dialled.connection.address)

    def require_open(self) -> None:
        """Do nothing where this client was not closed.

        Raises:
            SessionClosed: it was.
        """
        if self._closed:
            raise is_closed(self._address)

    def _require_own_process(self) -> None:
        if self.wires.pid != os.getpid():
            raise is_foreign(self._address)

    def _occasion(self, operation: str) -> Occasion:
        return Occasion(
            operation=operation,
            environment=self.identity.name,
            session_id=self.session_id,
            episode_id=self.episode_id or None,
            seed=self._seed,
            step=self._steps if operation == "step" else None,
            action=shown(self.last_action) if operation == "step" else None,
        )

    def _next(self) -> int:
        self._requests += 1
        return self._requests
