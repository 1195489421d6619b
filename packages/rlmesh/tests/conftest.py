"""Certificates of every kind, made on the spot."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Issued:
    """A certificate in a file, and its key in another."""

    cert: Path
    key: Path
    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def fingerprint(self) -> str:
        """As OpenSSL prints it, but for the colons."""
        return "sha256:" + self.certificate.fingerprint(hashes.SHA256()).hex()


@pytest.fixture
def issue(tmp_path: Path) -> Callable[..., Issued]:
    """Make a certificate: self-signed, or by another one; with names; from and to days from now."""

    def make(
        *names: str, by: Issued | None = None, ca: bool = False, days: tuple[int, int] = (-1, 30)
    ) -> Issued:
        private = ec.generate_private_key(ec.SECP256R1())
        number = x509.random_serial_number()
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"test {number}")])
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if by is None else by.certificate.subject)
            .public_key(private.public_key())
            .serial_number(number)
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(private if by is None else by.private, hashes.SHA256())
        cert, key = tmp_path / f"{number}.pem", tmp_path / f"{number}.key"
        cert.write_bytes(certificate.public_bytes(Encoding.PEM))
        key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return Issued(cert, key, certificate, private)

    return make


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
