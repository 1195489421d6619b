"""A session's messages over one gRPC stream, as the server carries them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import grpc
from rlcore import ProtocolException, SessionClosed
from rlcore.log import logger

from rlmesh.protocol.messages import Request
from rlmesh.protocol.opening import SHUTTING_DOWN
from rlmesh.transport.carrier import Session
from rlmesh.transport.server_wire import ServerWire
from rlmesh.transport.traffic import Traffic

log = logger("rlmesh", "server")
KIND = "grpc"


class GrpcCarrier:
    """Carries a session over a stream whose handler is another thread than the session's.

    That is so after a break only: the stream that opens a session is served by the session's own
    thread, in `inline`, without a hand-over for each answer.
    """

    kind = KIND

    def __init__(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, *, limit: int
    ) -> None:
        self._requests = requests
        self._context = context
        self._limit = limit
        self.traffic = Traffic()
        self._wire = ServerWire()
        self._replies: SimpleQueue[bytes | None] = SimpleQueue()
        self._broken_rule: ProtocolException | None = None

    def inline(self, session: Session, stopping: Callable[[], bool]) -> Iterator[bytes]:
        """Answer requests in the calling thread, which has to be the session's.

        Raises:
            ProtocolException: a request cannot be read; the session is over.
        """
        session.begin(self)
        try:
            for data in self._requests:
                reply, over = self._answer(session, data)
                yield reply
                if over:
                    return
                if stopping():
                    session.end(SHUTTING_DOWN)
                    raise SessionClosed(SHUTTING_DOWN)
        except ProtocolException as error:
            self._broken_rule = error
            session.end("its client broke the protocol")
            raise
        except grpc.RpcError:
            return  # the connection has gone; there is nobody to tell
        finally:
            session.go_on()

    def serve(self, session: Session, /) -> None:
        """Answer requests until the connection breaks or the session is over."""
        try:
            for data in self._requests:
                reply, over = self._answer(session, data)
                self._replies.put(reply)
                if over:
                    return
        except ProtocolException as error:
            self._broken_rule = error
            session.end("its client broke the protocol")
        except grpc.RpcError:
            return  # the connection has gone; the client may come back over another
        finally:
            self._replies.put(None)

    def replies(self) -> Iterator[bytes]:
        """Hand out what `serve` answers; for the stream's handler.

        Raises:
            ProtocolException: a request cannot be read; the session is over.
        """
        # A session that is stuck in its environment does not pick this up; the handler leaves.
        if not self._context.add_callback(lambda: self._replies.put(None)):
            return
        yield from iter(self._replies.get, None)
        if self._broken_rule is not None:
            raise self._broken_rule

    def cut(self) -> None:
        """Break the connection, unless its client is about to be told what it did wrong."""
        if self._broken_rule is not None:
            return
        with contextlib.suppress(ValueError):  # it was never started, or is over
            self._context.cancel()

    def _answer(self, session: Session, data: bytes) -> tuple[bytes, bool]:
        self.traffic.received += len(data)
        request = self._wire.read(data)
        answer, over = session.answer(request)
        try:
            reply, simplified = self._wire.write(request.request_id, answer)
        except Exception as error:
            log.exception("the answer to a %s cannot be written", request.kind)
            answer, over = session.unwritable(request.kind, error), True
            reply, simplified = self._wire.write(request.request_id, answer)
        if simplified:
            session.note_simplified(simplified)
        if len(reply) > self._limit:
            reply, over = self._too_large(session, request, len(reply)), True
        self.traffic.sent += len(reply)
        return reply, over

    def _too_large(self, session: Session, request: Request, size: int) -> bytes:
        answer = session.too_large(request.kind, size, self._limit)
        return self._wire.write(request.request_id, answer)[0]
