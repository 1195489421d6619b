"""Keys that sign reports, and what was found of a report."""

from __future__ import annotations

from rleaas.models.shape import Shape


class ReportKey(Shape):
    """The public key of a platform, with which anybody checks what it signed.

    Attributes:
        algorithm: `Ed25519`.
        key_id: what signatures call the key: the beginning of the SHA-256 of its bytes.
        public_key: the key as PEM.
    """

    algorithm: str
    key_id: str
    public_key: str


class VerifiedReport(Shape):
    """A report whose bytes are those that a key signed.

    Attributes:
        file: where it is.
        sha256: the digest of its bytes.
        size_bytes: how many there are.
        key_id: which key signed it.
    """

    file: str
    sha256: str
    size_bytes: int
    key_id: str
