"""The server's side: bind, let callers in, carry their messages to the service, drain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import ParamSpec, Protocol, TypeVar

import grpc
from rlcore import ProtocolException, RLMeshException, SessionBusy

from rlmesh.protocol.messages import Answer, Request
from rlmesh.transport.access import Access
from rlmesh.transport.addresses import Address
from rlmesh.transport.binding import bind
from rlmesh.transport.health import Health
from rlmesh.transport.limits import keepalive_options, message_options
from rlmesh.transport.methods import ENV_SERVICE
from rlmesh.transport.server_wire import ServerWire
from rlmesh.transport.tls import ServerTls

P = ParamSpec("P")
R = TypeVar("R")

# Calls beside the sessions: handshakes, health checks, shutdowns.
SPARE_CALLS = 64
PARTING_SECONDS = 0.5


class Session(Protocol):
    """One client's conversation."""

    def answer(self, request: Request, /) -> tuple[Answer, bool]:
        """Return the answer, and whether the session is over after it."""
        ...

    def too_large(self, operation: str, size: int, limit: int, /) -> Answer:
        """End the session; return what is said instead of an answer that is too large."""
        ...

    def note_simplified(self, keys: Sequence[str], /) -> None:
        """Hear which info values could not travel as they are."""
        ...

    def close(self) -> None:
        """Give back what the session holds."""
        ...


class Service(Protocol):
    """What a host carries messages to."""

    def handshake(self, request: bytes) -> bytes:
        """Answer a handshake."""
        ...

    def open_session(self) -> Session:
        """Return a new session."""
        ...

    def shutdown(self, request: bytes) -> bytes:
        """Answer a request to stop serving."""
        ...


class CallThreads(futures.ThreadPoolExecutor):
    """Runs each call on a daemon thread of its own.

    A session keeps its thread for as long as it lives, so that its environment is always called
    from the same one. A thread that hangs inside an environment does not keep the process from
    ending, as a pool's would.
    """

    def __init__(self) -> None:
        super().__init__(max_workers=1)  # never used, and gRPC insists on this class

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> futures.Future[R]:
        """Run the call at once."""
        future: futures.Future[R] = futures.Future()

        def run() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="rlmesh-call", daemon=True).start()
        return future


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
        tls: ServerTls | None = None,
    ) -> None:
        self._service = service
        self._access = access
        self._health = Health()
        self._limit = message_limit
        self._stopping = False
        self._joined: set[grpc.ServicerContext] = set()
        self._server = grpc.server(
            CallThreads(),
            options=[
                *message_options(message_limit),
                *keepalive_options(),
                # With it, two servers could bind one port and clients would land on either.
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=max_sessions + SPARE_CALLS,
        )
        self._server.add_generic_rpc_handlers((self._handler(), self._health.handler()))
        self._binding = bind(self._server, address, tls)
        self.address = self._binding.address

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def refuse_new_calls(self) -> None:
        """Take no new calls; sessions end after the request they are at."""
        self._stopping = True
        self._health.stop_serving()

    def stop(self) -> None:
        """End all calls and give the address back; what hangs in a call is left behind."""
        self.refuse_new_calls()
        # Ending the sessions first lets the server part from its clients in good order: what is
        # still running then is what hangs.
        for context in tuple(self._joined):
            context.cancel()
        self._server.stop(PARTING_SECONDS)
        self._binding.release()

    def _handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            ENV_SERVICE,
            {
                "Handshake": grpc.unary_unary_rpc_method_handler(self._handshake),
                "Shutdown": grpc.unary_unary_rpc_method_handler(self._shutdown),
                "Join": grpc.stream_stream_rpc_method_handler(self._join),
            },
        )

    def _handshake(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        return self._unary(self._service.handshake, request, context)

    def _shutdown(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._admit(context)
        return self._unary(self._service.shutdown, request, context)

    def _join(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        self._admit(context)
        # Published clients send nothing before they have seen the response's headers.
        context.send_initial_metadata(())
        session = self._open(context)
        self._joined.add(context)
        try:
            wire = ServerWire()
            for data in requests:
                request = wire.read(data)
                answer, over = session.answer(request)
                reply, simplified = wire.write(request.request_id, answer)
                if simplified:
                    session.note_simplified(simplified)
                if len(reply) > self._limit:
                    answer, over = session.too_large(request.kind, len(reply), self._limit), True
                    reply, _ = wire.write(request.request_id, answer)
                yield reply
                if over:
                    return
                if self._stopping:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except grpc.RpcError:
            return  # the client has gone; there is nobody to tell
        finally:
            self._joined.discard(context)
            session.close()

    def _open(self, context: grpc.ServicerContext) -> Session:
        try:
            return self._service.open_session()
        except SessionBusy as error:
            code = (
                grpc.StatusCode.RESOURCE_EXHAUSTED
                if error.code == "sessions_exhausted"
                else grpc.StatusCode.FAILED_PRECONDITION
            )
            context.abort(code, error.message)
        except RLMeshException as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, error.message)

    def _unary(
        self, answer: Callable[[bytes], bytes], request: bytes, context: grpc.ServicerContext
    ) -> bytes:
        try:
            return answer(request)
        except ProtocolException as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _admit(self, context: grpc.ServicerContext) -> None:
        if self._stopping:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
        sent = dict(context.invocation_metadata()).get("authorization")
        refusal = self._access.refusal(sent if isinstance(sent, str) else None)
        if refusal is not None:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)
