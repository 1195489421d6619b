"""What a server shows to prove itself, and what a client believes."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Self, cast

import grpc
from rlcore import ConfigurationError

from rlmesh.transport.certificates import (
    Decoded,
    KeyPair,
    read_certificates,
    read_fingerprint,
    read_pair,
    self_made,
    system_roots,
)

AUTO = "auto"
SYSTEM = "system"

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class ServerTls:
    """A server's certificate and key, and whose clients it lets in.

    `ServerTls.from_files` and `ServerTls.auto` make one. Nothing of the key is printed.

    Attributes:
        pair: the certificate and the key.
        client_ca: the certificates, as PEM, that have to have signed a client's; None: clients
            need none.

    Raises:
        ConfigurationError: key and certificate do not belong together, or it has expired.
    """

    pair: KeyPair
    _: KW_ONLY
    client_ca: bytes | None = None

    def __post_init__(self) -> None:
        context = self.ssl_context()
        context.verify_mode = ssl.CERT_NONE
        try:
            _introduce(context, client_context(self.pair.certificate))
        except ssl.SSLCertVerificationError as error:
            raise ConfigurationError(
                f"the certificate {self.fingerprint} cannot be served: {error.verify_message}",
                hint="Renew it; is the clock of this machine right?",
            ) from error

    @classmethod
    def from_files(cls, cert: PathLike, key: PathLike, client_ca: PathLike | None = None) -> Self:
        """Return what PEM files hold; `cert` may have the certificates of its issuers after it.

        Raises:
            ConfigurationError: one is not there or cannot be used, or they do not fit together.
        """
        pair = read_pair(cert, key)
        return cls(pair, client_ca=None if client_ca is None else read_certificates(client_ca))

    @classmethod
    def auto(cls, host: str = "localhost", *, client_ca: PathLike | None = None) -> Self:
        """Return a new certificate that vouches for itself; clients pin its fingerprint.

        It lives in memory and a year at most, so each start of a server has another.

        Raises:
            MissingDependencyError: the extra rlmesh[tls] is not installed.
            ConfigurationError: the file of the client CA cannot be used.
        """
        pair = self_made([host])
        return cls(pair, client_ca=None if client_ca is None else read_certificates(client_ca))

    @property
    def fingerprint(self) -> str:
        """What clients pin: `sha256:` and the digest of the certificate."""
        return self.pair.fingerprint

    def ssl_context(self) -> ssl.SSLContext:
        """Return a context for sockets that a server accepts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.pair.load_into(context)
        if self.client_ca is not None:
            _trust(context, self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Return the same for gRPC."""
        key = self.pair.key.reveal().encode()
        return grpc.ssl_server_credentials(
            [(key, self.pair.certificate)], self.client_ca, self.client_ca is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """Which servers a client believes, and what it shows them.

    `ClientTls.from_files` makes one.

    Attributes:
        roots: the certificates, as PEM, that vouch for the server; None while it is only pinned.
        fingerprint: the one certificate that the server must have; None: any that is vouched for.
        server_name: the name that the certificate must be good for; None: the dialled host.
        pair: what is shown to a server that wants a certificate of its clients.

    Raises:
        ConfigurationError: it trusts nobody, or certificate and key do not belong together.
    """

    roots: bytes | None = None
    fingerprint: str | None = None
    server_name: str | None = None
    pair: KeyPair | None = field(default=None)

    def __post_init__(self) -> None:
        if self.roots is None and self.fingerprint is None:
            raise ConfigurationError(
                "nothing says which server to trust", hint="Give a CA file or a fingerprint."
            )
        if self.fingerprint is not None:
            object.__setattr__(self, "fingerprint", read_fingerprint(self.fingerprint))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.roots is not None:
            _trust(context, self.roots)
        if self.pair is not None:
            self.pair.load_into(context)

    @classmethod
    def from_files(
        cls,
        *,
        ca: PathLike | None = None,
        fingerprint: str | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        server_name: str | None = None,
    ) -> Self:
        """Return what PEM files hold; without `ca` and `fingerprint`, this machine's roots count.

        Args:
            ca: the certificates that vouch for the server.
            fingerprint: the one certificate that the server must have, instead.
            cert: what to show to a server that wants a certificate of its clients.
            key: the key of that; by default in the same file.
            server_name: what the server's certificate must be good for, if not the dialled host.

        Raises:
            ConfigurationError: a file is not there or cannot be used, or they do not fit together.
        """
        if ca is not None and fingerprint is not None:
            raise ConfigurationError(
                "a CA and a fingerprint are both given", hint="A fingerprint needs no CA."
            )
        if cert is None and key is not None:
            raise ConfigurationError("a key is given without its certificate", hint="Give cert=.")
        roots = None
        if fingerprint is None:
            roots = system_roots() if ca is None else read_certificates(ca)
        pair = None if cert is None else read_pair(cert, cert if key is None else key)
        return cls(roots=roots, fingerprint=fingerprint, server_name=server_name, pair=pair)

    def showing(self, cert: PathLike, key: PathLike) -> ClientTls:
        """Return the same with the client's certificate from PEM files.

        Raises:
            ConfigurationError: a file cannot be used, or they do not belong together.
        """
        return replace(self, pair=read_pair(cert, key))

    @property
    def is_met(self) -> bool:
        """Whether it can be used to dial: a pinned server has to be asked for its certificate."""
        return self.roots is not None

    def met(self, certificate: bytes, name: str) -> ClientTls:
        """Return what trusts one certificate, which has the pinned fingerprint, and no other."""
        return replace(self, roots=certificate, server_name=name)

    def ssl_context(self) -> ssl.SSLContext:
        """Return a context for sockets that a client connects; give it `hostname(host)`.

        Raises:
            ConfigurationError: the server is only pinned, and was not met yet.
        """
        if self.roots is None:
            raise ConfigurationError(
                "the pinned certificate has not been fetched", hint="Dial the server first."
            )
        return client_context(self.roots, pair=self.pair, check_name=self.fingerprint is None)

    def hostname(self, host: str) -> str:
        """Return the name that the server at a host has to have in its certificate."""
        return self.server_name or host

    def wrap(self, connected: socket.socket, host: str) -> ssl.SSLSocket:
        """Return a connected socket with TLS on it, after the handshake; closed if that fails.

        Raises:
            ssl.SSLError: the server is not believed.
            OSError: the connection was lost.
        """
        return self.ssl_context().wrap_socket(connected, server_hostname=self.hostname(host))

    def grpc_credentials(self) -> grpc.ChannelCredentials:
        """Return the same for gRPC; its target name is `server_name` where that is set.

        Raises:
            ConfigurationError: the server is only pinned, and was not met yet.
        """
        if self.roots is None:
            raise ConfigurationError(
                "the pinned certificate has not been fetched", hint="Dial the server first."
            )
        if self.pair is None:
            return grpc.ssl_channel_credentials(self.roots)
        key = self.pair.key.reveal().encode()
        return grpc.ssl_channel_credentials(self.roots, key, self.pair.certificate)


def server_tls(given: object, *, host: str) -> ServerTls | None:
    """Return what a server's `tls` argument asks for.

    Args:
        given: None or False; `"auto"`; a `ServerTls`; a file with certificate and key; or
            (cert, key) or (cert, key, client CA) files.
        host: the host that is bound, for a certificate that is made.

    Raises:
        ConfigurationError: it is none of these, or a file cannot be used.
        MissingDependencyError: `"auto"`, and rlmesh[tls] is not installed.
    """
    if given is None or given is False:
        return None
    if isinstance(given, ServerTls):
        return given
    if given == AUTO:
        return ServerTls.auto(host)
    if isinstance(given, str | os.PathLike):
        one = cast("PathLike", given)
        return ServerTls.from_files(one, one)
    if isinstance(given, tuple | list) and len(cast("Sequence[object]", given)) in (2, 3):
        return ServerTls.from_files(*cast("Sequence[PathLike]", given))
    raise ConfigurationError(
        f"tls={given!r} is nothing to serve with",
        hint='Give "auto", (cert, key) or (cert, key, client CA) files, or a ServerTls.',
    )


def client_tls(given: object) -> ClientTls | None:
    """Return what a client's `tls` argument asks for.

    Args:
        given: None or False; True or `"system"` for the roots of this machine; a fingerprint
            `"sha256:…"`; the file of a CA; or a `ClientTls`.

    Raises:
        ConfigurationError: it is none of these, or the file cannot be used.
    """
    if given is None or given is False:
        return None
    if isinstance(given, ClientTls):
        return given
    if given is True or given == SYSTEM:
        return ClientTls.from_files()
    if given == "":
        raise ConfigurationError(
            'tls="" says nothing about whom to trust', hint="Give False for no TLS."
        )
    if given == AUTO:
        raise ConfigurationError(
            'tls="auto" is for servers', hint="Give the fingerprint that the server prints."
        )
    if isinstance(given, str) and given.lower().startswith("sha256:"):
        return ClientTls.from_files(fingerprint=given)
    if isinstance(given, str | os.PathLike):
        return ClientTls.from_files(ca=cast("PathLike", given))
    raise ConfigurationError(
        f"tls={given!r} says nothing about whom to trust",
        hint="Give True, a fingerprint sha256:…, the file of a CA, or a ClientTls.",
    )


def client_context(
    roots: bytes | None, *, pair: KeyPair | None = None, check_name: bool = False
) -> ssl.SSLContext:
    """Return a client's context that trusts these roots, or anybody where they are None."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_name
    if roots is None:
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, roots)
        # A pinned certificate counts by itself, whoever signed it; so it does in gRPC.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if pair is not None:
        pair.load_into(context)
    return context


def _trust(context: ssl.SSLContext, roots: bytes) -> None:
    try:
        context.load_verify_locations(cadata=roots.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(f"the certificate of a CA cannot be read: {error}") from error


def _introduce(server: ssl.SSLContext, client: ssl.SSLContext) -> Decoded | None:
    # A handshake in memory: the standard library looks into certificates in no other way.
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    served = server.wrap_bio(to_server, to_client, server_side=True)
    dialled = client.wrap_bio(to_client, to_server)
    sides = [dialled, served]
    while sides:
        for side in tuple(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass
    return dialled.getpeercert()
