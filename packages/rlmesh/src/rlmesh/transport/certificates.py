"""Certificates and their keys: read from files, made for one server, known by a fingerprint."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import ipaddress
import os
import re
import ssl
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from rlcore import ConfigurationError, MissingDependencyError, Secret

MADE_FOR_DAYS = 365
# Clocks differ: a certificate that is a second old must be good on the other machine as well.
MADE_BEFORE = datetime.timedelta(days=1)
OWN_NAME = "rlmesh"
READABLE_BY_OWNER = 0o600

_FINGERPRINT = re.compile(r"sha256:(?:[0-9a-f]{64}|(?:[0-9a-f]{2}:){31}[0-9a-f]{2})")
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.+?-----END \1PRIVATE KEY-----", re.DOTALL)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

Decoded = Mapping[str, Any]  # Any: the nested tuples of ssl.getpeercert


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate, with what signed it after it, and its private key, as PEM."""

    certificate: bytes
    key: Secret = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """What the certificate is told apart by."""
        return fingerprint_of(leaf_of(self.certificate))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Give a context the pair.

        Raises:
            ConfigurationError: the key is not that of the certificate, or one of them is broken.
        """
        # ssl reads files only. The folder is its owner's alone, and gone a moment later.
        with tempfile.TemporaryDirectory(prefix="rlmesh-") as folder:
            path = Path(folder, "pair.pem")
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, READABLE_BY_OWNER)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.certificate + b"\n" + self.key.reveal().encode() + b"\n")
            try:
                context.load_cert_chain(path, password="")
            except ssl.SSLError as error:
                raise _unusable_pair(error) from error


def read_pair(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> KeyPair:
    """Return the certificate and the key in two files, or in one that holds both.

    Raises:
        ConfigurationError: a file is not there, holds no such thing, or the key is encrypted.
    """
    content = _read(key, "the private key")
    found = _KEY.search(content)
    if found is None:
        raise ConfigurationError(
            f"there is no private key in {os.fspath(key)!r}",
            hint="Give a PEM file; a key may be in the certificate's file as well.",
        )
    if b"ENCRYPTED" in found[0]:
        raise ConfigurationError(
            f"the private key in {os.fspath(key)!r} is encrypted",
            hint="Decrypt it (openssl pkey) into a file that only its owner may read.",
        )
    return KeyPair(read_certificates(certificate), Secret(found[0].decode("ascii", "replace")))


def read_certificates(path: str | os.PathLike[str]) -> bytes:
    """Return the certificates in a PEM file.

    Raises:
        ConfigurationError: it is not there, or holds none.
    """
    found = _CERTIFICATE.findall(_read(path, "the certificate").decode("ascii", "replace"))
    if not found:
        raise ConfigurationError(
            f"there is no certificate in {os.fspath(path)!r}", hint="Give a PEM file."
        )
    return ("\n".join(found) + "\n").encode()


def system_roots() -> bytes:
    """Return the certificates that this machine trusts.

    Raises:
        ConfigurationError: it has none.
    """
    stored = ssl.create_default_context().get_ca_certs(binary_form=True)
    if stored:
        return "".join(map(ssl.DER_cert_to_PEM_cert, stored)).encode()
    # OpenSSL reads a folder of certificates only when it looks for one of them.
    folder = ssl.get_default_verify_paths().capath
    texts = {
        text
        for path in (sorted(Path(folder).iterdir()) if folder else ())
        if path.is_file()
        for text in _CERTIFICATE.findall(path.read_text("ascii", "replace"))
    }
    if not texts:
        raise ConfigurationError(
            "this machine has no list of trusted certificates",
            hint="Install ca-certificates, or pass the file of a CA or a fingerprint as tls=.",
        )
    return ("\n".join(sorted(texts)) + "\n").encode()


def self_made(hosts: Iterable[str], *, days: int = MADE_FOR_DAYS) -> KeyPair:
    """Return a new certificate that vouches for itself, and its key.

    Raises:
        MissingDependencyError: `cryptography` is not installed.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
    except ImportError as error:
        raise MissingDependencyError(
            'tls="auto" needs the package cryptography', hint="pip install 'rlmesh[tls]'"
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, OWN_NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys([OWN_NAME, "localhost", "127.0.0.1", "::1", *hosts]):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - MADE_BEFORE)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(certificate.public_bytes(Encoding.PEM), Secret(private.decode()))


def read_fingerprint(text: str) -> str:
    """Return a fingerprint in its normal form, `sha256:` and 64 small hexadecimal digits.

    Raises:
        ConfigurationError: it is none.
    """
    lowered = text.strip().lower()
    if not _FINGERPRINT.fullmatch(lowered):
        raise ConfigurationError(
            f"{text!r} is not the fingerprint of a certificate",
            hint="Write sha256: and 64 hexadecimal digits, as the server prints it.",
        )
    return "sha256:" + lowered.removeprefix("sha256:").replace(":", "")


def fingerprint_of(certificate: bytes) -> str:
    """Return the fingerprint of a certificate in DER form."""
    return f"sha256:{hashlib.sha256(certificate).hexdigest()}"


def same_fingerprint(one: str, other: str) -> bool:
    """Tell whether two fingerprints are equal, in a time that does not say where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def leaf_of(certificates: bytes) -> bytes:
    """Return the first of some PEM certificates in DER form.

    Raises:
        ConfigurationError: it is none.
    """
    found = _CERTIFICATE.search(certificates.decode("ascii", "replace"))
    try:
        return ssl.PEM_cert_to_DER_cert(found[0] if found else "")
    except ValueError as error:
        raise ConfigurationError(f"the certificate cannot be read: {error}") from error


def name_of(certificate: Decoded) -> str | None:
    """Return a name that the certificate is good for, or None when it is good for none."""
    names = cast("Sequence[tuple[str, str]]", certificate.get("subjectAltName", ()))
    for kind, name in names:
        if kind in ("DNS", "IP Address"):
            return name.replace("*", "pinned", 1)
    subject = cast("Sequence[Sequence[tuple[str, str]]]", certificate.get("subject", ()))
    common = [name for part in subject for kind, name in part if kind == "commonName"]
    return common[-1] if common else None


def _read(path: str | os.PathLike[str], what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{what} cannot be read from {os.fspath(path)!r}: {error.strerror or error}"
        ) from error


def _unusable_pair(error: ssl.SSLError) -> ConfigurationError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return ConfigurationError(
            "the private key is not the key of the certificate",
            hint="Was one of them renewed without the other?",
        )
    return ConfigurationError(
        f"the certificate and its key cannot be used: {error.reason or 'they cannot be read'}",
        hint="Both have to be PEM, the server's own certificate first.",
    )
