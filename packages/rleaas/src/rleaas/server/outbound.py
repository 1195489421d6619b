"""Where this server may reach out to: public addresses, and hosts that its operator allows.

Whoever may name a URL that the server then asks could otherwise look around in its network.
"""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

from rlcore import InvalidRequestError

SETTING: Final = "rleaas serve --allow-host"


@dataclass(frozen=True, slots=True)
class Destination:
    """A host and port with the addresses that were looked at; dial these and no others."""

    host: str
    port: int
    addresses: tuple[str, ...]


class Outbound:
    """Looks at destinations before they are dialled.

    Args:
        allowed: hosts, as `name` or `name:port`, that are fine wherever they are.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(host.lower() for host in allowed)

    def permit(self, url: str, schemes: frozenset[str]) -> Destination:
        """Resolve the host of a URL.

        Raises:
            InvalidRequestError: the URL cannot be used, or leads to an address that is not public.
        """
        host, port = _host_and_port(url, schemes)
        return self.permit_host(host, port)

    def permit_host(self, host: str, port: int) -> Destination:
        """Resolve a host.

        Raises:
            InvalidRequestError: it has no address, or one that is not public.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:  # such as a name with a NUL in it
            raise InvalidRequestError(
                f"host {host!r} has no address: {error}", status_code=422, code="host_unknown"
            ) from error
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not self._allowed & {host.lower(), f"{host.lower()}:{port}"}:
            refused = [address for address in addresses if not is_public(address)]
            if refused:
                raise InvalidRequestError(
                    f"host {host!r} is at {refused[0]}, which is not a public address",
                    status_code=422,
                    code="address_not_public",
                    hint=f"The operator of the server can allow it: {SETTING} {host}",
                )
        return Destination(host, port, addresses)


def is_public(address: str) -> bool:
    """Whether the address is one of the internet at large."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        if parsed in _NAT64:  # networks without IPv4 reach the rest of the internet through it
            parsed = IPv4Address(int(parsed) & 0xFFFFFFFF)
        elif parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        elif any(parsed in network for network in _NOT_PUBLIC):
            return False
    return parsed.is_global and not parsed.is_multicast


_NAT64: Final = IPv6Network("64:ff9b::/96")
# They lead to IPv4 addresses, whichever those may be, or into a site.
_NOT_PUBLIC: Final = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # IPv4-compatible
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b:1::/48",  # NAT64 of a network's own
            "2001::/32",  # Teredo
            "2002::/16",  # 6to4
            "fec0::/10",  # site-local
        ),
    )
)
_PORTS: Final = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


def _host_and_port(url: str, schemes: frozenset[str]) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _unusable(url, str(error)) from error
    if parts.scheme not in schemes:
        raise _unusable(url, f"its scheme is not one of {', '.join(sorted(schemes))}")
    if not host:
        raise _unusable(url, "it names no host")
    port = port or _PORTS.get(parts.scheme)
    if port is None:
        raise _unusable(url, "it names no port")
    return host, port


def _unusable(url: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the URL {url[:200]!r} cannot be used: {why}", status_code=422, code="invalid_url"
    )
