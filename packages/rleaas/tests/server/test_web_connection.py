"""Connections that do nothing are closed, and those that do are kept."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from rleaas.server.guard import Patience
from rleaas.server.web_connection import WebConnection, connections, room_for_connections
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from .conftest import Running, Start

ASK = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@contextmanager
def dialled(platform: Running) -> Generator[socket.socket]:
    address = urlsplit(platform.server.url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        yield connection


def answer(connection: socket.socket) -> bytes:
    """The answer to `ASK`, whole; its last byte ends a JSON object."""
    told = b""
    while not told.endswith(b"}"):
        told += connection.recv(65536)
    return told


def everything(connection: socket.socket) -> bytes:
    told = b""
    while data := connection.recv(65536):
        told += data
    return told


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nhost: 127"])
def test_who_sends_no_whole_head_is_told_so_and_let_go(
    start: Start, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(WebConnection, "head_seconds", 0.1)
    platform = start()

    with dialled(platform) as connection:
        connection.sendall(sent)
        told = everything(connection)

    assert told.startswith(b"HTTP/1.1 408")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "request_timeout"


def test_drops_of_a_head_give_it_no_more_time(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WebConnection, "head_seconds", 0.3)
    platform = start()

    with dialled(platform) as connection:
        connection.sendall(ASK)
        assert answer(connection).startswith(b"HTTP/1.1 200")
        connection.settimeout(0.02)
        told = b""
        for _ in range(500):  # one byte each: with each giving it more time, it would go on
            try:
                connection.sendall(b"G")
                told += connection.recv(65536)
            except TimeoutError:
                continue
            except OSError:  # it has closed, and hears nothing more
                break
            if told:
                break

    assert told.startswith(b"HTTP/1.1 408")


def test_a_connection_is_kept_between_requests(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WebConnection, "head_seconds", 0.1)
    platform = start()

    with dialled(platform) as connection, dialled(platform) as silent:
        connection.sendall(ASK)
        first = answer(connection)
        everything(silent)  # for longer than a head may take
        connection.sendall(ASK)
        second = answer(connection)

    assert first.startswith(b"HTTP/1.1 200")
    assert second.startswith(b"HTTP/1.1 200")


def test_who_does_not_read_the_answer_is_let_go(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WebConnection, "read_seconds", 0.1)
    platform = start()
    large = {"name": "large", "description": "x" * 8_000_000}
    made = platform.ok(platform.http.post("/api/agents", json=large))

    with dialled(platform) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = f"GET /api/agents/{made['id']} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        connection.sendall(ask.encode())
        assert platform.http.get("/healthz").status_code == 200  # others are served meanwhile
        with pytest.raises(ConnectionError):
            write_on(connection, platform)


def write_on(connection: socket.socket, platform: Running) -> None:
    for _ in range(1000):  # a write to a connection that was given up fails
        connection.sendall(b"\r\n")
        platform.http.get("/healthz")


def test_with_no_connection_left_one_is_told_to_come_back(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rleaas.server.listening.room_for_connections", lambda: 2)
    platform = start()

    with dialled(platform) as first, dialled(platform) as second:
        for connection in (first, second):
            connection.sendall(ASK)
            assert answer(connection).startswith(b"HTTP/1.1 200")
        with dialled(platform) as third:
            told = everything(third)
        first.sendall(ASK)
        assert answer(first).startswith(b"HTTP/1.1 200")

    assert told.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 2" in told
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "server_crowded"


def test_some_files_are_left_for_the_server_itself() -> None:
    assert room_for_connections() > 0
    assert connections(7).most == 7


def test_a_body_that_comes_in_drops_is_given_up() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    async def drop() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b".", "more_body": True}

    async def send(_: Message) -> None:
        raise AssertionError("there is nothing to send")

    patient = Patience(app, seconds=0.1, rate=1000)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(patient({"type": "http", "method": "POST", "headers": []}, drop, send))
    assert refused.value.status_code == 408
