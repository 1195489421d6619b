"""Take an address, or say what stands in the way."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import grpc
from rlcore import BindError

from rlmesh.transport.addresses import Address, TcpAddress, UnixAddress

PROBE_SECONDS = 1.0
OWNER_ONLY = 0o177


def bind(server: grpc.Server, address: Address) -> Address:
    """Bind a server and return its address, with the port that a port 0 became.

    A socket file that nothing listens on any more is replaced; the new one is for its owner only.

    Raises:
        BindError: the address is taken, not ours, or not allowed.
    """
    if isinstance(address, UnixAddress):
        _clear(address)
        with _owner_only():
            _bind(server, address)
        return address
    return TcpAddress(address.host, _bind(server, address))


def release(address: Address) -> None:
    """Remove the socket file of a server that has stopped."""
    if isinstance(address, UnixAddress):
        Path(address.path).unlink(missing_ok=True)


def _bind(server: grpc.Server, address: Address) -> int:
    try:
        port = server.add_insecure_port(address.target)
    except RuntimeError as error:
        raise _refused(address, _reason(address)) from error
    if port == 0:
        raise _refused(address, _reason(address))
    return port


def _reason(address: Address) -> str:
    # gRPC keeps the reason to its log; asking the system again gives it.
    try:
        if isinstance(address, UnixAddress):
            return _unix_reason(address)
        family, kind, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(target)
    except OSError as error:
        return error.strerror or str(error)
    return "gRPC could not bind it"


def _unix_reason(address: UnixAddress) -> str:
    folder = Path(address.path).parent
    if not folder.is_dir():
        return f"the folder {str(folder)!r} does not exist"
    if not os.access(folder, os.W_OK):
        return f"the folder {str(folder)!r} is not writable"
    return "gRPC could not bind it"


def _clear(address: UnixAddress) -> None:
    path = Path(address.path)
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise _refused(address, "there is a file or folder at that path, and it is not a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_SECONDS)
        try:
            probe.connect(address.path)
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise _refused(address, error.strerror or str(error)) from error
    raise _refused(address, "another server is listening there")


def _refused(address: Address, reason: str) -> BindError:
    return BindError(
        f"cannot serve at {address}: {reason}",
        address=str(address),
        hint="Stop what uses it, or choose another address; port 0 takes a free port.",
    )


@contextmanager
def _owner_only() -> Generator[None]:
    # While the file is made: changing its mode afterwards would leave a moment open to anybody.
    before = os.umask(OWNER_ONLY)
    try:
        yield
    finally:
        os.umask(before)
