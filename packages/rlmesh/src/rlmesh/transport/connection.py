"""From an address and a credential to calls."""

from __future__ import annotations

import grpc
from rlcore import ANONYMOUS, ConfigurationError, Credential

from rlmesh.transport.access import is_sendable
from rlmesh.transport.addresses import Address, UnixAddress
from rlmesh.transport.failures import failure_of
from rlmesh.transport.grpc_lane import GrpcLane
from rlmesh.transport.limits import MESSAGE_BYTES, keepalive_options, message_options
from rlmesh.transport.methods import JOIN
from rlmesh.transport.tls import ClientTls

RECONNECT_MS = 100


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

    def join(self, *, timeout: float | None) -> GrpcLane:
        """Open a session's stream; whether the server gives one shows in the first reply."""
        return GrpcLane(
            self._channel.stream_stream(JOIN),
            metadata=self._metadata,
            address=self.address,
            timeout=timeout,
            message_limit=self._limit,
        )

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def _sendable(metadata: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    for _, text in metadata:
        if not is_sendable(text):
            raise ConfigurationError(
                "the token has other characters than visible ASCII, or a blank at an end",
                hint="Was it read with its line break? Pass it as it was issued.",
            )
    return metadata
