"""Servers that are gone, slow, huge, or talk nonsense: bounded, and told as errors of ours."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from rlcore import PlatformTimeout, PlatformUnreachable, RLEaaSError, UnexpectedReply
from rleaas import AsyncClient, Client
from rleaas._drivers import exchange

OK = b'{"status": "ok"}'
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(answer: Answer) -> Generator[tuple[str, list[tuple[str, int]]]]:
    """A server with keep-alive; tells its URL, and the connection of each request."""
    connections: list[tuple[str, int]] = []
    held: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            held.append(self.connection)

        def do_GET(self) -> None:
            connections.append(self.client_address)
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", connections
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for one in held:
            with suppress(OSError):  # closed already
                one.shutdown(socket.SHUT_RDWR)


def say(
    body: bytes, kind: str = "application/json", status: int = 200, length: int | None = None
) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body) if length is None else length))
        request.end_headers()
        request.wfile.write(body)
        if length is not None:
            request.close_connection = True

    return answer


def drip(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "100000")
    request.end_headers()
    try:
        while True:
            request.wfile.write(b" ")
            request.wfile.flush()
            threading.Event().wait(0.05)
    except OSError:
        request.close_connection = True


NONSENSE: list[tuple[Answer, type[RLEaaSError], str]] = [
    (say(b"<html><body>hello</body></html>", "text/html"), UnexpectedReply, "text/html"),
    (say(b"\x00\xff\xfe" * 10), UnexpectedReply, "not JSON"),
    (say(b"[" * 100_000), UnexpectedReply, "not JSON"),
    (say(b'"text"'), UnexpectedReply, "not a valid PlatformInfo"),
    (say(b"[1, 2]"), UnexpectedReply, "not a valid PlatformInfo"),
    (say(b'{"status": {"a": 1}}'), UnexpectedReply, "status"),
    (say(OK, length=1000), PlatformUnreachable, "no answer"),
    (say(b"<h1>Bad gateway</h1>", "text/html", 502), RLEaaSError, "Bad gateway"),
]


@pytest.mark.parametrize(("answer", "kind", "words"), NONSENSE)
def test_nonsense_is_told_as_an_error_of_ours(
    answer: Answer, kind: type[RLEaaSError], words: str
) -> None:
    with (
        serving(answer) as (url, _),
        Client(base_url=url, retries=1) as client,
        pytest.raises(kind, match=words) as caught,
    ):
        client.ping()
    assert len(str(caught.value)) < 2000


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "kind", "words"), NONSENSE)
async def test_awaited_nonsense_is_told_as_an_error_of_ours(
    answer: Answer, kind: type[RLEaaSError], words: str
) -> None:
    with serving(answer) as (url, _):
        async with AsyncClient(base_url=url, retries=1) as client:
            with pytest.raises(kind, match=words):
                await client.ping()


def test_an_answer_that_drips_in_ends_at_the_timeout() -> None:
    with serving(drip) as (url, _), Client(base_url=url, timeout=0.4, retries=1) as client:
        began = time.monotonic()
        with pytest.raises(PlatformTimeout, match=r"not complete within 0\.4 s"):
            client.ping()
        assert time.monotonic() - began < 5


@pytest.mark.anyio
async def test_an_awaited_answer_that_drips_in_ends_at_the_timeout() -> None:
    with serving(drip) as (url, _):
        async with AsyncClient(base_url=url, timeout=0.4, retries=1) as client:
            with pytest.raises(PlatformTimeout, match=r"not complete within 0\.4 s"):
                await client.ping()


def test_an_answer_without_end_is_not_taken_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "LARGEST_BODY", 100_000)
    with (
        serving(say(b" " * 1_000_000)) as (url, _),
        Client(base_url=url) as client,
        pytest.raises(UnexpectedReply, match="longer than 100000 bytes"),
    ):
        client.ping()


def test_connections_are_used_again() -> None:
    with serving(say(OK)) as (url, connections), Client(base_url=url) as client:
        for _ in range(5):
            client.ping()

    assert (len(connections), len(set(connections))) == (5, 1)


@pytest.mark.anyio
async def test_awaited_connections_are_used_again() -> None:
    with serving(say(OK)) as (url, connections):
        async with AsyncClient(base_url=url) as client:
            for _ in range(5):
                await client.ping()

    assert (len(connections), len(set(connections))) == (5, 1)


def test_many_threads_share_a_client() -> None:
    def echo(request: BaseHTTPRequestHandler) -> None:
        say(b'{"version": "%s"}' % request.path.rpartition("=")[2].encode())(request)

    with (
        serving(echo) as (url, _),
        Client(base_url=url) as client,
        ThreadPoolExecutor(8) as pool,
    ):

        def ask(number: int) -> object:
            return client.get("/api", params={"n": number})["version"]

        told = list(pool.map(ask, range(80)))

    assert told == [str(number) for number in range(80)]


# In a process of their own: what else this one has loaded may not survive a fork.
FORKS = """
import os, sys
from rlcore import Error
from rleaas import Client

client = Client(base_url=sys.argv[1])
if sys.argv[2] == "open":
    client.ping()
else:
    client.close()
if (child := os.fork()) == 0:
    try:
        client.ping()
    except Error as error:
        print("forked:", error.code, flush=True)
    finally:
        os._exit(0)
os.waitpid(child, 0)
if sys.argv[2] == "open":
    client.ping()
"""


def forking(url: str, state: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", FORKS, url, state],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    ).stdout


def test_a_client_is_used_in_a_forked_process_over_connections_of_its_own() -> None:
    with serving(say(OK)) as (url, connections):
        assert forking(url, "open") == ""

    first, forked, last = connections
    assert first == last != forked


def test_a_client_that_was_closed_before_the_fork_stays_closed() -> None:
    assert forking("http://localhost:1", "closed") == "forked: client_closed\n"


def test_a_server_that_goes_away_between_two_calls_is_unreachable() -> None:
    with serving(say(OK)) as (url, _):
        client = Client(base_url=url, retries=2)
        client.ping()
    with client, pytest.raises(PlatformUnreachable):
        client.ping()


def test_a_server_that_takes_connections_and_says_nothing_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            Client(base_url=url, timeout=0.2, retries=2) as client,
            pytest.raises(PlatformTimeout, match=r"within 0\.2 s"),
        ):
            client.ping()


def test_a_stream_that_is_no_stream_is_not_read_for_ever() -> None:
    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(b"data: {}\n\n")
        request.close_connection = True

    with (
        serving(endless) as (url, _),
        Client(base_url=url) as client,
        pytest.raises(UnexpectedReply, match="no event"),
    ):
        next(client.events(after=0))


def test_what_is_asked_of_a_transport_of_one_s_own_does_not_reach_the_network() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json={"status": "ok"})

    transport = httpx.MockTransport(answer)
    with Client(base_url="https://nowhere.invalid", transport=transport) as client:
        assert client.ping().status == "ok"

    assert asked == ["https://nowhere.invalid/api"]
