"""The side of a model's server: bind, let callers in, carry their messages to the service."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Final, Protocol, TypeAlias

import grpc
from rlcore import ProtocolException

from rlmesh.protocol.opening import SHUTTING_DOWN
from rlmesh.transport.access import Access
from rlmesh.transport.addresses import Address
from rlmesh.transport.binding import bind
from rlmesh.transport.calls import grpc_server
from rlmesh.transport.failures import brief
from rlmesh.transport.health import Health
from rlmesh.transport.limits import KEEPALIVE_SECONDS
from rlmesh.transport.methods import MODEL_SERVICE
from rlmesh.transport.ops import Status, ops_handler
from rlmesh.transport.tls import ServerTls

PARTING_SECONDS: Final = 0.5


class ModelStream(Protocol):
    """What one client's messages go to."""

    def receive(self, data: bytes) -> None:
        """Take a request."""
        ...

    def finish(self, *, gone: bool) -> None:
        """Answer what was asked, then end; `gone`: nobody is there to be answered."""
        ...


class ModelHandlers(Protocol):
    """What a host carries messages to."""

    def handshake(self, request: bytes) -> bytes:
        """Answer a handshake."""
        ...

    def shutdown(self, request: bytes) -> bytes:
        """Answer a request to stop serving."""
        ...

    def open(self, peer: str, send: Callable[[bytes | None], None]) -> ModelStream:
        """Return what a new client's requests go to; it sends None when all is said."""
        ...


class Stop:
    """Ends a stream: why, as a gRPC status has it."""

    def __init__(self, code: grpc.StatusCode, reason: str) -> None:
        self.code = code
        self.reason = reason


Outbox: TypeAlias = "SimpleQueue[bytes | Stop | None]"


class ModelHost:
    """A bound server of a model; it answers after `start`."""

    def __init__(
        self,
        address: Address,
        service: ModelHandlers,
        *,
        access: Access,
        max_sessions: int,
        message_limit: int,
        tls: ServerTls | None = None,
        inspect: Callable[[], Status] | None = None,
    ) -> None:
        self._service = service
        self._health = Health(MODEL_SERVICE)
        self._limit = max_sessions
        self._places = threading.Semaphore(max_sessions)
        self._started = False
        self._stopping = False
        self._outboxes: set[Outbox] = set()
        self._server = grpc_server(
            access,
            message_limit=message_limit,
            silent_seconds=KEEPALIVE_SECONDS,
            streams=2 * max_sessions,  # those that are turned away count until they have ended
        )
        self._server.add_generic_rpc_handlers((self._handler(), self._health.handler()))
        if inspect is not None:
            self._server.add_generic_rpc_handlers((ops_handler(inspect),))
        self._binding = bind(self._server, address, tls)
        self.address = self._binding.address

    def start(self) -> None:
        """Begin to answer."""
        self._started = True
        self._server.start()

    def refuse_new_calls(self) -> None:
        """Take no new calls; streams that are open go on."""
        self._stopping = True
        self._health.stop_serving()

    def stop(self) -> None:
        """End all calls and give the address back; what hangs in a call is left behind."""
        self.refuse_new_calls()
        for outbox in tuple(self._outboxes):
            outbox.put(Stop(grpc.StatusCode.UNAVAILABLE, SHUTTING_DOWN))
        if not self._started:
            # gRPC gives back the port of a server only that has run.
            self._server.start()
        self._server.stop(PARTING_SECONDS)
        self._binding.release()

    def _handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            MODEL_SERVICE,
            {
                "Handshake": grpc.unary_unary_rpc_method_handler(self._handshake),
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown),
                "Join": grpc.stream_stream_rpc_method_handler(self._join),
            },
        )

    def _handshake(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        return self._unary(self._service.handshake, request, context)

    def _shutdown(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        return self._unary(self._service.shutdown, request, context)

    def _join(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self._admit(context)
        if not self._places.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"the model has {self._limit} clients already, as many as it may have",
            )
        try:
            # Published clients send nothing before they have seen the response's headers.
            context.send_initial_metadata(())
            yield from self._serve(requests, context)
        finally:
            self._places.release()

    def _serve(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        outbox: Outbox = SimpleQueue()
        stream = self._service.open(context.peer(), outbox.put)
        self._outboxes.add(outbox)
        try:
            # Reading on while answers are made lets a client have several requests under way.
            reader = threading.Thread(
                target=_read, args=(requests, stream, outbox), name="rlmesh-model-call", daemon=True
            )
            reader.start()
            while (item := outbox.get()) is not None:
                if isinstance(item, Stop):
                    context.abort(item.code, item.reason)
                yield item
        finally:
            self._outboxes.discard(outbox)

    def _unary(
        self, answer: Callable[[bytes], bytes], request: bytes, context: grpc.ServicerContext
    ) -> bytes:
        self._admit(context)
        try:
            return answer(request)
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, brief(str(error)))

    def _admit(self, context: grpc.ServicerContext) -> None:
        if self._stopping:
            context.abort(grpc.StatusCode.UNAVAILABLE, SHUTTING_DOWN)


def _read(requests: Iterator[bytes], stream: ModelStream, outbox: Outbox) -> None:
    gone = True
    try:
        for data in requests:
            stream.receive(data)
        gone = False
    except ProtocolException as error:
        outbox.put(Stop(grpc.StatusCode.INVALID_ARGUMENT, brief(str(error))))
    except grpc.RpcError:
        pass  # the connection has gone; there is nobody to tell
    finally:
        stream.finish(gone=gone)
