"""A client's side of the conversation: what it asks in a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rlcore import Error

from rlmesh.client.ahead import Ahead, is_under_way
from rlmesh.client.arguments import checked_seconds
from rlmesh.client.held_session import HeldSession
from rlmesh.client.refusals import is_foreign
from rlmesh.client.reset_options import check_options
from rlmesh.protocol.handshake import TENSORS
from rlmesh.protocol.messages import FaultReceived, Leaves, Rendering, ResetReply, StepReply
from rlmesh.transport.handshake_wire import read_shutdown_answer, write_shutdown
from rlmesh.transport.lane import Lane
from rlmesh.transport.methods import SHUTDOWN

T = TypeVar("T")


class SessionLink(HeldSession):
    """Asks one server, in sessions, with what travels: encoded actions and observations.

    Where a session has ended, `ask_reset` opens another.
    """

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

    def _asked(self, operation: str, lane: Lane, ask: Callable[[Lane], T]) -> T:
        try:
            try:
                return ask(lane)
            except (FaultReceived, Error) as error:
                return self._recovered(operation, error, ask)
        except BaseException as error:
            self._note_interruption(error)
            raise
