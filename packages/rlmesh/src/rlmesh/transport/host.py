"""The server's side: bind, let callers in, carry their messages to the service, drain."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Protocol

import grpc
from rlcore import ProtocolException, RLMeshException, SessionBusy, SessionClosed

from rlmesh.protocol.opening import (
    LEASE_SECONDS,
    SESSION_EXISTS,
    SESSION_UNKNOWN,
    SHUTTING_DOWN,
    Opening,
    read_opening,
)
from rlmesh.transport.access import Access
from rlmesh.transport.addresses import Address
from rlmesh.transport.binding import bind
from rlmesh.transport.calls import grpc_server
from rlmesh.transport.carrier import Registry, Session
from rlmesh.transport.failures import brief
from rlmesh.transport.frame_host import FrameHost
from rlmesh.transport.grpc_carrier import GrpcCarrier
from rlmesh.transport.health import Health
from rlmesh.transport.limits import LONGEST_QUEUE
from rlmesh.transport.methods import ENV_SERVICE
from rlmesh.transport.ops import Status, ops_handler
from rlmesh.transport.server_wire import write_notice
from rlmesh.transport.tls import ServerTls

PARTING_SECONDS = 0.5
FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
_BUSY = {
    "sessions_exhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
    SESSION_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
}
# Whether a session is unknown here, or the server ends it.
_ENDED = {True: grpc.StatusCode.NOT_FOUND, False: grpc.StatusCode.UNAVAILABLE}


class Service(Protocol):
    """What a host carries messages to."""

    @property
    def registry(self) -> Registry:
        """The sessions of the server."""
        ...

    def handshake(self, request: bytes) -> bytes:
        """Answer a handshake."""
        ...

    def shutdown(self, request: bytes) -> bytes:
        """Answer a request to stop serving."""
        ...


class Host:
    """A bound server; it answers after `start`."""

    def __init__(
        self,
        address: Address,
        service: Service,
        *,
        access: Access,
        max_sessions: int,
        message_limit: int,
        lane_port: int | None = None,
        answer_bytes: int = 0,
        tls: ServerTls | None = None,
        inspect: Callable[[], Status] | None = None,
    ) -> None:
        self._service = service
        self._health = Health()
        self._limit = message_limit
        self._started = False
        self._stopping = False
        self._joined: set[grpc.ServicerContext] = set()
        self._server = grpc_server(
            access,
            message_limit=message_limit,
            silent_seconds=service.registry.lease_seconds / 2,
            # A session that waits for its client still counts, and so does the stream that
            # comes back to it.
            streams=2 * max_sessions + LONGEST_QUEUE,
        )
        self._server.add_generic_rpc_handlers((self._handler(), self._health.handler()))
        if inspect is not None:
            self._server.add_generic_rpc_handlers((ops_handler(inspect),))
        self._binding = bind(self._server, address, tls)
        self.address = self._binding.address
        self._lanes: FrameHost | None = None
        if lane_port is not None:
            try:
                self._lanes = FrameHost(
                    self.address,
                    service.registry,
                    access=access,
                    max_sessions=max_sessions,
                    message_limit=message_limit,
                    lane_port=lane_port,
                    answer_bytes=answer_bytes,
                    tls=tls,
                )
            except BaseException:
                self._binding.release()
                raise
        self.offer = None if self._lanes is None else self._lanes.offer

    def start(self) -> None:
        """Begin to answer."""
        self._started = True
        self._server.start()
        if self._lanes is not None:
            self._lanes.start()

    def refuse_new_calls(self) -> None:
        """Take no new calls; sessions end after the request they are at."""
        self._stopping = True
        self._service.registry.stop()
        if self._lanes is not None:
            self._lanes.refuse_new_connections()
        self._health.stop_serving()

    def stop(self) -> None:
        """End all calls and give the address back; what hangs in a call is left behind."""
        self.refuse_new_calls()
        # Ending the sessions first lets the server part from its clients in good order: what is
        # still running then is what hangs.
        self._service.registry.end_all()
        for context in tuple(self._joined):
            context.cancel()
        if self._lanes is not None:
            self._lanes.stop()
        if not self._started:
            # gRPC gives back the port of a server only that has run.
            self._server.start()
        self._server.stop(PARTING_SECONDS)
        self._binding.release()

    def _handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            ENV_SERVICE,
            {
                "Handshake": grpc.unary_unary_rpc_method_handler(self._handshake),
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown),
                "Leave": grpc.unary_unary_rpc_method_handler(self._leave),
                "Join": grpc.stream_stream_rpc_method_handler(self._join),
            },
        )

    def _handshake(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        return self._unary(self._service.handshake, request, context)

    def _shutdown(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        return self._unary(self._service.shutdown, request, context)

    def _leave(self, _: bytes, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        self._service.registry.leave(self._opening(context))
        return b""

    def _join(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self._admit(context)
        opening = self._opening(context)
        sessions = self._service.registry
        # Published clients send nothing before they have seen the response's headers.
        told = f"{sessions.lease_seconds:g}" if opening.resumable else None
        context.send_initial_metadata(() if told is None else ((LEASE_SECONDS, told),))
        carrier = GrpcCarrier(requests, context, limit=self._limit)
        self._joined.add(context)
        try:
            known = sessions.find(opening)
            if known is not None:
                known.attach(carrier)
                yield from carrier.replies()
                return
            session = yield from _in_line(sessions.open(opening), opening, context)
            if session is not None:
                yield from carrier.inline(session, lambda: self._stopping)
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, brief(str(error)))
        except SessionBusy as error:
            context.abort(_BUSY.get(error.code, FAILED_PRECONDITION), error.message)
        except SessionClosed as error:
            context.abort(_ENDED[error.code == SESSION_UNKNOWN], error.message)
        except RLMeshException as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, error.message)
        finally:
            self._joined.discard(context)

    def _opening(self, context: grpc.ServicerContext) -> Opening:
        headers = {
            name: value for name, value in context.invocation_metadata() if isinstance(value, str)
        }
        try:
            return read_opening(headers, context.peer())
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _unary(
        self, answer: Callable[[bytes], bytes], request: bytes, context: grpc.ServicerContext
    ) -> bytes:
        try:
            return answer(request)
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, brief(str(error)))

    def _admit(self, context: grpc.ServicerContext) -> None:
        if self._stopping:
            context.abort(grpc.StatusCode.UNAVAILABLE, SHUTTING_DOWN)


def _in_line(
    line: Generator[int, None, Session], opening: Opening, context: grpc.ServicerContext
) -> Generator[bytes, None, Session | None]:
    # None: the client has gone, and nobody is there to have a session.
    try:
        while True:
            position = next(line)
            if not context.is_active():
                return None
            if opening.queues:
                yield write_notice(position)
    except StopIteration as end:
        session: Session = end.value
        return session
    finally:
        line.close()
