"""A question to the worker's server, which has keys that no worker has."""

from __future__ import annotations

import time
from typing import Any, cast

import httpx
from rlcore import Backoff
from rlcore.environ import snapshot

PATIENCE_SECONDS = 60.0
"""How long a server may be away before a question goes without an answer."""


class NotAnswered(Exception):
    """The server gave no answer; for who asked to make an error of.

    Attributes:
        reason: a machine word: `refused` or `unreachable`.
        detail: what happened.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def ask_server(path: str, body: dict[str, Any], *, seconds: float) -> dict[str, Any]:
    """The server's answer to a POST; where it is and the token for it are in the environment.

    It is asked again while it is away, for `PATIENCE_SECONDS`; one answer may take `seconds`.

    Raises:
        NotAnswered: it refused, or stayed away.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    for delay in Backoff(first=0.2, cap=5.0).delays():
        try:
            return _post(path, body, seconds)
        except (httpx.TransportError, httpx.HTTPStatusError, ValueError) as error:
            refused = isinstance(error, httpx.HTTPStatusError) and error.response.status_code < 500
            if refused or time.monotonic() + delay > until:
                detail = f"{type(error).__name__}: {error}"
                raise NotAnswered("refused" if refused else "unreachable", detail) from error
        time.sleep(delay)
    raise AssertionError("the delays never end")


def _post(path: str, body: dict[str, Any], seconds: float) -> dict[str, Any]:
    variables = snapshot()
    response = httpx.post(
        variables["RLEAAS_BASE_URL"].rstrip("/") + path,
        json=body,
        headers={"Authorization": f"Bearer {variables['RLEAAS_API_KEY']}"},
        timeout=seconds,
        trust_env=False,
    )
    response.raise_for_status()
    return cast("dict[str, Any]", response.json())
