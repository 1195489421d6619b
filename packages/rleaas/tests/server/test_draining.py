"""Real servers that are told to stop while they are busy, and what they wrote about it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from rleaas import Client, NotFoundError

SERVE = """
import sys
from pathlib import Path
from rleaas.cli.main import main
sys.exit(main(["serve", "--port", "0", "--data", sys.argv[1], *sys.argv[2:]]))
"""
KEY = "rleaas_sk_operator_0123456789"

pytestmark = pytest.mark.slow  # each starts a process


class Server:
    """A server in a process of its own, whose log is a file."""

    def __init__(self, data: Path, *options: str, key: str | None = None) -> None:
        self.log = data.with_suffix(".log")
        environment = {**os.environ, **({} if key is None else {"RLEAAS_SERVER_API_KEY": key})}
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                [sys.executable, "-c", SERVE, str(data), *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        assert self.popen.stdout is not None
        self.url = self.popen.stdout.readline().split()[-1]
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False)

    def hold(self) -> socket.socket:
        """Begin an upload that is not finished."""
        host, port = self.url.removeprefix("http://").split(":")
        connection = socket.create_connection((host, int(port)), timeout=20)
        connection.sendall(
            b"POST /api/data-assets?name=a.csv HTTP/1.1\r\nHost: localhost\r\n"
            b"Expect: 100-continue\r\nContent-Type: text/csv\r\nContent-Length: 10\r\n\r\n"
        )
        # Said when the server reads the body, so that the request has begun.
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"12345")
        return connection

    def readiness(self) -> int:
        return httpx.get(f"{self.url}/readyz", timeout=20, trust_env=False).status_code

    def wait_for_stopping(self) -> None:
        while self.readiness() != 503:
            pass

    def ended(self) -> int:
        return self.popen.wait(30)

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


Start = Callable[..., Server]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def start(data: Path) -> Iterator[Start]:
    running: list[Server] = []

    def begin(*options: str, key: str | None = None) -> Server:
        running.append(Server(data, *options, key=key))
        return running[-1]

    yield begin
    for one in running:
        one.http.close()
        one.popen.kill()
        one.popen.communicate()


def everything(connection: socket.socket) -> bytes:
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    connection.close()
    return received


def test_what_has_begun_is_brought_to_its_end_and_others_hear_that_the_server_stops(
    start: Start,
) -> None:
    server = start()
    held = server.hold()
    headers = {"accept": "text/event-stream"}
    with server.http.stream("GET", "/api/events", headers=headers) as stream:
        lines = stream.iter_lines()
        next(lines)
        server.popen.send_signal(signal.SIGTERM)
        # The stream ends as one that was closed by the server in its own words.
        assert [line for line in lines if line.startswith("data")] == []
    server.wait_for_stopping()
    told = server.http.get("/readyz").json()
    assert "the server is stopping" in told["detail"]
    asked = server.http.get("/api/environments")
    assert (asked.status_code, asked.headers["connection"]) == (200, "close")
    held.sendall(b"67890")

    reply = everything(held)
    assert reply.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in reply
    assert server.ended() == 0
    assert "Traceback" not in server.log.read_text()


def test_draining_is_bounded_and_whoever_is_cut_short_is_told(start: Start) -> None:
    server = start("--drain-timeout", "0.2")
    held = server.hold()
    server.popen.send_signal(signal.SIGTERM)

    assert server.ended() == 0
    reply = everything(held)
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert b"server_stopping" in reply


def test_a_second_signal_ends_it_at_once(start: Start) -> None:
    server = start("--drain-timeout", "600")
    held = server.hold()
    server.popen.send_signal(signal.SIGTERM)
    server.wait_for_stopping()
    server.popen.send_signal(signal.SIGTERM)

    assert server.popen.wait(10) == 0
    held.close()


def test_a_line_of_json_tells_of_each_request_and_of_no_secret(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_LOG_FORMAT", "json")
    server = start(key=KEY)
    made = server.http.post("/api/keys", json={"name": "mine"}).json()
    with (
        Client(base_url=server.url, api_key=made["key"]) as client,
        pytest.raises(NotFoundError) as missing,
    ):
        client.Environment.get("a name that is not there")
    server.http.get(f"/api/environments/{KEY}")
    httpx.get(
        f"{server.url}/api/tools",
        headers={"authorization": "Bearer opensesame-123456", "x-request-id": "asked-by-me"},
        trust_env=False,
    )
    server.http.get("/no/such/place")
    server.popen.send_signal(signal.SIGTERM)
    assert server.ended() == 0

    lines = server.lines()
    mine = next(line for line in lines if line["request_id"] == missing.value.request_id)
    assert isinstance(mine.pop("ms"), float)
    assert isinstance(mine.pop("time"), str)
    assert mine == {
        "level": "info",
        "logger": "rleaas.server.access",
        "message": mine["message"],
        "request_id": missing.value.request_id,
        "method": "GET",
        "route": "/api/environments/{env}",
        "status": 404,
        "organisation": "default",
        "key": made["prefix"],
    }
    refused = next(line for line in lines if line["request_id"] == "asked-by-me")
    assert (refused["status"], refused["organisation"], refused["key"]) == (401, None, None)
    assert any(line.get("route", "") is None and line["status"] == 404 for line in lines)
    text = server.log.read_text()
    assert not [secret for secret in (KEY, made["key"], "opensesame") if secret in text]
