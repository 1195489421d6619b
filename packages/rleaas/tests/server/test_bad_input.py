import re
import socket
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest
from rleaas.server.body_limit import MAX_BODY, MEBIBYTE

from .conftest import Running, Start

REQUEST_ID = re.compile(r"req_[0-9a-f]{16}")


def code(reply: httpx.Response) -> tuple[int, str]:
    body = reply.json()
    assert body["request_id"] == reply.headers["x-request-id"]
    assert isinstance(body["detail"], str)
    return reply.status_code, body["code"]


@pytest.mark.parametrize(
    "content", [b"{", b"", b"[1]", b"\xff\xfe", b'"text"', b"null", b"[" * 100_000]
)
def test_a_body_that_is_no_json_object_is_refused(platform: Running, content: bytes) -> None:
    reply = platform.http.post(
        "/api/custom-environments", content=content, headers={"content-type": "application/json"}
    )

    status, _ = code(reply)
    assert status in (400, 422)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the body is empty; send a JSON object"),
        (b"[" * 100_000, "the body is nested deeper than 32 levels"),
        (b'{"name":' + b"1" * 5000 + b"}", "the body holds an integer of too many digits"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_what_is_wrong(
    platform: Running, content: bytes, says: str
) -> None:
    reply = platform.http.post(
        "/api/custom-environments", content=content, headers={"content-type": "application/json"}
    )

    assert reply.status_code in (400, 422)
    assert says in reply.json()["detail"]


@pytest.mark.parametrize(
    ("method", "headers", "expected"),
    [
        ("GET", [("host", "[::1")], (400, "invalid_header")),
        ("POST", [("origin", "http://[bad")], (400, "invalid_header")),
        (
            "GET",
            [("authorization", "Bearer a"), ("authorization", "Bearer b")],
            (400, "invalid_header"),
        ),
        ("POST", [("content-encoding", "gzip")], (415, "encoding_not_supported")),
    ],
)
def test_headers_that_cannot_be_understood_are_refused(
    platform: Running, method: str, headers: list[tuple[str, str]], expected: tuple[int, str]
) -> None:
    assert code(platform.http.request(method, "/api/me", headers=headers)) == expected


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed(platform: Running) -> None:
    head = (
        b"POST /api/custom-environments HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    address = platform.http.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=10) as line:
        line.sendall(head + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        told = b""
        while data := line.recv(65536):
            told += data

    assert told.startswith(b"HTTP/1.1 400")
    assert b"ambiguous_body" in told
    assert told.count(b"HTTP/1.1") == 1


def test_a_body_over_the_limit_is_refused_before_it_is_read_whole(platform: Running) -> None:
    head = (
        b"POST /api/custom-environments HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\n"
    )
    address = platform.http.base_url
    with socket.create_connection((address.host, address.port or 80), timeout=10) as line:
        line.sendall(head + f"Content-Length: {MAX_BODY + 1}\r\n\r\n".encode() + b"{")

        reply = line.makefile("rb").readline()

    assert reply.split()[1] == b"413"


def test_a_streamed_body_is_counted_and_refused_over_the_limit(platform: Running) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY // MEBIBYTE + 1):
            yield b" " * MEBIBYTE

    reply = platform.http.post(
        "/api/custom-environments", content=chunks(), headers={"content-type": "application/json"}
    )

    assert code(reply) == (413, "body_too_large")
    assert "16 MiB" in reply.json()["detail"]


def test_a_body_of_another_type_is_refused_with_the_type_that_is_wanted(platform: Running) -> None:
    reply = platform.http.post("/api/custom-environments", data={"name": "x"})

    assert code(reply) == (422, "invalid_request")
    assert "application/json" in reply.json()["detail"]


@pytest.mark.parametrize(
    "name", ["a//b", "a/..", "a/", "a#b", "a?b", "a%b", "a@1", "", " a", "1st", "a" * 101]
)
def test_a_name_that_could_not_be_addressed_is_refused(platform: Running, name: str) -> None:
    reply = platform.http.post("/api/custom-environments", json={"name": name})

    assert code(reply) == (422, "invalid_name")


@pytest.mark.parametrize("name", ["My Env_v1.2-x", "A", "a" * 100, "team/Größe 2", "環境"])
def test_a_name_with_spaces_slashes_and_letters_of_any_script_is_a_name(
    platform: Running, name: str
) -> None:
    platform.register(name, source="custom")

    reply = platform.http.get(f"/api/environments/{quote(name, safe='')}")
    assert platform.ok(reply)["name"] == name


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("CartPole-v1", "gym://ID"),
        ("ftp://x", "'ftp'"),
        ("gym://", "names nothing"),
        ("python://module", "python://module:attr"),
    ],
)
def test_a_source_of_no_known_kind_is_refused(platform: Running, source: str, says: str) -> None:
    reply = platform.http.post("/api/custom-environments", json={"name": "E", "source": source})

    assert code(reply) == (422, "invalid_source")
    assert says in reply.json()["detail"]


@pytest.mark.parametrize("content", ['{"name":"E","kwargs":{"x":NaN}}', '{"name":"\\ud800"}'])
def test_what_json_cannot_carry_back_is_refused(platform: Running, content: str) -> None:
    reply = platform.http.post(
        "/api/custom-environments",
        content=content.encode(),
        headers={"content-type": "application/json"},
    )

    assert code(reply) == (422, "invalid_request")


def test_a_field_with_a_typo_names_the_right_one(platform: Running) -> None:
    reply = platform.http.post("/api/custom-environments", json={"name": "E", "kwrgs": {}})

    assert code(reply) == (422, "invalid_request")
    assert "did you mean 'kwargs'" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "sentence", "kind"),
    [
        ("GET", "/api/environments/x", "Environment not found", "environment"),
        ("GET", "/api/environments/a%2Fb", "Environment not found", "environment"),
        ("GET", "/api/environments/99/endpoint", "Environment not found", "environment"),
        ("DELETE", "/api/custom-environments/x", "Environment not found", "environment"),
        ("POST", "/train/default", "Environment not found", "environment"),
        ("GET", "/training/x", "Training job not found", "training_job"),
        ("GET", "/api/training/jobs/x/logs", "Training job not found", "training_job"),
        ("POST", "/api/training/jobs/x/cancel", "Training job not found", "training_job"),
        ("GET", "/api/checkpoints/training_x/file", "Checkpoint not found", "checkpoint"),
        ("GET", "/api/evaluations/environment", "Evaluation not found", "evaluation"),
        ("GET", "/api/rollouts//job_x", "Rollout not found", "rollout"),
    ],
)
def test_what_does_not_exist_has_a_fixed_sentence_and_its_id_apart(
    platform: Running, method: str, path: str, sentence: str, kind: str
) -> None:
    reply = platform.http.request(method, path, json={} if method == "POST" else None)

    assert code(reply) == (404, f"{kind}_not_found")
    body = reply.json()
    assert (body["detail"], body["kind"]) == (sentence, kind)
    assert body["ref"]


@pytest.mark.parametrize("path", ["/api/nothing", "/nope", "/api/environments/"])
def test_a_route_that_is_not_offered_says_so_in_json(platform: Running, path: str) -> None:
    assert code(platform.http.get(path)) == (404, "route_not_found")


def test_a_method_that_a_route_does_not_have_says_so_in_json(platform: Running) -> None:
    reply = platform.http.put("/api")

    assert code(reply) == (405, "method_not_allowed")
    assert reply.headers["allow"] == "GET"


@pytest.mark.parametrize("query", ["limit=-1", "limit=x", "cursor=%00", "offset=1e9"])
def test_a_query_that_makes_no_sense_is_refused(platform: Running, query: str) -> None:
    assert code(platform.http.get(f"/api/environments?{query}")) == (422, "invalid_request")


@pytest.mark.parametrize("cursor", ["zzz", "YWJj", "MjAyNi0wMS0wMSBqb2I="])
def test_a_cursor_that_is_not_ours_is_refused(platform: Running, cursor: str) -> None:
    reply = platform.http.get("/api/training/jobs", params={"cursor": cursor})

    assert code(reply) == (422, "invalid_cursor")


def test_every_reply_has_an_id_and_a_clients_own_is_kept(platform: Running) -> None:
    made = platform.http.get("/api/health").headers["x-request-id"]
    kept = platform.http.get("/api/health", headers={"x-request-id": "mine-1"})
    unsafe = platform.http.get("/api/health", headers={"x-request-id": "a b;c"})

    assert REQUEST_ID.fullmatch(made)
    assert kept.headers["x-request-id"] == "mine-1"
    assert REQUEST_ID.fullmatch(unsafe.headers["x-request-id"])


def test_an_unexpected_failure_is_a_problem_with_an_id_and_the_server_goes_on(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    platform = start()
    platform.ready()
    job_id = platform.train()
    platform.finished("training", job_id)
    with platform.server.state.database.write() as session:
        session.connection().exec_driver_sql("UPDATE jobs SET request = '5'")

    reply = platform.http.get(f"/training/{job_id}")

    assert code(reply) == (500, "server_failure")
    assert "AttributeError" in caplog.text
    assert platform.http.get("/api/health").status_code == 200
