"""The client's side of a session: one ordered exchange of requests and replies over one stream."""

from __future__ import annotations

import threading
import time
import weakref
from queue import SimpleQueue

import grpc
from rlcore import CallTimeout, ProtocolException, SessionClosed

from rlmesh.transport.addresses import Address
from rlmesh.transport.failures import failure_of


class Lane:
    """Sends a request and waits for its reply, one at a time.

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
    ) -> None:
        self._address = address
        self._timeout = timeout
        self._limit = message_limit
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._call = method(iter(self._outbox.get, None), metadata=metadata)
        self._deadline: float | None = None
        self._timed_out = False
        self._ended = threading.Event()
        self.is_open = True
        if timeout is not None:
            watched = weakref.ref(self)
            threading.Thread(
                target=_watch, args=(watched, self._ended, timeout), daemon=True
            ).start()

    def exchange(self, request: bytes, operation: str) -> bytes:
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
        if self._timeout is not None:
            self._deadline = time.monotonic() + self._timeout
        self._outbox.put(request)
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
            self.close()
            raise self._failure(error, operation) from error
        except BaseException:
            # Interrupted while waiting: the reply may still come, and belongs to nobody.
            self.close()
            raise
        finally:
            self._deadline = None

    def say_goodbye(self, request: bytes, operation: str, seconds: float) -> bytes:
        """Send the last request and return its reply, waiting no longer than `seconds`.

        Raises:
            RLMeshException: as `exchange`; the session is over in any case.
        """
        impatience = threading.Timer(seconds, self._call.cancel)
        impatience.daemon = True
        impatience.start()
        try:
            return self.exchange(request, operation)
        finally:
            impatience.cancel()
            self.close()

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

    def _failure(self, error: grpc.RpcError, operation: str) -> Exception:
        if self._timed_out:
            return CallTimeout(
                f"{operation} at {self._address} did not answer within {self._timeout:g} s",
                operation=operation,
                seconds=self._timeout,
                layer="request",
                hint="The environment may hang. reset() starts a new session; "
                "raise request_timeout_seconds if it is only slow.",
            )
        return failure_of(
            error, operation=operation, address=self._address, seconds=self._timeout, joined=True
        )


def _watch(watched: weakref.ref[Lane], ended: threading.Event, pause: float) -> None:
    # One thread that sleeps, instead of a timer for each call; and it lets go of a forgotten lane.
    while pause > 0.0 and not ended.wait(pause):
        lane = watched()
        if lane is None:
            return
        pause = lane.overdue()
        del lane
