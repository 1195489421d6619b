"""The server's own secret, and the keys derived from it for each purpose."""

import base64
import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rlcore import ConfigurationError, Secret, ServerFailure

from rleaas.resources.report_signature import key_id_of, signature_text

LENGTH: Final = 32


class ServerKeys:
    """One master secret in the data directory; what it signs survives a restart.

    Every environment process gets a key of its own, so a token for one opens no other.
    """

    def __init__(self, path: Path) -> None:
        self._master = _read_or_make(path)

    def environment(self, version_id: int) -> Secret:
        """The key that signs tokens for one environment version."""
        return self._derive(f"environment:{version_id}")

    @property
    def workers(self) -> Secret:
        """The key that signs the tokens of workers."""
        return self._derive("workers")

    @property
    def report_public_key(self) -> tuple[str, str]:
        """The id of the key that signs reports, and its public half as PEM."""
        public = self._report_key().public_key()
        pem = public.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return key_id_of(public.public_bytes_raw()), pem.decode()

    def sign_report(self, content: bytes) -> str:
        """Sign exactly these bytes."""
        return signature_text(self.report_public_key[0], self._report_key().sign(content))

    @property
    def audit(self) -> Secret:
        """The key that seals the audit chains."""
        return self._derive("audit")

    @property
    def mark(self) -> Secret:
        """What tells this server's secret from another's, and is good for nothing else."""
        return self._derive("mark")

    def seal(self, purpose: str, secret: Secret) -> str:
        """Encrypt what is kept for others, such as the token of a repository."""
        return self._box(purpose).encrypt(secret.reveal().encode()).decode()

    def unseal(self, purpose: str, sealed: str) -> Secret:
        """Read what `seal` wrote for the same purpose.

        Raises:
            ServerFailure: it was sealed with another server's secret, or changed since.
        """
        try:
            return Secret(self._box(purpose).decrypt(sealed.encode()).decode())
        except InvalidToken as error:
            raise ServerFailure(
                f"what is kept for {purpose} cannot be decrypted with this server's secret",
                code="secret_unreadable",
                retryable=False,
                hint="Put the server's own server.key back, or save the secret again",
            ) from error

    def _report_key(self) -> Ed25519PrivateKey:
        # Made once with the secret in server.key, which only its owner may read.
        return Ed25519PrivateKey.from_private_bytes(
            bytes.fromhex(self._derive("reports:ed25519").reveal())
        )

    def _box(self, purpose: str) -> Fernet:
        key = bytes.fromhex(self._derive(f"seal:{purpose}").reveal())
        return Fernet(base64.urlsafe_b64encode(key))

    def _derive(self, purpose: str) -> Secret:
        key = hmac.new(self._master, purpose.encode(), hashlib.sha256)
        return Secret(key.hexdigest())


def _read_or_make(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        _make(path)
    secret = path.read_bytes()
    if len(secret) != LENGTH:  # with an empty one, anybody could sign
        raise ConfigurationError(
            f"{str(path)!r} is damaged: it has {len(secret)} bytes, and a server's secret has "
            f"{LENGTH}",
            code="secret_damaged",
            hint="Put the server's own server.key back, such as from a backup. Deleting the file "
            "makes a new secret, with which tokens and secrets that were saved cannot be read",
        )
    return secret


def _make(path: Path) -> None:
    """Put a new secret there, whole from the first moment, unless another process is first."""
    beside = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(beside)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
