"""Who may use a server."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Protocol

from rlcore import Secret, TokenRejected
from rlcore.tokens import verify_token

# What a header can carry unchanged: blanks at its ends are taken off on the way.
_SENDABLE = re.compile(r"(?! )[ -~]*(?<! )")


def is_sendable(token: str) -> bool:
    """Tell whether a header can carry a token as it is."""
    return _SENDABLE.fullmatch(token) is not None


class Access(Protocol):
    """Decides whether a caller may come in."""

    def refusal(self, token: str | None) -> str | None:
        """Return why the bearer of this token may not, or None when it may."""
        ...


class Everybody:
    """Lets everybody in."""

    def refusal(self, token: str | None) -> None:
        """Return None."""


class TokenHolders:
    """Lets in who shows the one shared token, or a token signed with the key."""

    def __init__(
        self,
        *,
        token: Secret | None,
        key: Secret | None,
        subject: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        self._key = key
        self._subject = subject
        self._clock = clock

    def refusal(self, token: str | None) -> str | None:
        """Return why the bearer of this token may not come in, or None when it may."""
        if not token:
            return "a token is required and none was sent"
        if self._token is not None and self._token == Secret(token):
            return None
        if self._key is None:
            return "the token is not the one this server was started with"
        try:
            verify_token(self._key, token, subject=self._subject, now=self._clock())
        except TokenRejected as error:
            return error.message
        return None
