"""The viewer's page: a small web server on the loopback interface, on threads of its own."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from secrets import token_urlsafe
from socketserver import TCPServer, ThreadingMixIn
from time import monotonic
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

from rlcore import BindError

from rlmesh.viewer.encoding import FrameEncoder
from rlmesh.viewer.page_access import LOOPBACK, refusal
from rlmesh.viewer.screen import Screen

MOST_CONNECTIONS: Final = 32
PATIENCE_SECONDS: Final = 10.0
"""Who takes longer to say what it wants, or to take an answer, is hung up on."""

_GRACE_SECONDS: Final = 1.0
_HANG_UP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.1
_FRAME_WAIT_SECONDS: Final = 1.0
_STATE_SECONDS: Final = 0.2
_MOST_BODY: Final = 1024
_JSON: Final = "application/json"
_BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class PageServer:
    """Serves a screen at `http://127.0.0.1:PORT/`.

    Args:
        screen: what is shown, and who is asked for something.
        encoder: makes files of its pictures.
        port: the port; 0 for a free one.

    Raises:
        BindError: the port is taken or not allowed.
    """

    trouble: str | None = None

    def __init__(self, screen: Screen, encoder: FrameEncoder, *, port: int) -> None:
        try:
            self._server = _Server((LOOPBACK, port), screen, encoder)
        except OSError as error:
            raise BindError(
                f"{LOOPBACK}:{port} cannot be taken: {error.strerror or error}",
                address=f"{LOOPBACK}:{port}",
                hint="is another run watched there? pass 0 for a free port",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="rlmesh-view-page"
        )
        self._thread.daemon = True

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}/"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Answer who has asked, hang up on the others, and give the port back."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.hang_up()


class _Server(ThreadingMixIn, TCPServer):
    daemon_threads = True
    block_on_close = False  # `hang_up` does it, and hurries who is slow
    allow_reuse_address = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], screen: Screen, encoder: FrameEncoder) -> None:
        self.screen = screen
        self.encoder = encoder
        self.nonce = token_urlsafe(16)
        page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        self.page = page.replace("NONCE", self.nonce).encode()
        self._open: dict[socket.socket, float | None] = {}
        self._change = threading.Condition()
        self._encoding = threading.Lock()
        self._encoded: tuple[int, bytes] = (0, b"")
        super().__init__(address, _Handler)

    def frame(self) -> tuple[int, bytes]:
        """Return the number and the file of the picture that is shown; encoded once for all."""
        with self._encoding:
            number, picture = self.screen.look()
            if picture is not None and number != self._encoded[0]:
                self._encoded = (number, self.encoder.encode(picture))
            return self._encoded

    def reading(self, connection: socket.socket) -> None:
        """A connection is about to say what it wants."""
        with self._change:
            if connection in self._open:
                self._open[connection] = monotonic()

    def answering(self, connection: socket.socket) -> None:
        """A connection has said what it wants."""
        with self._change:
            if connection in self._open:
                self._open[connection] = None

    def process_request(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Give a connection a thread, where there are not too many that are being answered."""
        connection = cast("socket.socket", request)
        with self._change:
            fits = self._has_room()
            if fits:
                self._open[connection] = monotonic()
        if fits:
            super().process_request(connection, client_address)
            return
        connection.setblocking(False)
        with suppress(OSError):
            connection.send(_BUSY)
        self.shutdown_request(connection)

    def _has_room(self) -> bool:
        if len(self._open) < MOST_CONNECTIONS:
            return True
        asking = [(since, one) for one, since in self._open.items() if since is not None]
        if not asking:
            return False
        # Whoever has said nothing for longest does not keep out who has something to say.
        _hang_up(min(asking, key=lambda pair: pair[0])[1])
        return self._change.wait_for(lambda: len(self._open) < MOST_CONNECTIONS, _HANG_UP_SECONDS)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """End a connection."""
        super().shutdown_request(request)
        with self._change:
            self._open.pop(cast("socket.socket", request), None)
            self._change.notify_all()

    def service_actions(self) -> None:
        """Hang up on who does not say what it wants."""
        late = monotonic() - PATIENCE_SECONDS
        with self._change:
            for connection, since in self._open.items():
                if since is not None and since < late:
                    _hang_up(connection)

    def hang_up(self) -> None:
        """End all connections: at once who asks nothing, soon who is being answered."""
        with self._change:
            for connection, since in self._open.items():
                if since is not None:
                    _hang_up(connection)
            self._change.wait_for(lambda: not self._open, _GRACE_SECONDS)
            for connection in self._open:
                _hang_up(connection)
            self._change.wait_for(lambda: not self._open, _GRACE_SECONDS)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a connection that broke is the other side's affair."""


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "rlmesh"
    sys_version = ""
    timeout = PATIENCE_SECONDS
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  # whose handler this is

    def handle_one_request(self) -> None:
        self.server.reading(self.connection)
        super().handle_one_request()

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if not self._welcome(asked.path):
            return
        match asked.path:
            case "/":
                self._page()
            case "/frame":
                self._frame(_number(asked.query, "after"))
            case "/hud.json":
                self._json(self.server.screen.hud.to_dict())
            case "/sources.json":
                screen = self.server.screen
                self._json({"sources": list(screen.labels), "selected": screen.selected})
            case "/episodes.json":
                self._json({"episodes": self.server.screen.hud.rows()})
            case "/events":
                self._events()
            case "/select" | "/skip":
                self._act(asked.path, asked.query)
            case _:
                self._refuse(404, "there is no such page")

    def do_POST(self) -> None:
        asked = urlsplit(self.path)
        if not self._permitted(asked.path) or not self._body_read():
            return
        self.server.answering(self.connection)
        self._act(asked.path, asked.query)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal is the user's."""

    def _welcome(self, path: str) -> bool:
        self.server.answering(self.connection)
        return self._permitted(path)

    def _permitted(self, path: str) -> bool:
        why = refusal(path, self.headers.get)
        if why is not None:
            self._refuse(403, why)
        return why is None

    def _body_read(self) -> bool:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isascii() or not length.isdigit():
            self._refuse(400, "a request has no body")
            return False
        if len(length) > 4 or int(length) > _MOST_BODY:
            self._refuse(413, "a request has no body")
            return False
        self.rfile.read(int(length))
        return True

    def _act(self, path: str, query: str) -> None:
        screen = self.server.screen
        if path == "/select":
            index = _number(query, "i")
            if index is None or not screen.select(index):
                last = len(screen.labels) - 1
                self._json({"ok": False, "error": f"i is the number of a source, 0 to {last}"}, 400)
                return
            self._json({"ok": True})
            return
        control = screen.control
        acts: dict[str, Callable[[], None]] = {
            "/skip": screen.skip,
            "/quit": control.quit,
            "/pause": control.pause,
            "/resume": control.resume,
            "/step": control.step,
        }
        act = acts.get(path)
        if act is None:
            self._refuse(404, "there is no such page")
            return
        act()
        self._json({"ok": True})

    def _page(self) -> None:
        nonce = self.server.nonce
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
            "img-src data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy}
        self._answer(200, "text/html; charset=utf-8", self.server.page, headers)

    def _frame(self, after: int | None) -> None:
        screen = self.server.screen
        if after is not None:
            screen.await_change(after, _FRAME_WAIT_SECONDS)
        number, data = self.server.frame()
        # Who is told that this is the end does not ask again.
        headers = {"X-Frame": str(number), "X-Ended": str(int(screen.closed))}
        if after is not None and number == after:
            self._answer(204, None, b"", headers)
        elif not data:
            self._answer(404, "text/plain; charset=utf-8", b"there is no frame yet\n", headers)
        else:
            self._answer(200, self.server.encoder.mime, data, headers)

    def _events(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self._common_headers()
        self.end_headers()
        screen = self.server.screen
        listed, told, ended = -1, "", False
        while not ended:
            ended = screen.closed
            if screen.hud.finished != listed:
                listed = screen.hud.finished
                self._event("episodes", json.dumps(screen.hud.rows()))
            state = json.dumps(screen.state())
            if state != told:
                told = state
                self._event("state", state)
            if not ended:
                screen.await_end(_STATE_SECONDS)
        self._event("end", "{}")

    def _event(self, name: str, data: str) -> None:
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())

    def _json(self, content: object, status: int = 200) -> None:
        self._answer(status, _JSON, json.dumps(content).encode())

    def _refuse(self, status: int, why: str) -> None:
        self.close_connection = True  # what it may still send is not read
        self._answer(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _answer(
        self, status: int, kind: str | None, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self._common_headers()
        self.end_headers()
        self.wfile.write(body)

    def _common_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")


def _number(query: str, name: str) -> int | None:
    try:
        given = parse_qs(query, max_num_fields=8).get(name, [""])[0]
    except ValueError:  # too many fields
        return None
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None
