import inspect
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from rlcore import (
    ConfigurationError,
    PlatformTimeout,
    PlatformUnreachable,
    RLEaaSError,
    TrainingJobFailed,
    UnexpectedReply,
)
from rleaas import AsyncClient, Client
from rleaas.testing import Answers, reply

RECORD = {"id": 1, "name": "E", "status": "ready"}


def scripted(answers: Answers, **settings: Any) -> Client:
    return Client(base_url="http://localhost:1/v1", transport=answers.transport, **settings)


def scripted_async(answers: Answers, **settings: Any) -> AsyncClient:
    return AsyncClient(base_url="http://localhost:1/v1", transport=answers.transport, **settings)


def environment() -> Answers:
    return Answers({"GET /v1/api/environments/E": reply(RECORD)})


def log() -> Answers:
    return Answers(
        {
            "GET /v1/training/j": reply({"job_id": "j", "status": "failed", "error": "boom"}),
            "GET /v1/api/training/jobs/j/log-page": [
                reply({"lines": ["a", "b"], "cursor": 2, "done": False}),
                reply({"lines": ["c"], "cursor": 3, "done": True}),
            ],
        }
    )


def raising(error: Exception) -> Callable[[httpx.Request], Any]:
    def answer(request: httpx.Request) -> Any:
        raise error

    return answer


FAILURES = [
    (httpx.ConnectError("refused"), PlatformUnreachable, "refused"),
    (httpx.ConnectTimeout("slow"), PlatformUnreachable, "slow"),
    (httpx.ReadError("reset"), PlatformUnreachable, "reset"),
    (httpx.RemoteProtocolError("cut"), PlatformUnreachable, "cut"),
    (httpx.ReadTimeout(""), PlatformTimeout, "within 30 s"),
    (httpx.UnsupportedProtocol("ftp"), ConfigurationError, "ftp"),
    (httpx.DecodingError("gzip"), UnexpectedReply, "gzip"),
]


def test_blocking_a_method_returns_when_it_is_done() -> None:
    with scripted(environment()) as client:
        assert client.Environment.get("E").name == "E"


@pytest.mark.anyio
async def test_awaiting_a_method_is_awaited_and_so_are_those_of_its_handle() -> None:
    answers = environment()
    async with scripted_async(answers) as client:
        env = await client.Environment.get("E")
        assert await env.wait_until_ready(timeout=0) is env

    assert [request.url.path for request in answers.asked] == ["/v1/api/environments/E"] * 2


@pytest.mark.anyio
async def test_an_application_in_memory_is_a_platform() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        body = b'{"version": "%s"}' % scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    transport = httpx.ASGITransport(application)
    async with AsyncClient(base_url="http://app", transport=transport) as client:
        assert (await client.ping()).version == "/api"


def test_methods_say_what_they_are_to_tools() -> None:
    with scripted(environment()) as client:
        get = client.Environment.get
        assert inspect.getdoc(get) == inspect.getdoc(type(client.Environment).get)
        assert list(inspect.signature(get).parameters) == ["identifier"]
        assert get.__name__ == "get"
        assert not inspect.iscoroutinefunction(get)
    assert inspect.iscoroutinefunction(scripted_async(environment()).Environment.get)


def test_blocking_a_stream_is_an_iterator() -> None:
    with scripted(log()) as client:
        lines = client.TrainingJob.get("j").stream_logs()
        assert isinstance(lines, Iterator)
        assert [next(lines), next(lines), next(lines)] == ["a", "b", "c"]
        with pytest.raises(TrainingJobFailed, match="boom"):
            next(lines)


@pytest.mark.anyio
async def test_awaiting_a_stream_is_an_async_iterator() -> None:
    async with scripted_async(log()) as client:
        lines = (await client.TrainingJob.get("j")).stream_logs()
        assert isinstance(lines, AsyncIterator)
        assert [await anext(lines), await anext(lines), await anext(lines)] == ["a", "b", "c"]
        with pytest.raises(TrainingJobFailed, match="boom"):
            await anext(lines)


@pytest.mark.parametrize(("foreign", "ours", "text"), FAILURES)
def test_blocking_a_failure_of_the_network_is_one_of_ours(
    foreign: Exception, ours: type[RLEaaSError], text: str
) -> None:
    answers = Answers({"GET /v1/api": raising(foreign)})
    with scripted(answers, retries=1) as client, pytest.raises(ours, match=text) as caught:
        client.ping()

    assert caught.value.__cause__ is foreign


@pytest.mark.anyio
@pytest.mark.parametrize(("foreign", "ours", "text"), FAILURES)
async def test_awaiting_a_failure_of_the_network_is_one_of_ours(
    foreign: Exception, ours: type[RLEaaSError], text: str
) -> None:
    answers = Answers({"GET /v1/api": raising(foreign)})
    async with scripted_async(answers, retries=1) as client:
        with pytest.raises(ours, match=text) as caught:
            await client.ping()

    assert caught.value.__cause__ is foreign


# defect: T-3
def test_nobody_there_is_said_with_the_address_and_what_to_do() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        with (
            Client(base_url=url, retries=1) as client,
            pytest.raises(PlatformUnreachable, match="rleaas serve") as caught,
        ):
            client.ping()

    assert url in str(caught.value)


@pytest.mark.anyio
async def test_a_closed_client_says_so() -> None:
    blocking, awaiting = scripted(environment()), scripted_async(environment())
    blocking.close()
    await awaiting.aclose()

    with pytest.raises(ConfigurationError, match="the client is closed"):
        blocking.ping()
    with pytest.raises(ConfigurationError, match="the client is closed"):
        await awaiting.ping()


# defect: T-9
def test_every_request_says_who_asks_and_with_what() -> None:
    answers = environment()
    with scripted(answers, api_key="rleaas_sk_1") as client:
        client.Environment.get("E")

    (request,) = answers.asked
    assert request.headers["authorization"] == "Bearer rleaas_sk_1"
    assert request.headers["accept"] == "application/json"
    assert request.headers["user-agent"].startswith("rleaas/2.")


def test_without_a_key_nobody_is_said_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLEAAS_API_KEY", "")
    answers = environment()
    with scripted(answers) as client:
        client.Environment.get("E")

    assert "authorization" not in answers.asked[0].headers


@pytest.mark.parametrize("url", ["http://10.0.0.1", "http://example.com"])
def test_a_key_over_plain_http_to_another_host_is_warned_of(url: str) -> None:
    with pytest.warns(UserWarning, match="readable on the way"):
        Client(api_key="rleaas_sk_1", base_url=url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1]", "https://example.com"])
def test_a_key_to_this_host_or_over_https_is_not_warned_of(url: str) -> None:
    Client(api_key="rleaas_sk_1", base_url=url).close()


@pytest.mark.parametrize("body", [float("nan"), {1, 2}, object()])
def test_a_body_that_is_not_json_is_refused_before_it_is_sent(body: object) -> None:
    answers = environment()
    with scripted(answers) as client, pytest.raises(ConfigurationError, match="as JSON"):
        client.post("/api/x", json={"value": body})

    assert answers.asked == []


@pytest.mark.parametrize("path", ["api/x", "", "//evil.example/x", "http://evil.example/x"])
def test_a_raw_path_stays_on_the_platform(path: str) -> None:
    with scripted(environment()) as client, pytest.raises(ConfigurationError, match="path"):
        client.get(path)


def test_a_raw_request_returns_what_came() -> None:
    answers = Answers(
        {
            "POST /v1/api/x": reply({"made": [1]}),
            "PUT /v1/api/x": reply(3),
            "PATCH /v1/api/x": reply("text"),
            "DELETE /v1/api/x": reply(b"", 204),
            "GET /v1/api/x": reply([]),
        }
    )
    with scripted(answers) as client:
        assert client.post("/api/x", json={"a": 1}, params={"q": "a&b"}) == {"made": [1]}
        assert client.put("/api/x") == 3
        assert client.patch("/api/x") == "text"
        assert client.delete("/api/x") is None
        assert client.get("/api/x") == []

    post = answers.asked[0]
    assert (post.content, post.url.query) == (b'{"a":1}', b"q=a%26b")
    assert answers.asked[1].content == b""


def test_progress_is_written_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    job = {"job_id": "j", "status": "completed", "progress": 100}
    answers = Answers({"GET /v1/training/j": reply(job)})
    with scripted(answers) as client:
        waited = client.TrainingJob.get("j")
        waited.wait_until_complete()
        assert capsys.readouterr() == ("", "")

        waited.wait_until_complete(progress=True)
        assert capsys.readouterr() == ("", "training job 'j': completed 100 %\n")


def test_on_a_terminal_progress_is_one_line_that_is_left_behind(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    running, done = ({"job_id": "j", "status": s} for s in ("running", "completed"))
    answers = Answers({"GET /v1/training/j": [reply(running), reply(running), reply(done)]})
    with scripted(answers) as client:
        client.TrainingJob.get("j").wait_until_complete(poll_interval=0.001)

    written = capsys.readouterr().err
    assert written.count("\r\x1b[2K") == 2
    assert written.endswith("completed 0 % · 0:00\n")
    assert written.count("\n") == 1


# defect: T-9
@pytest.mark.anyio
async def test_a_client_with_another_timeout_uses_it_for_every_call_over_the_same_pool() -> None:
    answers = [
        Answers(
            {
                "GET /v1/api/environments/E": reply(RECORD),
                "POST /v1/api/environments/E/stop": reply(RECORD),
            }
        )
        for _ in range(2)
    ]
    with scripted(answers[0], timeout=7) as client:
        client.with_timeout(2).Environment.get("E").stop()
        client.Environment.get("E")
    async with scripted_async(answers[1], timeout=7) as client_:
        await (await client_.with_timeout(2).Environment.get("E")).stop()
        await client_.Environment.get("E")

    for one in answers:
        used = [request.extensions["timeout"]["read"] for request in one.asked]
        assert used == [2, 2, 2, 7]


@pytest.mark.anyio
async def test_closing_a_client_closes_the_one_with_another_timeout() -> None:
    blocking, awaiting = scripted(environment()), scripted_async(environment())
    others = blocking.with_timeout(2), awaiting.with_timeout(2)
    blocking.close()
    await awaiting.aclose()

    with pytest.raises(ConfigurationError, match="the client is closed"):
        others[0].ping()
    with pytest.raises(ConfigurationError, match="the client is closed"):
        await others[1].ping()
    assert others[0].settings.source("timeout") == "with_timeout"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    with scripted(environment()) as client, pytest.raises(ConfigurationError, match="timeout"):
        client.with_timeout(seconds)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), "x", -1, 10**400, True])
def test_a_stream_of_no_number_of_seconds_is_refused_before_anything_is_sent(timeout: Any) -> None:
    answers = Answers({"GET /v1/training/j": reply({"job_id": "j", "status": "running"})})
    with scripted(answers) as client:
        job = client.TrainingJob.get("j")
        streams = [
            client.events(timeout=timeout),
            job.events(timeout=timeout),
            job.stream_logs(timeout=timeout),
        ]
        for stream in streams:
            with pytest.raises(ConfigurationError, match="is not a number of seconds"):
                next(stream)

    assert len(answers.asked) == 1


def test_a_timeout_of_a_raw_call_is_used_for_it() -> None:
    answers = Answers({"GET /v1/api/x": reply([])})
    with scripted(answers, timeout=7) as client:
        client.get("/api/x")
        client.get("/api/x", timeout=2)

    assert [request.extensions["timeout"]["read"] for request in answers.asked] == [7, 2]


# defect: X-3
@pytest.mark.anyio
async def test_a_wait_that_is_awaited_stops_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError(f"the loop was stopped for {seconds} s")

    monkeypatch.setattr("time.sleep", sleep)
    running = {"job_id": "j", "status": "running"}
    answers = Answers(
        {
            "GET /v1/training/j": [
                reply(running),
                reply(running),
                reply({**running, "status": "completed"}),
            ]
        }
    )
    async with scripted_async(answers) as client:
        job = await client.TrainingJob.get("j")
        done = await job.wait_until_complete(poll_interval=0.01, progress=False)

    assert done.status == "completed"
    assert len(answers.asked) == 3
