"""Between our requests and the HTTP library: its arguments, its answers, its failures."""

from __future__ import annotations

import json
import platform
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib.metadata import version
from typing import TypedDict, cast

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

from rleaas._drivers.hooks import Hooks
from rleaas._flow.messages import EVENT_STREAM
from rleaas._flow.wire import NO_BODY, Reply, Request

log = logger("rleaas", "http")


class Arguments(TypedDict):
    """What the HTTP library's `build_request` takes."""

    method: str
    url: str
    params: list[tuple[str, str | int | float | bool | None]] | None
    content: bytes | None
    headers: dict[str, str]
    timeout: httpx.Timeout


LARGEST_BODY = 256 * 1024 * 1024
"""What is longer than this is saved to a file, or not what was asked for."""

LONGEST_TIMEOUT = 1e9
"""Seconds; more than this is no number that a socket takes."""


@cache
def trusted() -> ssl.SSLContext:
    """Return the certificates that count, read once: that takes longer than many a request."""
    return httpx.create_ssl_context()


def standing_headers(credential: Credential) -> dict[str, str]:
    """Return the headers that go with every request of a client."""
    return {
        "Accept": "application/json",
        "User-Agent": f"rleaas/{version('rleaas')} python/{platform.python_version()}",
        **credential.http_headers(),
    }


def arguments(
    request: Request, base_url: str, timeout: float, *, silence: float | None = None
) -> Arguments:
    """Return a request as the HTTP library takes it.

    `silence` is how long its answer may pause, where that differs from the timeout.

    Raises:
        ConfigurationError: the body cannot be written as JSON.
    """
    headers = dict(request.headers)
    content = request.content
    # Callers of raw requests may say anything.
    seconds = cast("object", timeout if request.timeout is None else request.timeout)
    if not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_TIMEOUT:
        raise ConfigurationError(
            f"{request} cannot have the timeout {seconds!r}",
            hint="Use a number of seconds above 0.",
        )
    if request.json is not NO_BODY:
        content = encode(request)
        headers["Content-Type"] = "application/json"
    return {
        "method": request.method,
        "url": base_url + request.path,
        "params": list(request.params) or None,
        "content": content,
        "headers": headers,
        "timeout": httpx.Timeout(seconds, read=seconds if silence is None else silence),
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


class Body:
    """Collects the body of an answer, which has a greatest size and a time to come in."""

    def __init__(self, request: Request, timeout: float) -> None:
        self._request = request
        self._seconds = timeout if request.timeout is None else request.timeout
        self._end = time.monotonic() + self._seconds
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next piece.

        Raises:
            UnexpectedReply: it is too much.
            PlatformTimeout: it takes too long, piece by piece.
        """
        self._size += len(chunk)
        if self._size > LARGEST_BODY:
            raise UnexpectedReply(
                f"the answer to {self._request} is longer than {LARGEST_BODY} bytes",
                hint="Ask for less of it at a time.",
            )
        if time.monotonic() > self._end:
            raise PlatformTimeout(
                f"the answer to {self._request} was not complete within {self._seconds:g} s",
                hint="Raise the client's timeout if the server is only slow.",
                retryable=True,
                waited_for=str(self._request),
            )
        self._chunks.append(chunk)

    def whole(self) -> bytes:
        """Return all of it."""
        return b"".join(self._chunks)


def is_event_stream(response: httpx.Response) -> bool:
    """Tell whether the answer is a good one that goes on."""
    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip()
    return response.is_success and kind == EVENT_STREAM


def failures(
    request: Request, base_url: str, timeout: float, *, silence: float | None = None
) -> AbstractContextManager[None]:
    """Turn the HTTP library's failures inside the block into ours."""
    seconds = timeout if request.timeout is None else request.timeout
    seconds = seconds if silence is None else silence

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
        UnicodeEncodeError: not_dialable,
    }
    return boundary(f"sending {request} to {base_url}", mapping)


def closed(request: Request) -> ConfigurationError:
    """Return the error of a request through a closed client."""
    return ConfigurationError(
        f"{request} was not sent: the client is closed",
        code="client_closed",
        hint="Make a new client, or use it inside its `with` block.",
    )


def not_open() -> TypeError:
    """Return the error of a flow that hears before it listens."""
    return TypeError("a flow hears, but has opened no answer")


class Stopwatch:
    """Tells hooks and log of a request, and of its answer with its status and duration."""

    def __init__(self, request: Request, hooks: Hooks) -> None:
        self._request = request
        self._hooks = hooks
        if hooks.on_request is not None:
            hooks.on_request(request)
        self._started = time.perf_counter()

    def note(self, reply: Reply) -> Reply:
        """Tell of the answer and return it."""
        seconds = time.perf_counter() - self._started
        log.debug(
            "%s -> %d in %.1f ms (request %s)",
            self._request,
            reply.status,
            seconds * 1e3,
            reply.request_id,
        )
        if self._hooks.on_reply is not None:
            self._hooks.on_reply(self._request, reply, seconds)
        return reply


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
