"""Who may use a server, and how it proves itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rlcore import ConfigurationError, Secret
from rlcore.environ import variable

from rlmesh.transport.access import Access, Everybody, TokenHolders, is_sendable
from rlmesh.transport.addresses import Address, TcpAddress
from rlmesh.transport.tls import AUTO, ServerTls, server_tls

TOKEN_VARIABLE = "RLMESH_TOKEN"
TLS_VARIABLE = "RLMESH_SERVE_TLS"
KEY_VARIABLE = "RLMESH_SERVE_TLS_KEY"
CLIENT_CA_VARIABLE = "RLMESH_SERVE_TLS_CLIENT_CA"

PathLike = str | os.PathLike[str]
TlsOption = bool | PathLike | Sequence[PathLike] | ServerTls | None


def access_for(token: str | Secret | None, key: str | Secret | None, subject: str | None) -> Access:
    """Return who may come in; without a token, `RLMESH_TOKEN` is one.

    Raises:
        ConfigurationError: a token or key is empty, or a header could not carry the token.
    """
    shared = _secret(variable(TOKEN_VARIABLE) if token is None else token, "token")
    signing = _secret(key, "token_key")
    if shared is None and signing is None:
        return Everybody()
    return TokenHolders(token=shared, key=signing, subject=subject)


def tls_for(option: TlsOption, place: Address) -> ServerTls | None:
    """Return what to serve with; without an option, what `RLMESH_SERVE_TLS` says for TCP.

    Raises:
        ConfigurationError: it cannot be used, or the address is a unix socket.
        MissingDependencyError: a certificate has to be made, and rlmesh[tls] is not installed.
    """
    if isinstance(place, TcpAddress):
        return from_variables(place.host) if option is None else server_tls(option, host=place.host)
    if option is None or option is False:
        return None
    raise ConfigurationError(
        f"{place} is a unix socket, which takes no TLS",
        hint="Leave tls out: it is for its owner only.",
    )


def require_protection(place: Address, access: Access, tls: ServerTls | None) -> None:
    """Refuse to let everybody in.

    Raises:
        ConfigurationError: other machines can reach the address, and need no token and no TLS.
    """
    if place.is_public and isinstance(access, Everybody) and tls is None:
        raise ConfigurationError(
            f"{place} can be reached from other machines and has neither a token nor TLS",
            hint="Give one (token=, RLMESH_TOKEN, tls=), or allow_insecure=True "
            "(--allow-insecure).",
        )


def from_variables(host: str) -> ServerTls | None:
    """Return what the variables ask for: `RLMESH_SERVE_TLS` is `auto` or the certificate's file.

    Raises:
        ConfigurationError: a file cannot be used, or the key is named without the certificate.
        MissingDependencyError: a certificate has to be made, and rlmesh[tls] is not installed.
    """
    said, key, client_ca = map(variable, (TLS_VARIABLE, KEY_VARIABLE, CLIENT_CA_VARIABLE))
    return tls_from_texts(said, key, client_ca, host=host, names=(TLS_VARIABLE, KEY_VARIABLE))


def tls_from_texts(
    said: str | None,
    key: str | None,
    client_ca: str | None,
    *,
    host: str,
    names: tuple[str, str],
) -> ServerTls | None:
    """Return what a command line or the variables ask for.

    Args:
        said: `auto`, or the certificate's file.
        key: the key's file; by default the certificate's.
        client_ca: the file of the CA that has to have signed the certificates of clients.
        host: the host that is bound.
        names: what the first two are called where they come from.

    Raises:
        ConfigurationError: a file cannot be used, or does not fit the others.
        MissingDependencyError: a certificate has to be made, and rlmesh[tls] is not installed.
    """
    require_tls_texts(said, key, client_ca, names=names)
    if said is None:
        return None
    if said == AUTO:
        return ServerTls.auto(host, client_ca=client_ca)
    return ServerTls.from_files(said, said if key is None else key, client_ca)


def require_tls_texts(
    said: str | None, key: str | None, client_ca: str | None, *, names: tuple[str, str]
) -> None:
    """Do nothing when the texts fit each other; no file is looked at.

    Args:
        said: `auto`, or the certificate's file.
        key: the key's file.
        client_ca: the client CA's file.
        names: what the first two are called where they come from.

    Raises:
        ConfigurationError: they do not.
    """
    if said is None and (key is not None or client_ca is not None):
        raise ConfigurationError(
            f"a key or client CA is given without {names[0]}",
            hint=f"Set {names[0]} to auto or to the certificate's file.",
        )
    if said == AUTO and key is not None:
        raise ConfigurationError(
            f"{names[1]} is given beside {names[0]}=auto, which makes its own key",
            hint="Leave one of them out.",
        )


def _secret(given: str | Secret | None, name: str) -> Secret | None:
    if given is None:
        return None
    secret = given if isinstance(given, Secret) else Secret(given)
    if not secret:
        raise ConfigurationError(f"{name} is empty", hint="Leave it out, or give a secret.")
    if name == "token" and not is_sendable(secret.reveal()):
        raise ConfigurationError(
            "the token has other characters than visible ASCII, or a blank at an end",
            hint="No client could send it; was it read with its line break?",
        )
    return secret
