"""One request to an address that was looked at, bounded in time and size whatever answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from rleaas.server.outbound import Destination

_LARGEST_REPLY: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status with the beginning of the body, or why nothing did."""

    status_code: int | None
    body: str = ""
    error: str | None = None


def ask(
    place: Destination,
    method: str,
    url: str,
    *,
    seconds: float,
    headers: Mapping[str, str],
    content: bytes | None = None,
) -> Answer:
    """Ask a URL, for so many seconds as a whole, from a thread without an event loop.

    Redirects are not followed, and no proxy of the surroundings is used.
    """
    # The timeouts of a blocking client begin anew with each byte; only cancelling bounds the whole.
    return asyncio.run(_Exchange().ask(place, method, url, seconds, headers, content))


class _Exchange:
    """What has been received is kept apart, so that it is there when the time is up."""

    def __init__(self) -> None:
        self._status: int | None = None
        self._received = bytearray()

    async def ask(
        self,
        place: Destination,
        method: str,
        url: str,
        seconds: float,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> Answer:
        failure: str | None = None
        try:
            async with asyncio.timeout(seconds):
                await self._receive(_request(place, method, url, headers, content))
        except TimeoutError:
            failure = f"no answer came within {seconds:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            failure = f"{type(error).__name__}: {error}"
        if self._status is None:
            return Answer(None, error=failure)
        body = bytes(self._received[:_LARGEST_REPLY])
        return Answer(self._status, body.decode("utf-8", "replace"))

    async def _receive(self, request: httpx.Request) -> None:
        async with httpx.AsyncClient(trust_env=False, timeout=None) as http:
            response = await http.send(request, stream=True, follow_redirects=False)
            try:
                self._status = response.status_code
                # Raw: what a few compressed bytes become is not bounded by their number.
                async for chunk in response.aiter_raw():
                    self._received += chunk
                    if len(self._received) >= _LARGEST_REPLY:
                        return
            finally:
                await response.aclose()


def _request(
    place: Destination, method: str, url: str, headers: Mapping[str, str], content: bytes | None
) -> httpx.Request:
    """A request to the address that was looked at, under the name that was asked for."""
    parsed = httpx.URL(url)
    return httpx.Request(
        method,
        # Lest the name mean another address by now.
        parsed.copy_with(host=place.addresses[0]),
        content=content,
        headers={
            "host": parsed.netloc.decode("ascii"),
            "accept-encoding": "identity",
            **headers,
        },
        extensions={"sni_hostname": place.host},
    )
