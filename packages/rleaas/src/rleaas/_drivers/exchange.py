"""Between our requests and the HTTP library: its arguments, its answers, its failures."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import TypedDict

import httpx
from rlcore import (
    ConfigurationError,
    Credential,
    Error,
    PlatformTimeout,
    PlatformUnreachable,
    UnexpectedReply,
    boundary,
)
from rlcore.log import logger

from rleaas._flow.wire import NO_BODY, Reply, Request

log = logger("rleaas", "http")


class Arguments(TypedDict):
    """What the HTTP library's `build_request` takes."""

    method: str
    url: str
    params: list[tuple[str, str | int | float | bool | None]] | None
    content: bytes | None
    headers: dict[str, str]
    timeout: float


def standing_headers(credential: Credential) -> dict[str, str]:
    """Return the headers that go with every request of a client."""
    return {
        "Accept": "application/json",
        "User-Agent": f"rleaas/{version('rleaas')} python/{platform.python_version()}",
        **credential.http_headers(),
    }


def arguments(request: Request, base_url: str, timeout: float) -> Arguments:
    """Return a request as the HTTP library takes it.

    Raises:
        ConfigurationError: the body cannot be written as JSON.
    """
    headers = dict(request.headers)
    content = request.content
    if request.json is not NO_BODY:
        content = encode(request)
        headers["Content-Type"] = "application/json"
    return {
        "method": request.method,
        "url": base_url + request.path,
        "params": list(request.params) or None,
        "content": content,
        "headers": headers,
        "timeout": timeout if request.timeout is None else request.timeout,
    }


def encode(request: Request) -> bytes:
    """Return the body as compact JSON.

    Raises:
        ConfigurationError: it holds NaN, an infinity, or something that is not a JSON value.
    """
    try:
        text = json.dumps(
            request.json, allow_nan=False, separators=(",", ":"), ensure_ascii=False
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the body of {request} cannot be written as JSON: {error}",
            hint="Use finite numbers, text, lists and dictionaries with text keys.",
        ) from error
    return text


def reply_of(response: httpx.Response, body: bytes) -> Reply:
    """Return an answer as ours."""
    return Reply(
        response.status_code,
        body,
        {name.lower(): value for name, value in response.headers.items()},
    )


def failures(request: Request, base_url: str, timeout: float) -> AbstractContextManager[None]:
    """Turn the HTTP library's failures inside the block into ours."""
    seconds = timeout if request.timeout is None else request.timeout

    def unreachable(error: BaseException) -> Error:
        return PlatformUnreachable(
            f"no answer from {base_url} to {request}: {_words(error)}",
            hint="Start a server with `rleaas serve`, or correct base_url (RLEAAS_BASE_URL).",
        )

    def too_slow(_: BaseException) -> Error:
        return PlatformTimeout(
            f"no answer from {base_url} to {request} within {seconds:g} s",
            hint="Raise the client's timeout if the server is only slow.",
            retryable=True,
            waited_for=str(request),
        )

    def not_dialable(error: BaseException) -> Error:
        return ConfigurationError(
            f"{base_url + request.path!r} cannot be requested: {_words(error)}",
            hint="Correct base_url (RLEAAS_BASE_URL).",
        )

    def garbled(error: BaseException) -> Error:
        return UnexpectedReply(f"the answer to {request} cannot be decoded: {_words(error)}")

    mapping: Mapping[type[BaseException], Callable[[BaseException], Error]] = {
        httpx.TransportError: unreachable,
        httpx.ConnectTimeout: unreachable,
        httpx.TimeoutException: too_slow,
        httpx.UnsupportedProtocol: not_dialable,
        httpx.InvalidURL: not_dialable,
        httpx.LocalProtocolError: not_dialable,
        httpx.DecodingError: garbled,
    }
    return boundary(f"sending {request} to {base_url}", mapping)


def closed(request: Request) -> ConfigurationError:
    """Return the error of a request through a closed client."""
    return ConfigurationError(
        f"{request} was not sent: the client is closed",
        code="client_closed",
        hint="Make a new client, or use it inside its `with` block.",
    )


class Stopwatch:
    """Logs a request with its status and duration."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._started = time.perf_counter()

    def note(self, reply: Reply) -> Reply:
        """Log the answer and return it."""
        log.debug(
            "%s -> %d in %.1f ms (request %s)",
            self._request,
            reply.status,
            (time.perf_counter() - self._started) * 1e3,
            reply.request_id,
        )
        return reply


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
