"""How the official clients reach an endpoint that somebody else named: there, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

# What a client's HTTP library calls requests, responses and streams: it is httpx or its successor.
Value = Any
LARGEST_REPLY: Final = 8 * 1024 * 1024


class LeftItsPlace(Exception):
    """A request would have gone elsewhere, or an answer is none that may be read."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A host and port at the addresses that were looked at.

    Redirects are not followed, no proxy of the surroundings is used, and what is compressed or
    larger than `LARGEST_REPLY` is not read.
    """

    host: str
    port: int
    addresses: tuple[str, ...]

    def client_options(self) -> dict[str, Value]:
        """What makes the HTTP client of an official client go there only."""
        hooks = {"request": [self._redirect], "response": [_bound]}
        return {"event_hooks": hooks, "follow_redirects": False, "trust_env": False}

    def _redirect(self, request: Value) -> None:
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        if (url.host.lower(), port) != (self.host.lower(), self.port):
            raise LeftItsPlace(f"{url.host}:{port} was not looked at")
        # What a few compressed bytes become is not bounded by their number.
        request.headers["accept-encoding"] = "identity"
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        # To the address that was looked at, lest the name mean another one by now.
        request.url = url.copy_with(host=self.addresses[0])


def _bound(response: Value) -> None:
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise LeftItsPlace(f"the answer is compressed ({encoding}), unasked")
    stream = response.stream
    # The library reads streams of its own kind only.
    kind = next(one for one in type(stream).__mro__ if one.__name__ == "SyncByteStream")
    methods: dict[str, Value] = {
        "__iter__": lambda _: _limited(stream),  # pyright: ignore[reportUnknownLambdaType]
        "close": lambda _: stream.close(),  # pyright: ignore[reportUnknownLambdaType]
    }
    response.stream = type("BoundedStream", (kind,), methods)()


def _limited(stream: Sequence[bytes]) -> Iterator[bytes]:
    received = 0
    for part in stream:
        received += len(part)
        if received > LARGEST_REPLY:
            raise LeftItsPlace(f"the answer is larger than {LARGEST_REPLY} bytes")
        yield part
