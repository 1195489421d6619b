"""One gRPC stream as a client uses it: requests go out, replies come back, each within its time."""

from __future__ import annotations

import threading
import time
import weakref
from queue import SimpleQueue

import grpc
from rlcore import ProtocolException, SessionClosed

from rlmesh.transport.addresses import Address
from rlmesh.transport.failures import failure_of, too_late

Metadata = tuple[tuple[str, str], ...]


class GrpcStream:
    """Sends requests and waits for replies; what they are about is the caller's.

    A stream that failed or timed out is over, so that the late reply of an abandoned request is
    never taken for the answer to the next one.

    Args:
        method: the procedure.
        metadata: what is said at its start.
        address: where it goes, for errors.
        timeout: how long each reply may take; None: no limit.
        message_limit: bytes of a message at most.
        again: how a caller whose stream is over starts again, in an error's hint.
    """

    def __init__(
        self,
        method: grpc.StreamStreamMultiCallable[bytes, bytes],
        *,
        metadata: Metadata,
        address: Address,
        timeout: float | None,
        message_limit: int,
        again: str,
    ) -> None:
        self._address = address
        self._timeout = timeout
        self._limit = message_limit
        self._again = again
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._call = method(iter(self._outbox.get, None), metadata=metadata)
        self._deadline: float | None = None
        self._timed_out = False
        self._ended = threading.Event()
        self.is_open = True
        self._start_to_watch()

    def be_patient(self, seconds: float | None) -> None:
        """Set how long each reply may take from now on."""
        if seconds == self._timeout or not self.is_open:
            return
        # The one that watches sleeps by the old limit.
        self._ended.set()
        self._ended = threading.Event()
        self._timeout = seconds
        self._start_to_watch()

    def exchange(self, request: bytes, operation: str) -> bytes:
        """Send a request and return its reply.

        Raises:
            CallTimeout: no reply came in time.
            SessionBusy: the server has no session to give.
            SessionClosed: the session was lost, or ended by the server.
            AccessDenied: the server refused the credential.
            ProtocolException: the message is larger than messages may be.
        """
        self.send(request, operation)
        return self.next_reply(operation)

    def send(self, request: bytes, operation: str) -> None:
        """Send a request without waiting.

        Raises:
            ProtocolException: the message is larger than messages may be.
        """
        if len(request) > self._limit:
            raise ProtocolException(
                f"{operation}: the message has {len(request)} bytes, the limit is {self._limit}",
                code="message_too_large",
            )
        self._outbox.put(request)

    def next_reply(self, operation: str) -> bytes:
        """Wait for the next reply; raises as `exchange`."""
        if self._timeout is not None:
            self._deadline = time.monotonic() + self._timeout
        try:
            return next(self._call)
        except StopIteration as error:
            self.close()
            raise SessionClosed(
                f"{operation} at {self._address}: the server ended the session",
                address=str(self._address),
                hint=self._again,
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

    def hurry(self, seconds: float) -> threading.Timer:
        """Give up whatever is awaited after so long, unless the timer is cancelled before."""
        impatience = threading.Timer(seconds, self._call.cancel)
        impatience.daemon = True
        impatience.start()
        return impatience

    def headers(self) -> dict[str, str]:
        """Return what the server said at the start of its answer; it waits for that."""
        told = self._call.initial_metadata() or ()
        return {name: text for name, text in told if isinstance(text, str)}

    def close(self) -> None:
        """End the stream; an unanswered request is abandoned."""
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

    def _failure(self, error: grpc.RpcError, operation: str) -> Exception:
        if self._timed_out:
            return too_late(operation, self._address, self._timeout)
        return failure_of(
            error, operation=operation, address=self._address, seconds=self._timeout, joined=True
        )


def _watch(watched: weakref.ref[GrpcStream], ended: threading.Event, pause: float) -> None:
    # One thread that sleeps, instead of a timer for each call; and it lets go of a forgotten one.
    while pause > 0.0 and not ended.wait(pause):
        stream = watched()
        if stream is None:
            return
        pause = stream.overdue()
        del stream
