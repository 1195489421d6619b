"""The addresses that this data plane binds and dials itself."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from rlcore import AddressError

LOOPBACK = "127.0.0.1"
# What sockaddr_un holds, without its closing zero.
UNIX_PATH_LIMIT = 107

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_FORMS = "Write tcp://HOST:PORT, HOST:PORT or unix:///PATH."

Transport = Literal["tcp", "unix"]


# How the system takes numbers too: 127.1, 0x7f000001.
_SHORT_IPV4 = re.compile(r"[0-9A-Fa-fxX.]+")


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"tcp://{self.target}"

    @property
    def target(self) -> str:
        """The name that gRPC has for it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_public(self) -> bool:
        """Whether other machines may reach it."""
        if self.host == "localhost":
            return False
        found = _number_of(self.host)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return found is None or not found.is_loopback


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A socket file, by its absolute path."""

    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"

    @property
    def target(self) -> str:
        """The name that gRPC has for it."""
        return f"unix:{quote(self.path)}"

    @property
    def is_public(self) -> bool:
        """Whether other machines may reach it."""
        return False


Address = TcpAddress | UnixAddress


def speaks(text: str) -> bool:
    """Tell whether the text has no scheme, or one that is not for a resolver."""
    match = _SCHEME.fullmatch(text.strip())
    return match is None or match["scheme"].lower() in ("tcp", "unix", "http", "https", "grpc")


def parse_bind(
    address: str | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    path: str | None = None,
    transport: str | None = None,
) -> Address:
    """Return where to serve; without any argument, a free port on the loopback interface.

    Raises:
        AddressError: it is not such an address, or the arguments contradict each other.
        TypeError: the port is not a whole number.
    """
    built = _from_parts(address, host, port, path, transport)
    if built is not None:
        return built
    text = "127.0.0.1:0" if address is None else address.strip()
    if text.isascii() and text.isdigit():
        return TcpAddress(LOOPBACK, _port(text, text))
    parsed = _parse(text, schemes=("tcp", "unix"))
    if isinstance(parsed, TcpAddress) and parsed.host in ("", "localhost"):
        return TcpAddress(LOOPBACK, parsed.port)
    return parsed


def parse_dial(
    address: str | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    path: str | None = None,
    transport: str | None = None,
) -> Address:
    """Return where to dial.

    Raises:
        AddressError: it is not such an address, it names no port or host, or nothing was given.
        TypeError: the port is not a whole number.
    """
    if host is not None and port is None:
        raise AddressError(f"host {host!r} has no port with it", hint="Give port= as well.")
    built = _from_parts(address, host, port, path, transport)
    if built is None and address is None:
        raise AddressError("there is no address to dial", hint=_FORMS)
    parsed = built or _parse((address or "").strip(), schemes=("tcp", "http", "unix"))
    if isinstance(parsed, TcpAddress) and (not parsed.host or parsed.port == 0):
        raise AddressError(f"{address!r} names no {'port' if parsed.host else 'host'}", hint=_FORMS)
    return parsed


def _from_parts(
    address: str | None,
    host: str | None,
    port: int | None,
    path: str | None,
    transport: str | None,
) -> Address | None:
    if transport not in (None, "tcp", "unix"):
        raise AddressError(f"transport {transport!r} is unknown", hint="Use 'tcp' or 'unix'.")
    given_tcp = host is not None or port is not None
    if address is not None and (given_tcp or path is not None or transport is not None):
        raise AddressError(
            f"address {address!r} is given beside host, port, path or transport",
            hint="Give one or the other.",
        )
    if path is not None and given_tcp:
        raise AddressError(
            f"path {path!r} is given beside host or port", hint="Give one or the other."
        )
    if path is not None:
        if transport == "tcp":
            raise AddressError(f"path {path!r} needs the transport 'unix'", hint=_FORMS)
        return _unix(path, path)
    if transport == "unix":
        raise AddressError("the transport 'unix' needs a path", hint="Give path=.")
    if not given_tcp and transport is None:
        return None
    if port is not None and (isinstance(port, bool) or not _is_whole(port)):
        raise TypeError(f"port must be a whole number, not {port!r}")
    return TcpAddress(_bare_host(host or LOOPBACK), _port(str(port or 0), f"port {port!r}"))


def _is_whole(value: object) -> bool:
    return isinstance(value, int)


def _parse(text: str, *, schemes: tuple[str, ...]) -> Address:
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match["scheme"], match["rest"]) if match else ("tcp", text)
    if scheme not in schemes:
        raise AddressError(f"{text!r} has a scheme that is not spoken here", hint=_FORMS)
    if scheme == "unix":
        return _unix(rest, text)
    if scheme == "http":
        rest = rest.removesuffix("/")
    host, colon, port = rest.rpartition(":")
    if not colon or "/" in rest:
        raise AddressError(f"{text!r} is not a host and a port", hint=_FORMS)
    return TcpAddress(_bare_host(host.rpartition("@")[2]), _port(port, text))


def _bare_host(host: str) -> str:
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if "[" in bare or "]" in bare or any(letter.isspace() for letter in bare):
        raise AddressError(f"{host!r} is not a host name", hint=_FORMS)
    if ":" in bare:
        try:
            ipaddress.IPv6Address(bare.partition("%")[0])
        except ValueError as error:
            raise AddressError(f"{host!r} is not an IPv6 address", hint=_FORMS) from error
    return bare


def _port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or int(digits) > 65535:
        raise AddressError(f"{text!r} has no port between 0 and 65535", hint=_FORMS)
    return int(digits)


def _unix(path: str, text: str) -> UnixAddress:
    if not path.strip() or "\0" in path:
        raise AddressError(f"{text!r} names no socket file", hint="Write unix:///PATH.")
    absolute = str(Path(path).absolute())
    if len(absolute.encode()) > UNIX_PATH_LIMIT:
        raise AddressError(
            f"the socket path {absolute!r} is longer than {UNIX_PATH_LIMIT} bytes",
            hint="Use a shorter folder.",
        )
    return UnixAddress(absolute)


def _number_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    if _SHORT_IPV4.fullmatch(host):
        with contextlib.suppress(OSError):
            return ipaddress.IPv4Address(socket.inet_aton(host))
    return None
