"""A look at a server's TLS before it is dialled, or after that failed: gRPC keeps its reasons."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from rlcore import CallTimeout, ConfigurationError, Deadline, ServerUnreachable, TlsError

from rlmesh.transport.addresses import Address, TcpAddress
from rlmesh.transport.certificates import (
    Decoded,
    fingerprint_of,
    name_of,
    same_fingerprint,
)
from rlmesh.transport.tls import ClientTls, client_context

# Finding out why a dial failed must not take much longer than the dial.
PATIENCE_SECONDS = 3.0
EXPIRED, NOT_YET_VALID = 10, 9
WRONG_NAMES = (62, 63, 64)  # host, mail, IP address


@dataclass(frozen=True, slots=True)
class Sight:
    """What a handshake showed: the certificate, and what the server said first, if anything."""

    der: bytes
    decoded: Decoded
    first: bytes | None


def prepared(tls: ClientTls | None, address: Address, timeout: float | None) -> ClientTls | None:
    """Return what gRPC can dial with; a pinned server is asked for its certificate first.

    gRPC cannot check a fingerprint. So the certificate is fetched, compared, and then is the only
    one that is trusted: a server with another one in between is not believed.

    Raises:
        ConfigurationError: it is a unix socket, which takes no TLS.
        ServerUnreachable: nothing answers there.
        CallTimeout: something accepts the connection, and does not answer.
        TlsError: the certificate is another one, has expired, or there is no TLS.
    """
    if tls is None:
        return None
    if not isinstance(address, TcpAddress):
        raise ConfigurationError(
            f"{address} is a unix socket, which takes no TLS",
            hint="Leave tls out: it is on this machine, and for its owner only.",
        )
    if tls.is_met:
        return tls
    return _meet(tls, address, timeout)


def explanation(tls: ClientTls | None, address: Address, timeout: float | None) -> TlsError | None:
    """Return why a dial failed, where TLS was the reason."""
    if not isinstance(address, TcpAddress) or (tls is not None and not tls.is_met):
        return None
    seconds = PATIENCE_SECONDS if timeout is None else min(timeout, PATIENCE_SECONDS)
    context = client_context(None) if tls is None else tls.ssl_context()
    host = address.host if tls is None else tls.hostname(address.host)
    try:
        sight = _look(address, context, host, seconds)
    except ssl.SSLError as error:
        if tls is not None:
            return _mistrust(error, address)
        return _wants_tls(address) if "ALERT" in (error.reason or "") else None
    except OSError:
        return None  # not about TLS: the failure of the dial says it all
    if tls is None:
        return _wants_tls(address)
    return _not_let_in(address, tls, sight)


def _meet(tls: ClientTls, address: TcpAddress, timeout: float | None) -> ClientTls:
    expected = tls.fingerprint or ""
    deadline = Deadline.after(timeout)
    with _attributed(address, timeout):
        der = _look(address, client_context(None, pair=tls.pair), None, timeout).der
    actual = fingerprint_of(der)
    if not same_fingerprint(expected, actual):
        raise TlsError(
            f"the certificate of {address} is not the pinned one: it has {actual}, expected was "
            f"{expected}",
            address=str(address),
            code="certificate_changed",
            expected=expected,
            actual=actual,
            hint="Was the server restarted with a new one? Ask it for its fingerprint; if it has "
            "not changed, somebody is in between.",
        )
    certificate = ssl.DER_cert_to_PEM_cert(der).encode()
    trusting = client_context(certificate, pair=tls.pair)
    with _attributed(address, timeout):
        name = name_of(_look(address, trusting, None, _some(deadline.remaining())).decoded)
    if name is None:
        raise TlsError(
            f"the certificate of {address} is good for no name",
            address=str(address),
            code="certificate_name",
            hint="Give it a subject alternative name.",
        )
    return tls.met(certificate, name)


@contextmanager
def _attributed(address: TcpAddress, timeout: float | None) -> Generator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise _mistrust(error, address) from error
    except TimeoutError as error:
        raise CallTimeout(
            f"{address} did not answer a TLS handshake {_within(timeout)}",
            operation="handshake",
            seconds=timeout,
            layer="connect",
            hint="Something accepts connections there, but it may not be an rlmesh server.",
        ) from error
    except OSError as error:
        raise ServerUnreachable(
            f"nothing answers at {address}: {error.strerror or error}",
            address=str(address),
            hint="Start the server, check the address, or pass wait_for_server_seconds=.",
        ) from error


def _look(
    address: TcpAddress, context: ssl.SSLContext, host: str | None, seconds: float | None
) -> Sight:
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((address.host, address.port), seconds) as plain,
        context.wrap_socket(plain, server_hostname=host) as wrapped,
    ):
        der, decoded = wrapped.getpeercert(binary_form=True), wrapped.getpeercert()
        try:
            # A server that wants a certificate hangs up after the handshake; others greet.
            first = wrapped.recv(1)
        except TimeoutError:
            first = None
        except OSError:
            first = b""
        return Sight(der or b"", decoded or {}, first)


def _mistrust(error: ssl.SSLError, address: TcpAddress) -> TlsError:
    text = str(address)
    if isinstance(error, ssl.SSLCertVerificationError):
        code, hint = _verdict(error.verify_code)
        return TlsError(
            f"the certificate of {address} is not trusted: {error.verify_message.rstrip('.')}",
            address=text,
            code=code,
            hint=hint,
        )
    reason = error.reason or "it hung up"
    if "ALERT" in reason:
        return TlsError(
            f"{address} refused the TLS handshake: {_words(reason)}",
            address=text,
            code="tls_refused",
            hint="Does it want a certificate of its clients, or a newer TLS?",
        )
    return TlsError(
        f"{address} does not speak TLS: {_words(reason)}",
        address=text,
        code="tls_not_spoken",
        hint="Leave tls out to talk to it in the clear, or serve it with tls=.",
    )


def _verdict(verify_code: int) -> tuple[str, str]:
    if verify_code in (EXPIRED, NOT_YET_VALID):
        return "certificate_expired", "Renew it; are the clocks of both machines right?"
    if verify_code in WRONG_NAMES:
        return "certificate_name", "Dial the name it was made for, or set server_name=."
    return "certificate_untrusted", "Pass the file of the CA that signed it, or pin it: tls=."


def _wants_tls(address: TcpAddress) -> TlsError:
    return TlsError(
        f"{address} speaks TLS, and was dialled without",
        address=str(address),
        code="tls_required",
        hint="Pass tls=: the fingerprint that the server prints, the file of a CA, or True.",
    )


def _not_let_in(address: TcpAddress, tls: ClientTls, sight: Sight) -> TlsError | None:
    if sight.first != b"":
        return None
    shown = "none was shown" if tls.pair is None else f"{tls.pair.fingerprint} was shown"
    return TlsError(
        f"{address} hung up after the TLS handshake, as servers do that let in only whose "
        f"certificate they trust; {shown}",
        address=str(address),
        code="client_certificate",
        hint="Pass tls=ClientTls.from_files(..., cert=, key=) with one that its CA signed.",
    )


def _within(seconds: float | None) -> str:
    return "in time" if seconds is None else f"within {seconds:g} s"


def _some(seconds: float | None) -> float | None:
    # A socket takes a timeout of 0 for none at all.
    return None if seconds is None else max(seconds, 0.001)


def _words(reason: str) -> str:
    return reason.replace("_", " ").lower()
