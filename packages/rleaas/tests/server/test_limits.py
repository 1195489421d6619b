"""Quotas and rates of organisations and keys, and what is refused before any route."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest
from rleaas.server.guard import Patience
from rleaas.server.rules.rates import Rates
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from .conftest import Running, Start

TOP = "rleaas_sk_top_0123456789"


def limited(platform: Running, **limits: float) -> httpx.Client:
    """A client with an admin's key of an organisation that has these limits."""
    made = platform.ok(
        platform.http.post(
            "/api/organisations", json={"name": "lab", "admin": "a@lab", "limits": limits}
        )
    )
    key = made["key"]
    assert isinstance(key, dict)
    return httpx.Client(
        base_url=platform.server.url,
        headers={"Authorization": f"Bearer {key['key']}"},
        trust_env=False,
    )


def register(http: httpx.Client, name: str) -> httpx.Response:
    return http.post("/api/custom-environments", json={"name": name, "source": "gym://CartPole-v1"})


def test_no_more_environments_are_registered_than_the_quota_allows(start: Start) -> None:
    platform = start(api_key=TOP)
    with limited(platform, environments=2) as http:
        names = [f"E{number}" for number in range(6)]
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(partial(register, http), names))
        refused = next(reply for reply in replies if reply.status_code != 200)
        registered = http.get("/api/environments").json()["count"]
        update = register(http, next(r.json()["name"] for r in replies if r.status_code == 200))

    assert sorted(reply.status_code for reply in replies) == [200, 200, 402, 402, 402, 402]
    assert (refused.json()["code"], registered) == ("quota_exceeded", 2)
    assert update.status_code == 200  # nothing is added
    assert platform.http.get("/api/environments").json()["count"] == 0


def test_a_quota_of_jobs_counts_those_that_have_not_ended(start: Start) -> None:
    platform = start(api_key=TOP, plan=[("until_cancelled", {})])
    with limited(platform, jobs=1) as http:
        register(http, "E")
        http.get("/api/environments/E/endpoint")
        first = http.post("/train/E", json={})
        second = http.post("/train/E", json={})
        http.post(f"/api/training/jobs/{first.json()['job_id']}/cancel")
        platform.finished("training", first.json()["job_id"])
        third = http.post("/train/E", json={})

    assert (first.status_code, second.status_code, third.status_code) == (200, 402, 200)


def test_a_job_fails_when_its_checkpoints_find_no_room(start: Start) -> None:
    plan = [("checkpoint", {"episode": 1, "avg_reward": 1.0, "content": "x" * 100})]
    platform = start(api_key=TOP, plan=plan)
    with limited(platform, storage_bytes=99) as http:
        register(http, "E")
        http.get("/api/environments/E/endpoint")
        job_id = http.post("/train/E", json={}).json()["job_id"]
        status = platform.finished("training", job_id)
        kept = http.get(f"/training/{job_id}").json()["checkpoints"]

    assert status.startswith("failed")
    assert "402" in status
    assert kept == []
    folder = platform.server.state.settings.data_dir / "checkpoints"
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_an_upload_that_finds_no_room_leaves_no_file(start: Start) -> None:
    platform = start(api_key=TOP)
    with limited(platform, storage_bytes=9) as http:
        replies = [
            http.post(
                "/api/data-assets?name=a", content=b"x" * size, headers={"content-type": "x/y"}
            )
            for size in (10, 9)
        ]
    assert [reply.status_code for reply in replies] == [402, 200]

    folder = platform.server.state.settings.data_dir / "assets"
    assert [path.stat().st_size for path in folder.rglob("*") if path.is_file()] == [9]


def test_the_tighter_of_the_limits_of_key_and_organisation_counts(start: Start) -> None:
    platform = start(api_key=TOP)
    with limited(platform, environments=5) as http:
        key = http.post("/api/keys", json={"name": "k", "limits": {"environments": 1}}).json()
        headers = {"Authorization": f"Bearer {key['key']}"}
        codes = [
            http.post(
                "/api/custom-environments",
                json={"name": f"E{n}", "source": "custom"},
                headers=headers,
            ).status_code
            for n in range(2)
        ]
    assert codes == [200, 402]


def test_whoever_asks_too_often_is_told_when_to_come_back(start: Start) -> None:
    platform = start(api_key=TOP)
    with limited(platform, requests_per_minute=3) as http:
        replies = [http.get("/api/me") for _ in range(5)]
        another = http.post("/api/keys", json={"name": "k"})  # of the same organisation

    assert [reply.status_code for reply in replies] == [200, 200, 200, 429, 429]
    assert replies[-1].json()["code"] == "rate_limited"
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 20
    assert another.status_code == 429
    assert platform.http.get("/api/me").status_code == 200


def test_a_bucket_fills_up_again_at_an_even_pace() -> None:
    rates = Rates()
    limits = [("key", 2.0), ("organisation", 60.0)]

    assert [rates.take(limits, 100.0) for _ in range(3)] == [None, None, 30.0]
    assert rates.take(limits, 129.0) == 1.0
    assert rates.take(limits, 130.0) is None
    assert rates.take([("organisation", 60.0)], 130.0) is None
    assert rates.take([("nothing", 0.0)], 130.0) == 3600.0


def test_every_reply_keeps_browsers_in_check_and_none_invites_other_sites(
    platform: Running,
) -> None:
    for reply in (
        platform.http.get("/api"),
        platform.http.get("/nowhere"),
        platform.http.request(
            "OPTIONS",
            "/api/environments",
            headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"},
        ),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example:8000"}],
)
def test_pages_of_other_sites_change_nothing_at_an_open_server(
    platform: Running, headers: dict[str, str]
) -> None:
    reply = platform.http.post(
        "/api/custom-environments", json={"name": "E", "source": "custom"}, headers=headers
    )

    assert (reply.status_code, reply.json()["code"]) == (403, "cross_site")
    assert platform.http.get("/api/environments").json()["count"] == 0


def test_our_own_pages_and_other_names_of_this_machine_are_let_in(platform: Running) -> None:
    port = urlsplit(platform.server.url).port
    here = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
    body = {"name": "E", "source": "custom"}

    assert platform.http.post("/api/custom-environments", json=body, headers=here).is_success


def test_a_body_that_does_not_go_on_is_not_waited_for() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def unheard(message: Message) -> None:
        raise AssertionError(message)

    patient = Patience(app, seconds=0.01)
    with pytest.raises(HTTPException) as refused:
        asyncio.run(patient({"type": "http", "method": "POST"}, never, unheard))
    assert refused.value.status_code == 408


def test_a_client_that_has_sent_all_is_waited_for_as_long_as_it_likes(platform: Running) -> None:
    parts = urlsplit(platform.server.url)
    assert parts.hostname is not None
    with socket.create_connection((parts.hostname, parts.port or 0), timeout=5) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 200")
