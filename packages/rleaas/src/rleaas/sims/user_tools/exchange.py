"""One HTTP request, bounded in time and size whatever answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import httpx

LARGEST_REPLY: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked.

    Attributes:
        method: such as POST.
        url: of a tool, with its query.
        headers: beside those of HTTP itself.
        content: the body.
        addresses: where the host is to be, instead of asking what its name means.
        seconds: for how long, as a whole.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    addresses: Sequence[str] = ()
    seconds: float


@dataclass(slots=True)
class Reply:
    """What came back: a status with the body, or why nothing did.

    Attributes:
        status: of HTTP; None when there was no answer.
        body: all of it, or its beginning when it is larger than a reply may be.
        complete: whether that is all of it.
        error: what failed.
        timed_out: whether that was the time.
    """

    status: int | None = None
    body: bytes = b""
    complete: bool = False
    error: str | None = None
    timed_out: bool = False


def ask(request: Request) -> Reply:
    """Ask, from any thread, also one with an event loop.

    Redirects are not followed, and no proxy of the surroundings is used.
    """
    reply = Reply()
    # The timeouts of a blocking client begin anew with each byte; only cancelling bounds the whole,
    # and a loop of one's own can be in a thread of its own only.
    thread = threading.Thread(
        target=lambda: asyncio.run(_within_time(request, reply)), name="rleaas-tool"
    )
    thread.start()
    thread.join()
    return reply


async def _within_time(request: Request, reply: Reply) -> None:
    try:
        async with asyncio.timeout(request.seconds):
            await _receive(request, reply)
    except TimeoutError:
        reply.timed_out = True
        reply.error = f"no whole answer came within {request.seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        reply.error = f"{type(error).__name__}: {error}"


async def _receive(request: Request, reply: Reply) -> None:
    received = bytearray()
    async with httpx.AsyncClient(trust_env=False, timeout=None) as http:
        response = await http.send(_sent(request), stream=True, follow_redirects=False)
        try:
            reply.status = response.status_code
            # Raw: what a few compressed bytes become is not bounded by their number.
            async for chunk in response.aiter_raw():
                received += chunk
                reply.body = bytes(received[:LARGEST_REPLY])
                if len(received) > LARGEST_REPLY:
                    return
            reply.complete = True
        finally:
            await response.aclose()


def _sent(request: Request) -> httpx.Request:
    url = httpx.URL(request.url)
    # To the address that was looked at, lest the name mean another one by now.
    where = url.copy_with(host=request.addresses[0]) if request.addresses else url
    return httpx.Request(
        request.method,
        where,
        content=request.content,
        headers={
            "host": url.netloc.decode("ascii"),
            "accept": "application/json",
            "accept-encoding": "identity",
            **request.headers,
        },
        extensions={"sni_hostname": url.host},
    )
