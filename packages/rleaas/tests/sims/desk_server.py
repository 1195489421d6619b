"""A real HTTP server of tools, with endpoints that behave and endpoints that do not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit


class Desk(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, Any]] = []
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that give up in the middle are what these tests are about.
        return


class Handler(BaseHTTPRequestHandler):
    @property
    def desk(self) -> Desk:
        return cast("Desk", self.server)

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode()
        self.desk.seen.append(
            {
                "method": self.command,
                "path": parts.path,
                "query": parse_qs(parts.query),
                "body": json.loads(body) if body else None,
                "authorization": self.headers.get("authorization"),
            }
        )
        getattr(self, f"_{parts.path.strip('/').split('/')[0]}", self._gone)()

    def _score(self) -> None:
        self._send(200, {"score": 7, "asked": self.desk.seen[-1]["body"]})

    def _pets(self) -> None:
        self._send(200, ["one", "two"])

    def _echo(self) -> None:
        self._send(200, {"you_sent": self.headers.get("authorization")})

    def _angry(self) -> None:
        self._send(500, {"error": f"I hate {self.headers.get('authorization')}"})

    def _nothing(self) -> None:
        self.send_response(204)
        self.end_headers()

    def _prose(self) -> None:
        self._raw(200, b"Certainly! Here is your result.")

    def _nan(self) -> None:
        self._raw(200, b'{"score": NaN}')

    def _nested(self) -> None:
        self._raw(200, b"[" * 60_000)

    def _huge(self) -> None:
        self._raw(200, b'"' + b"x" * 5_000_000 + b'"')

    def _moved(self) -> None:
        self.send_response(302)
        self.send_header("location", "/score")
        self.send_header("content-length", "0")
        self.end_headers()

    def _slow(self) -> None:
        self.desk.release.wait(20)
        self._send(200, {})

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "100000")
        self.end_headers()
        until = time.monotonic() + 20
        while time.monotonic() < until and not self.desk.release.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _cut(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b'{"score": ')

    def _gone(self) -> None:
        self._send(404, {"error": "no such path"})

    def _send(self, status: int, value: object) -> None:
        self._raw(status, json.dumps(value).encode())

    def _raw(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def served() -> Generator[Desk]:
    """A desk that answers while the block runs."""
    with Desk() as desk:
        thread = threading.Thread(target=desk.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield desk
        finally:
            desk.release.set()
            desk.shutdown()
            thread.join()
