"""Short-lived signed tokens: whoever holds the key can check one without asking who minted it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import cast

from rlcore.errors import ConfigurationError, TokenRejected
from rlcore.secret import Secret

PREFIX = "rlt1"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says: for which subject it is, and until when, in seconds since the epoch."""

    subject: str
    expires_at: float


def mint_token(key: Secret, *, subject: str, expires_at: float) -> str:
    """Return a token for one subject, signed with HMAC-SHA256; its characters are safe in a URL.

    Raises:
        ConfigurationError: the key or the subject is empty.
    """
    _require_key(key)
    if not subject:
        raise ConfigurationError("a token needs a subject", hint="Name what it gives access to.")
    payload = _encode(json.dumps([subject, float(expires_at)]).encode())
    return f"{PREFIX}.{payload}.{_signature(key, payload)}"


def verify_token(key: Secret, token: str, *, subject: str | None, now: float) -> Claims:
    """Return what a token says, when it is ours, still valid, and for this subject (None: for any).

    Raises:
        TokenRejected: it is malformed, signed with another key, expired, or for another subject.
        ConfigurationError: the key is empty.
    """
    _require_key(key)
    prefix, _, rest = token.partition(".")
    payload, _, signature = rest.partition(".")
    # What is not ASCII may have no bytes at all.
    is_ours = (
        token.isascii()
        and prefix == PREFIX
        and hmac.compare_digest(signature.encode(), _signature(key, payload).encode())
    )
    if not is_ours:
        raise TokenRejected("the token is not signed by this server", hint="Ask for a new one.")
    # The signature vouches for the payload's form: only mint_token writes it.
    name, expires_at = cast("tuple[str, float]", json.loads(_decode(payload)))
    if now >= expires_at:
        raise TokenRejected(
            f"the token for {name!r} expired {now - expires_at:.0f} s ago",
            code="token_expired",
            hint="Ask for a new one.",
        )
    if subject is not None and name != subject:
        raise TokenRejected(
            f"the token is for {name!r}, not for {subject!r}",
            hint="Use the token of this endpoint.",
        )
    return Claims(name, expires_at)


def _require_key(key: Secret) -> None:
    if not key:
        raise ConfigurationError("the token key is empty", hint="Use a random key of 32 bytes.")


def _signature(key: Secret, payload: str) -> str:
    digest = hmac.new(key.reveal().encode(), f"{PREFIX}.{payload}".encode(), hashlib.sha256)
    return _encode(digest.digest())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
