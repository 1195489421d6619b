"""A session over gRPC: one ordered exchange of requests and replies over one stream."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue

import grpc
from rlcore import ProtocolException, SessionClosed

from rlmesh.protocol.messages import Leaves, Rendering, ResetReply, StepReply
from rlmesh.protocol.opening import Opening, lease_told
from rlmesh.transport import client_wire
from rlmesh.transport.addresses import Address
from rlmesh.transport.failures import failure_of, too_late
from rlmesh.transport.step_bytes import step_tail, write_step


class GrpcLane:
    """Sends a request and waits for its reply, one at a time; see `Lane`.

    A lane that failed or timed out is over, so that the late reply of an abandoned request is never
    taken for the answer to the next one.
    """

    def __init__(
        self,
        method: grpc.StreamStreamMultiCallable[bytes, bytes],
        *,
        metadata: tuple[tuple[str, str], ...],
        address: Address,
        timeout: float | None,
        message_limit: int,
        opening: Opening | None = None,
        told: Callable[[int], None] | None = None,
    ) -> None:
        self._opening = opening or Opening()
        self._told = told
        self._address = address
        self._timeout = timeout
        self._limit = message_limit
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._call = method(
            iter(self._outbox.get, None),
            metadata=metadata + (() if opening is None else opening.headers()),
        )
        self._deadline: float | None = None
        self._timed_out = False
        self._ended = threading.Event()
        self.is_open = True
        self.owns_memory = False
        self.lease_seconds = 0.0
        self._start_to_watch()

    def configure(self, number: int, edition: str) -> None:
        """Wait for the session's turn and pin the workflow edition."""
        name, doing = str(number), "opening a session"
        reply = self._exchange(client_wire.write_configure(name, edition), doing)
        while (position := client_wire.read_notice(reply)) is not None:
            if self._told is not None:
                self._told(position)
            reply = self._next_reply(doing)
        client_wire.read_configured(reply, name)
        self.lease_seconds = lease_told(self._headers())

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on."""
        if seconds == self._timeout or not self.is_open:
            return
        # The one that watches sleeps by the old limit.
        self._ended.set()
        self._ended = threading.Event()
        self._timeout = seconds
        self._start_to_watch()

    def resume(self) -> None:
        """Do nothing: whether the server has the session shows in its first reply."""

    def reset(
        self,
        number: int,
        *,
        seeds: Sequence[int | None],
        options: Mapping[str, object] | None,
        tensors: bool,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> ResetReply:
        """Start episodes."""
        name = str(number)
        request = client_wire.write_reset(
            name,
            seeds=seeds,
            options=options,
            tensors=tensors,
            timeout_ms=timeout_ms,
            lanes=lanes,
            episode_ids=episode_ids,
        )
        return client_wire.read_reset(self._exchange(request, "reset"), name)

    def step(
        self,
        number: int,
        leaves: Leaves,
        count: int,
        timeout_ms: int,
        lanes: tuple[int, ...],
        episode_ids: tuple[str, ...],
    ) -> StepReply:
        """Step `count` environments."""
        name = str(number)
        request = write_step(name, leaves, step_tail(timeout_ms, lanes, episode_ids))
        return client_wire.read_step(self._exchange(request, "step"), name, count)

    def render(self, number: int, lane: int, *, timeout_ms: int) -> Rendering:
        """Return what a lane's environment draws."""
        name = str(number)
        request = client_wire.write_render(name, lane, timeout_ms=timeout_ms)
        return client_wire.read_render(self._exchange(request, "render"), name)

    def say_goodbye(self, number: int, reason: str, seconds: float) -> None:
        """End the session in good order."""
        impatience = threading.Timer(seconds, self._call.cancel)
        impatience.daemon = True
        impatience.start()
        name = str(number)
        try:
            reply = self._exchange(client_wire.write_close(name, reason), "close")
            client_wire.read_closed(reply, name)
        finally:
            impatience.cancel()
            self.close()

    def _exchange(self, request: bytes, operation: str) -> bytes:
        """Send a request and return its reply.

        Raises:
            CallTimeout: no reply came in time.
            SessionBusy: the server has no session to give.
            SessionClosed: the session was lost, or ended by the server.
            AccessDenied: the server refused the credential.
            ProtocolException: the message is larger than messages may be.
        """
        if len(request) > self._limit:
            raise ProtocolException(
                f"{operation}: the message has {len(request)} bytes, the limit is {self._limit}",
                code="message_too_large",
            )
        self._outbox.put(request)
        return self._next_reply(operation)

    def _next_reply(self, operation: str) -> bytes:
        if self._timeout is not None:
            self._deadline = time.monotonic() + self._timeout
        try:
            return next(self._call)
        except StopIteration as error:
            self.close()
            raise SessionClosed(
                f"{operation} at {self._address}: the server ended the session",
                address=str(self._address),
                hint="Call reset() to start again.",
            ) from error
        except grpc.RpcError as error:
            is_ours = not self.is_open and not self._timed_out
            self.close()
            if is_ours:
                raise SessionClosed(
                    f"{operation} at {self._address}: this client hung up",
                    address=str(self._address),
                ) from error
            raise self._failure(error, operation) from error
        except BaseException:
            # Interrupted while waiting: the reply may still come, and belongs to nobody.
            self.close()
            raise
        finally:
            self._deadline = None

    def close(self) -> None:
        """End the session's stream; an unanswered request is abandoned."""
        if not self.is_open:
            return
        self.is_open = False
        self._ended.set()
        self._outbox.put(None)
        self._call.cancel()

    def overdue(self) -> float:
        """Return how long the awaited reply may still take; one that is due is given up."""
        deadline, timeout = self._deadline, self._timeout or 0.0
        if deadline is None:
            # With nothing to wait for, nothing can be due sooner than a whole timeout from now.
            return timeout
        left = deadline - time.monotonic()
        if left <= 0.0:
            self._timed_out = True
            self._call.cancel()
        return left

    def _start_to_watch(self) -> None:
        if self._timeout is not None:
            watching = (weakref.ref(self), self._ended, self._timeout)
            threading.Thread(target=_watch, args=watching, daemon=True).start()

    def _headers(self) -> dict[str, str]:
        # They came before the first reply, so that nothing is waited for here.
        told = self._call.initial_metadata() or ()
        return {name: text for name, text in told if isinstance(text, str)}

    def _failure(self, error: grpc.RpcError, operation: str) -> Exception:
        if self._timed_out:
            return too_late(operation, self._address, self._timeout)
        return failure_of(
            error, operation=operation, address=self._address, seconds=self._timeout, joined=True
        )


def _watch(watched: weakref.ref[GrpcLane], ended: threading.Event, pause: float) -> None:
    # One thread that sleeps, instead of a timer for each call; and it lets go of a forgotten lane.
    while pause > 0.0 and not ended.wait(pause):
        lane = watched()
        if lane is None:
            return
        pause = lane.overdue()
        del lane
