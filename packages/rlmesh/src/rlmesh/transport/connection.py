"""From an address and a credential to calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import grpc
from rlcore import ANONYMOUS, ConfigurationError, Credential

from rlmesh.protocol.opening import Opening
from rlmesh.transport.access import is_sendable
from rlmesh.transport.addresses import Address, UnixAddress
from rlmesh.transport.failures import failure_of
from rlmesh.transport.grpc_lane import GrpcLane
from rlmesh.transport.grpc_stream import GrpcStream
from rlmesh.transport.limits import MESSAGE_BYTES, keepalive_options, message_options
from rlmesh.transport.methods import JOIN, LEAVE
from rlmesh.transport.tls import ClientTls

RECONNECT_MS = 100
PARTING_SECONDS = 0.5
DEPARTURE_SECONDS = 5.0


class Connection:
    """A connection to one server, used by one client.

    Raises:
        ConfigurationError: the credential cannot be sent.
    """

    def __init__(
        self,
        address: Address,
        *,
        credential: Credential = ANONYMOUS,
        message_limit: int = MESSAGE_BYTES,
        tls: ClientTls | None = None,
    ) -> None:
        self.address = address
        self.tls = tls
        self._credential = credential
        self._departure: grpc.Future[bytes] | None = None
        self._metadata = _sendable(credential.grpc_metadata())
        self._limit = message_limit
        options = [
            *message_options(message_limit),
            *keepalive_options(),
            # Clients of one address must not share a connection that failed for one of them.
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
            ("grpc.enable_http_proxy", 0),
        ]
        if isinstance(address, UnixAddress):
            # The authority that gRPC makes of a path is refused by published servers.
            options.append(("grpc.default_authority", "localhost"))
        if tls is not None and tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
        self._channel = (
            grpc.insecure_channel(address.target, options=options)
            if tls is None
            else grpc.secure_channel(address.target, tls.grpc_credentials(), options=options)
        )

    def call(self, method: str, request: bytes, *, operation: str, timeout: float | None) -> bytes:
        """Make one call and return its reply.

        Raises:
            ServerUnreachable: nothing answers there.
            AccessDenied: the credential was refused.
            CallTimeout: no reply came in time.
            TransportError: anything else.
        """
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        try:
            return ask(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise failure_of(
                error, operation=operation, address=self.address, seconds=timeout, joined=False
            ) from error

    def join(
        self,
        *,
        timeout: float | None,
        opening: Opening | None = None,
        told: Callable[[int], None] | None = None,
    ) -> GrpcLane:
        """Open a session's stream; whether the server gives one shows in the first reply.

        Args:
            timeout: how long each reply may take; None: no limit.
            opening: what to say of the session; None: nothing, as to a published server.
            told: hears the position in the queue, where the session has to be waited for.
        """
        return GrpcLane(
            self._channel.stream_stream(JOIN),
            metadata=self._metadata,
            address=self.address,
            timeout=timeout,
            message_limit=self._limit,
            opening=opening,
            told=told,
        )

    def stream(self, method: str, *, timeout: float | None, again: str) -> GrpcStream:
        """Open a stream of a procedure; whether the server takes it shows in the first reply.

        Args:
            method: the procedure.
            timeout: how long each reply may take; None: no limit.
            again: how a caller whose stream is over starts again, in an error's hint.
        """
        return GrpcStream(
            self._channel.stream_stream(method),
            metadata=self._metadata,
            address=self.address,
            timeout=timeout,
            message_limit=self._limit,
            again=again,
        )

    def headers(self, opening: Opening | None) -> dict[str, str]:
        """Return what is said on a lane of the session and of who wants it."""
        return dict(self._metadata + (() if opening is None else opening.headers()))

    def leave(self, opening: Opening, *, wait: float) -> None:
        """Tell the server that nobody will come back to a session; it never fails.

        Args:
            opening: the session.
            wait: how long to wait until the server has heard it; 0: it is on its way.
        """
        say: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(LEAVE)
        metadata = self._metadata + opening.headers()
        # A server that does not hear it ends the session with its lease.
        with contextlib.suppress(grpc.RpcError, ValueError):
            if wait:
                say(b"", timeout=wait, metadata=metadata)
            else:
                # Kept, because a call that nobody holds is cancelled.
                self._departure = say.future(b"", timeout=DEPARTURE_SECONDS, metadata=metadata)

    def again(self) -> Connection:
        """Return a fresh connection to the same server; this one stays as it is."""
        return Connection(
            self.address, credential=self._credential, message_limit=self._limit, tls=self.tls
        )

    def close(self) -> None:
        """Close the connection, once a goodbye that is on its way has been heard."""
        departure = self._departure
        if departure is not None:
            # It would be lost, and the server keep the session until its lease is over.
            with contextlib.suppress(grpc.RpcError, grpc.FutureTimeoutError):
                departure.result(timeout=PARTING_SECONDS)
        self._channel.close()


def _sendable(metadata: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    for _, text in metadata:
        if not is_sendable(text):
            raise ConfigurationError(
                "the token has other characters than visible ASCII, or a blank at an end",
                hint="Was it read with its line break? Pass it as it was issued.",
            )
    return metadata
