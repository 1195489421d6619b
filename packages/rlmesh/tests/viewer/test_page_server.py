from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from rlcore import BindError
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.views import ViewControl
from rlmesh.transport.png import decode_png
from rlmesh.viewer import page_server
from rlmesh.viewer.encoding import frame_encoder
from rlmesh.viewer.hud import Hud
from rlmesh.viewer.page_server import PageServer
from rlmesh.viewer.screen import Screen

if TYPE_CHECKING:
    from packages.rlmesh.tests.viewer.conftest import Shown

PICTURE = np.full((8, 10, 3), (1, 2, 3), np.uint8)


def ask(
    shown: Shown, path: str, method: str = "GET", **headers: str
) -> tuple[int, http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", shown.port, timeout=10)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=given)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer, body


def told(shown: Shown, path: str) -> Any:  # Any: JSON
    status, answer, body = ask(shown, path)
    assert (status, answer.headers["Content-Type"]) == (200, "application/json")
    return json.loads(body)


def test_the_page_is_whole_in_itself(shown: Shown) -> None:
    status, answer, body = ask(shown, "/")
    page = body.decode()
    assert status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    assert "NONCE" not in page
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_frame_is_the_picture_that_is_shown(shown: Shown) -> None:
    status, answer, body = ask(shown, "/frame")
    assert (status, body) == (404, b"there is no frame yet\n")
    shown.screen.put(PICTURE)
    status, answer, body = ask(shown, "/frame")
    assert (status, answer.headers["Content-Type"]) == (200, "image/png")
    assert answer.headers["X-Frame"] == "1"
    assert answer.headers["Cache-Control"] == "no-store"
    assert np.array_equal(decode_png(body), PICTURE)


def test_a_frame_can_be_waited_for(shown: Shown) -> None:
    shown.screen.put(PICTURE)
    later = threading.Timer(0.05, shown.screen.put, (PICTURE + 1,))
    later.start()
    status, answer, body = ask(shown, "/frame?after=1")
    later.join()
    assert (status, answer.headers["X-Frame"]) == (200, "2")
    assert np.array_equal(decode_png(body), PICTURE + 1)


def test_who_waits_for_a_frame_in_vain_is_told_so(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "_FRAME_WAIT_SECONDS", 0.01)
    shown.screen.put(PICTURE)
    status, _, body = ask(shown, "/frame?after=1")
    assert (status, body) == (204, b"")


def test_a_picture_is_encoded_once_for_everybody(shown: Shown) -> None:
    shown.screen.put(PICTURE)
    files = {ask(shown, "/frame")[2] for _ in range(3)}
    assert len(files) == 1


def test_sources_and_counts_are_told_as_published(shown: Shown) -> None:
    assert told(shown, "/sources.json") == {"sources": ["render", "camera"], "selected": 0}
    assert set(told(shown, "/hud.json")) >= {
        "step", "reward", "outcome", "model_ms", "env_ms", "sps", "fps", "elapsed_s", "episode",
        "episodes", "seed", "width", "height", "chunk_pos", "chunk_len",
    }  # fmt: skip


def test_a_source_is_selected(shown: Shown) -> None:
    assert told(shown, "/select?i=1") == {"ok": True}
    assert told(shown, "/sources.json")["selected"] == 1


@pytest.mark.parametrize(
    "query", ["", "?i=2", "?i=-1", "?i=x", "?i=" + "9" * 5000, "?" + "&".join(["i=0"] * 20)]
)
def test_a_source_that_is_not_there_is_refused(shown: Shown, query: str) -> None:
    status, _, body = ask(shown, "/select" + query)
    assert status == 400
    assert json.loads(body) == {"ok": False, "error": "i is the number of a source, 0 to 1"}
    assert shown.screen.selected == 0


def test_an_episode_is_skipped_as_published(shown: Shown) -> None:
    assert told(shown, "/skip") == {"ok": True}
    assert shown.control.take_skip()


@pytest.mark.parametrize("path", ["/skip", "/quit", "/pause", "/resume", "/step", "/select?i=1"])
def test_the_run_is_driven_by_post(shown: Shown, path: str) -> None:
    shown.control.pause()
    status, _, body = ask(shown, path, "POST")
    assert (status, json.loads(body)) == (200, {"ok": True})
    assert {
        "/skip": shown.control.take_skip(),
        "/quit": shown.control.quit_requested,
        "/pause": shown.control.paused,
        "/resume": not shown.control.paused,
        "/step": shown.control.paused,
        "/select?i=1": shown.screen.selected == 1,
    }[path]


@pytest.mark.parametrize("path", ["/quit", "/pause", "/resume", "/step"])
def test_what_is_new_is_not_done_by_get(shown: Shown, path: str) -> None:
    assert ask(shown, path)[0] == 404
    assert not shown.control.asked


@pytest.mark.parametrize("path", ["/none", "/frame/", "/../page_server.py", "/page.html"])
def test_everything_else_is_not_found(shown: Shown, path: str) -> None:
    assert ask(shown, path)[0] == 404
    assert ask(shown, path, "POST")[0] == 404


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_another_web_page_can_not_drive_the_run(
    shown: Shown, method: str, headers: dict[str, str]
) -> None:
    status, _, body = ask(shown, "/skip", method, **headers)
    assert status == 403
    assert body
    assert not shown.control.asked


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content_Length": "5000"}, 413),
        ({"Content_Length": "9" * 5000}, 413),
        ({"Content_Length": "-1"}, 400),
        ({"Content_Length": "two"}, 400),
        ({"Transfer_Encoding": "chunked"}, 400),
    ],
)
def test_a_request_with_a_large_body_is_refused_unread(
    shown: Shown, headers: dict[str, str], status: int
) -> None:
    assert ask(shown, "/quit", "POST", **headers)[0] == status
    assert not shown.control.asked


def test_a_small_body_is_read_and_ignored(shown: Shown) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shown.port, timeout=10)
    for _ in range(2):
        connection.request("POST", "/pause", body=b"{}")
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"ok": true}')
    connection.close()


def events(shown: Shown) -> tuple[socket.socket, Callable[[], tuple[str, Any]]]:
    connection = socket.create_connection(("127.0.0.1", shown.port), timeout=10)
    connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    lines = connection.makefile("rb")
    assert lines.readline() == b"HTTP/1.1 200 OK\r\n"
    while lines.readline() != b"\r\n":
        pass

    def following() -> tuple[str, Any]:
        name = lines.readline().decode().removeprefix("event: ").strip()
        data = lines.readline().decode().removeprefix("data: ")
        assert lines.readline() == b"\n"
        return name, json.loads(data)

    return connection, following


def test_what_changes_is_told_to_who_listens(
    shown: Shown, episode_result: Callable[..., EpisodeResult]
) -> None:
    connection, following = events(shown)
    assert following() == ("episodes", [])
    name, state = following()
    assert (name, state["title"], state["paused"]) == ("state", "Painter-v0", False)
    assert state["sources"] == ["render", "camera"]
    shown.control.pause()
    shown.screen.hud.episode(episode_result(0))
    found: dict[str, Any] = {}
    while not found.get("state", {}).get("paused"):
        name, found[name] = following()
    assert [row["outcome"] for row in found["episodes"]] == ["success"]
    assert found["state"]["curves"]["returns"] == {"every": 1, "points": [20.0]}
    shown.screen.close()
    while name != "end":
        name, _ = following()
    assert connection.recv(1) == b""
    connection.close()


def test_a_taken_port_is_refused_by_name(taken_port: int) -> None:
    screen = Screen(ViewControl(), Hud(), None)
    with pytest.raises(BindError, match=f"127.0.0.1:{taken_port} cannot be taken") as caught:
        PageServer(screen, frame_encoder("png", 75), port=taken_port)
    assert caught.value.address == f"127.0.0.1:{taken_port}"


def test_the_page_is_on_the_loopback_interface_only(shown: Shown) -> None:
    assert shown.server.address == f"http://127.0.0.1:{shown.port}/"
    with pytest.raises(OSError, match=r"refused|unreachable|No route|Cannot assign"):
        socket.create_connection(("127.0.0.2", shown.port), timeout=5)


def test_there_are_never_more_connections_than_a_few(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, until: Callable[[Callable[[], bool]], None]
) -> None:
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 3)
    answered = [socket.create_connection(("127.0.0.1", shown.port), timeout=10) for _ in range(3)]
    for connection in answered:
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
    with socket.create_connection(("127.0.0.1", shown.port), timeout=10) as late:
        assert late.recv(1024).startswith(b"HTTP/1.1 503 ")
    for connection in answered:
        connection.close()

    def is_served_again() -> bool:
        try:
            return ask(shown, "/hud.json")[0] == 200
        except (ConnectionError, http.client.HTTPException):
            return False

    until(is_served_again)


@pytest.mark.parametrize(
    "said", [b"", b"GET /frame HT", b"POST /pause HTTP/1.1\r\nContent-Length: 9\r\n"]
)
def test_connections_that_say_nothing_do_not_keep_out_who_does(
    said: bytes, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "MOST_CONNECTIONS", 3)
    idle = [socket.create_connection(("127.0.0.1", shown.port), timeout=10) for _ in range(3)]
    if said.startswith(b"POST"):
        said += b"Host: localhost\r\n\r\n"
    for connection in idle:
        connection.sendall(said)

    answers = [ask(shown, "/hud.json")[0] for _ in range(3)]

    assert answers == [200, 200, 200]
    assert idle[0].recv(1) == b""
    for connection in idle:
        connection.close()


def test_who_does_not_say_what_it_wants_is_hung_up_on(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "PATIENCE_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", shown.port), timeout=10) as slow:
        slow.sendall(b"GET /frame HT")
        assert slow.recv(1024) == b""


def test_hostile_bytes_do_not_end_the_server(
    shown: Shown, capfd: pytest.CaptureFixture[str]
) -> None:
    for data in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /hud.json HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"GET http://[::1/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", shown.port), timeout=10) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    assert ask(shown, "/hud.json")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_closing_hangs_up_on_everybody_and_gives_the_port_back() -> None:
    screen = Screen(ViewControl(), Hud(), None)
    server = PageServer(screen, frame_encoder("png", 75), port=0)
    server.start()
    port = int(server.address.rstrip("/").rpartition(":")[2])
    idle = socket.create_connection(("127.0.0.1", port), timeout=10)
    listening = socket.create_connection(("127.0.0.1", port), timeout=10)
    listening.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert listening.recv(15) == b"HTTP/1.1 200 OK"
    screen.close()
    server.close()
    assert idle.recv(1) == b""
    rest = b""
    while part := listening.recv(4096):
        rest += part
    assert rest.endswith(b"event: end\ndata: {}\n\n")
    idle.close()
    listening.close()
    assert not [one for one in threading.enumerate() if one.name == "rlmesh-view-page"]
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_reader_that_takes_nothing_does_not_delay_the_end_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_server, "_GRACE_SECONDS", 0.1)
    screen = Screen(ViewControl(), Hud(), None)
    server = PageServer(screen, frame_encoder("png", 75), port=0)
    server.start()
    screen.put(np.random.default_rng(0).integers(0, 256, (1500, 2000, 3), np.uint8))
    port = int(server.address.rstrip("/").rpartition(":")[2])
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", port))
        slow.sendall(b"GET /frame HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(4) == b"HTTP"
        screen.close()
        server.close()
    assert not [one for one in threading.enumerate() if "process_request" in one.name]
