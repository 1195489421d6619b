"""The server's own secret, and the keys derived from it for each purpose."""

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from rlcore import Secret, ServerFailure


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
    def reports(self) -> Secret:
        """The key that signs exported reports."""
        return self._derive("reports")

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

    def _box(self, purpose: str) -> Fernet:
        key = bytes.fromhex(self._derive(f"seal:{purpose}").reveal())
        return Fernet(base64.urlsafe_b64encode(key))

    def _derive(self, purpose: str) -> Secret:
        key = hmac.new(self._master, purpose.encode(), hashlib.sha256)
        return Secret(key.hexdigest())


def _read_or_make(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(descriptor, "wb") as file:
        key = secrets.token_bytes(32)
        file.write(key)
    return key
