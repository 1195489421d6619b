"""A client's side of the conversation: a session's requests, and coming back after a failure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
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

from rlmesh.client.ahead import Ahead, is_under_way
from rlmesh.client.arguments import checked_seconds
from rlmesh.client.dialling import Destination, dial
from rlmesh.client.lanes import require_offered, require_several
from rlmesh.client.reconnect import Patience, Wires
from rlmesh.client.refusals import is_closed, is_foreign, is_not_ready, was_lost
from rlmesh.client.reset_options import ResetOptions, check_options
from rlmesh.client.turn import Turn
from rlmesh.protocol.faults import Occasion, error_of
from rlmesh.protocol.handshake import TENSORS
from rlmesh.protocol.messages import FaultReceived, Leaves, Rendering, ResetReply, StepReply
from rlmesh.spaces.coerce import shown
from rlmesh.specs import EnvContract
from rlmesh.transport.handshake_wire import read_shutdown_answer, write_shutdown
from rlmesh.transport.lane import Lane
from rlmesh.transport.methods import SHUTDOWN

log = logger("rlmesh", "client")
# A server that does not answer a goodbye in this time ends the session by its lease.
GOODBYE_SECONDS = 1.0
T = TypeVar("T")
Outcome = tuple[object, float, bool, bool, dict[str, object]]


class SessionLink:
    """Asks one server, in sessions, with what travels: encoded actions and observations.

    A session is opened by the first call that needs one. Where only the way to it breaks, it is
    taken up again, and the caller notices nothing but the delay. After a failure that ended it,
    `ask_reset` opens another; if the server was lost, or what a resolver gave for it has expired,
    it is dialled anew, and the contract is checked again. A call that is interrupted, as by Ctrl-C,
    ends the session too, as nobody knows whether it took effect.
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

    def send_ahead(self, ahead: Ahead) -> None:
        """Send a step under the next number; `receive_ahead` waits for its answer."""
        self._turn.take()
        try:
            lane = self.wires.lane
            if lane is None or not self._was_reset:
                raise self._not_ready()
            self._steps += 1
            ahead.number = number = self._next()
            leaves, count, lanes = ahead.leaves, ahead.count, ahead.lanes
            try:
                lane.begin_step(number, leaves, count, self._timeout_ms, lanes, ahead.episode_ids)
            except (FaultReceived, Error) as error:
                ahead.failure = error
            self._ahead = ahead
        except BaseException as error:
            self._note_interruption(error)
            raise
        finally:
            self._turn.release()

    def receive_ahead(self, ahead: Ahead) -> StepReply:
        """Wait for the answer to the step that was sent ahead."""
        self._turn.take()
        try:
            self._ahead = None
            lane = self.wires.lane
            if lane is None or not self._was_reset:
                raise self._not_ready()
            number, leaves, count = ahead.number, ahead.leaves, ahead.count
            try:
                if ahead.failure is not None:
                    raise ahead.failure
                reply = lane.end_step(number, count)
            except (FaultReceived, Error) as error:
                seconds, lanes, ids = self._timeout_ms, ahead.lanes, ahead.episode_ids
                reply = self._recovered(
                    "step",
                    error,
                    lambda again: again.step(number, leaves, count, seconds, lanes, ids),
                )
            self.served_ns, self.user_ns = reply.served_ns, reply.user_ns
            return reply
        except BaseException as error:
            self._note_interruption(error)
            raise
        finally:
            self._turn.release()

    def ask_reset(
        self,
        seeds: Sequence[int | None],
        options: Mapping[str, object] | None,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
        *,
        partial: bool = False,
    ) -> ResetReply:
        """Start episodes in these lanes, or in all where none is named; see `Lane.reset`.

        Where the reset is `partial`, the episodes of other lanes go on, also if it is refused.
        """
        self._require_own_process()
        check_options(options)
        with self._turn:
            lane = self._joined()
            tensors = self.wires.dialled.welcome.offers(TENSORS)
            fitting = self._options.fitting(options, tensors=tensors)
            if not partial:
                self._steps, self._was_reset = 0, False
            number = self._next()

            def ask(lane: Lane) -> ResetReply:
                return lane.reset(
                    number,
                    seeds=seeds,
                    options=fitting,
                    tensors=tensors,
                    timeout_ms=self._timeout_ms,
                    lanes=lanes,
                    episode_ids=episode_ids,
                )

            # Of several environments, one that fails does not end the session of the others.
            self._one_of_several = partial and self.wires.num_envs > 0
            try:
                reply = self._asked("reset", lane, ask)
            finally:
                self._one_of_several = False
            self._was_reset, self.was_interrupted = True, False
            return reply

    def ask_step(
        self, leaves: Leaves, count: int, lanes: tuple[int, ...], episode_ids: tuple[str, ...]
    ) -> StepReply:
        """Step so many lanes with encoded actions; see `Lane.step`."""
        if self.wires.pid != os.getpid():
            raise is_foreign(self._address)
        self._turn.take()
        try:
            lane = self.wires.lane
            if lane is None or not self._was_reset:
                raise self._not_ready()
            self._steps += 1
            number = self._next()
            try:
                reply = lane.step(number, leaves, count, self._timeout_ms, lanes, episode_ids)
            except (FaultReceived, Error) as error:
                seconds = self._timeout_ms
                reply = self._recovered(
                    "step",
                    error,
                    lambda again: again.step(number, leaves, count, seconds, lanes, episode_ids),
                )
            self.served_ns, self.user_ns = reply.served_ns, reply.user_ns
            return reply
        except BaseException as error:
            self._note_interruption(error)
            raise
        finally:
            self._turn.release()

    @contextmanager
    def with_timeout(self, seconds: float | None) -> Generator[None]:
        """Let calls within the block take so long, instead of what the client was made with.

        Raises:
            ConfigurationError: it is no number of seconds.
        """
        limit = checked_seconds("with_timeout", seconds)
        before = self.wires.patience.request_seconds
        self._be_patient(limit)
        try:
            yield
        finally:
            self._be_patient(before)

    def _be_patient(self, seconds: float | None) -> None:
        self.wires.be_patient(seconds)
        self._timeout_ms = self.wires.patience.timeout_ms

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

    def render(self, lane_index: int) -> Rendering:
        """Return what a lane's environment draws."""
        self._require_own_process()
        if self._ahead is not None:
            raise is_under_way("render")
        with self._turn:
            lane, number = self._joined(), self._next()
            return self._asked(
                "render",
                lane,
                lambda lane: lane.render(number, lane_index, timeout_ms=self._timeout_ms),
            )

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

    def shutdown(self, reason: str) -> bool:
        """Ask the server to stop; False when it does not let clients do that."""
        self._require_own_process()
        self.require_open()
        reply = self.wires.dialled.connection.call(
            SHUTDOWN,
            write_shutdown(reason),
            operation="shutdown",
            timeout=self.wires.patience.request_seconds,
        )
        accepted, _ = read_shutdown_answer(reply)
        if accepted:
            self.close()
        return accepted

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

    def _asked(self, operation: str, lane: Lane, ask: Callable[[Lane], T]) -> T:
        try:
            try:
                return ask(lane)
            except (FaultReceived, Error) as error:
                return self._recovered(operation, error, ask)
        except BaseException as error:
            self._note_interruption(error)
            raise

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
