"""The server's own secret, and the keys derived from it for each purpose."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from rlcore import Secret


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
