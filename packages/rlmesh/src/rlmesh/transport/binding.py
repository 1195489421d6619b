"""Take an address, or say what stands in the way."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import grpc
from rlcore import BindError, ConfigurationError

from rlmesh.transport.addresses import Address, TcpAddress, UnixAddress
from rlmesh.transport.socket_file import SocketFile, SocketFileError, make_socket_file
from rlmesh.transport.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Binding:
    """An address that was taken."""

    address: Address
    file: SocketFile | None = None

    def release(self) -> None:
        """Remove the socket file, if there is one and it is still this server's."""
        if self.file is not None:
            self.file.remove()


def bind(server: grpc.Server, address: Address, tls: ServerTls | None = None) -> Binding:
    """Bind a server; the address then has the port that a port 0 became.

    A socket file that nothing listens on any more is replaced; the new one is for its owner only.

    Raises:
        BindError: the address is taken, not ours, or not allowed.
        ConfigurationError: it is a unix socket, which takes no TLS.
    """
    if isinstance(address, TcpAddress):
        return Binding(TcpAddress(address.host, _bind_tcp(server, address, tls)))
    if tls is not None:
        raise ConfigurationError(
            f"{address} is a unix socket, which takes no TLS",
            hint="Leave tls out: it is for its owner only.",
        )
    try:
        return Binding(address, make_socket_file(address.path, lambda path: _listen(server, path)))
    except SocketFileError as error:
        raise _refused(address, str(error)) from error


def _bind_tcp(server: grpc.Server, address: TcpAddress, tls: ServerTls | None) -> int:
    try:
        port = (
            server.add_insecure_port(address.target)
            if tls is None
            else server.add_secure_port(address.target, tls.grpc_credentials())
        )
    except RuntimeError as error:
        raise _refused(address, _reason(address)) from error
    if port == 0:
        raise _refused(address, _reason(address))
    return port


def _listen(server: grpc.Server, path: str) -> None:
    try:
        port = server.add_insecure_port(UnixAddress(path).target)
    except RuntimeError as error:
        raise SocketFileError("gRPC could not bind it") from error
    if port == 0:
        raise SocketFileError("gRPC could not bind it")


def _reason(address: TcpAddress) -> str:
    # gRPC keeps the reason to its log; asking the system again gives it.
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
    except OSError as error:
        return error.strerror or str(error)
    return "gRPC could not bind it"


def _refused(address: Address, reason: str) -> BindError:
    return BindError(
        f"cannot serve at {address}: {reason}",
        address=str(address),
        hint="Stop what uses it, or choose another address; port 0 takes a free port.",
    )
