"""Whom a client trusts and what it shows, where its caller, a server or a variable says so."""

from __future__ import annotations

import ipaddress
import os
import warnings

from rlcore import Anonymous, Bearer, ConfigurationError, Credential, Endpoint, Secret
from rlcore.environ import variable

from rlmesh.transport.addresses import Address, TcpAddress, speaks
from rlmesh.transport.tls import ClientTls, client_tls

TOKEN_VARIABLE = "RLMESH_TOKEN"
TLS_VARIABLE = "RLMESH_TLS"
CERT_VARIABLE = "RLMESH_TLS_CERT"
KEY_VARIABLE = "RLMESH_TLS_KEY"

TlsOption = bool | str | os.PathLike[str] | ClientTls | None


def is_direct(target: str | Endpoint) -> bool:
    """Tell whether a caller named the server itself, so that the variables are about it.

    What a resolver or an Endpoint names comes with its own credential.
    """
    return isinstance(target, str) and speaks(target)


def credential_of(given: Credential | None, target: str | Endpoint) -> Credential | None:
    """Return what to show: what was given, or what `RLMESH_TOKEN` holds for a direct address."""
    if given is not None or not is_direct(target):
        return given
    token = variable(TOKEN_VARIABLE)
    return None if token is None else Bearer(Secret(token))


def tls_of(option: object, named: object, target: str | Endpoint) -> ClientTls | None:
    """Return whom to trust, or None for a connection in the clear.

    Args:
        option: the client's `tls` argument.
        named: what the client was given to dial; a server of ours knows its own fingerprint.
        target: the address that this is.

    Raises:
        ConfigurationError: the option or a variable cannot be used.
    """
    if option is not None:
        return client_tls(option)
    if isinstance(target, Endpoint):
        pin = target.tls_fingerprint
        return None if pin is None else ClientTls(fingerprint=pin)
    if not isinstance(named, str | None):
        pin = getattr(named, "tls_fingerprint", None)
        return ClientTls(fingerprint=pin) if isinstance(pin, str) else None
    if not is_direct(target) or target.startswith("unix://"):
        return None
    return _from_variables()


def warn_of_clear_text(credential: Credential, tls: ClientTls | None, address: Address) -> None:
    """Warn that a token is about to travel to another machine for everybody on the way to read."""
    if tls is not None or isinstance(credential, Anonymous) or not isinstance(address, TcpAddress):
        return
    if address.is_public and not _is_unspecified(address.host):
        # Python shows the same warning of the same line once, and the text names the address.
        warnings.warn(
            f"the token for {address} travels in the clear: whoever is on the way can read and use "
            "it. Serve with tls= and pass the client's, or use a tunnel to a loopback address.",
            UserWarning,
            stacklevel=2,
        )


def _from_variables() -> ClientTls | None:
    said, cert = variable(TLS_VARIABLE), variable(CERT_VARIABLE)
    if said is None:
        if cert is not None:
            raise ConfigurationError(
                f"{CERT_VARIABLE} is set without {TLS_VARIABLE}",
                hint=f"Set {TLS_VARIABLE} to a fingerprint, the file of a CA, or system.",
            )
        return None
    trusted = client_tls(said)
    if trusted is None or cert is None:
        return trusted
    return trusted.showing(cert, variable(KEY_VARIABLE) or cert)


def _is_unspecified(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
