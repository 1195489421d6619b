import time

import httpx
import pytest
from rlcore import ConfigurationError, mint_token
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.settings import require_safe_host

from .conftest import Running, Start

KEY = "rleaas_sk_test_0123456789"


def test_without_a_key_everybody_may_ask_with_any_bearer(platform: Running) -> None:
    reply = platform.http.get("/api", headers={"Authorization": "Bearer whatever"})

    assert platform.ok(reply)["status"] == "ok"


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic x", "Bearer"])
def test_with_a_key_nobody_else_may_ask(start: Start, header: str | None) -> None:
    platform = start(api_key=KEY)

    reply = httpx.get(
        f"{platform.server.url}/api/environments",
        headers={"Authorization": header} if header else {},
        trust_env=False,
    )

    assert reply.status_code == 401
    assert reply.json()["code"] == "authentication"
    assert reply.headers["www-authenticate"] == "Bearer"


def test_the_key_opens_and_health_needs_none(start: Start) -> None:
    platform = start(api_key=KEY)

    assert platform.http.get("/api/environments").status_code == 200
    assert httpx.get(f"{platform.server.url}/api/health", trust_env=False).status_code == 200


def test_workers_do_their_job_on_a_server_with_a_key(start: Start) -> None:
    platform = start(api_key=KEY)
    platform.ready()

    assert platform.finished("training", platform.train()) == "completed"


def worker(platform: Running, job_id: str, *, seconds: float = 60.0) -> httpx.Client:
    token = mint_token(
        platform.server.state.keys.workers,
        subject=worker_subject("training", job_id),
        expires_at=time.time() + seconds,
    )
    return httpx.Client(
        base_url=platform.server.url,
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )


def test_a_workers_token_is_good_for_its_own_job_only(start: Start) -> None:
    platform = start(api_key=KEY, plan=[("until_cancelled", {})])
    platform.ready()
    mine, other = platform.train(), platform.train()

    with worker(platform, mine) as http:
        own = http.get(f"/api/worker/training/{mine}/assignment")
        foreign = http.get(f"/api/worker/training/{other}/assignment")
        endpoint = http.get("/api/environments/CartPole/endpoint")
        listing = http.get("/api/environments")
        start_job = http.post("/train/CartPole", json={})

    assert own.json()["environment"]["name"] == "CartPole"
    assert (foreign.status_code, foreign.json()["code"]) == (403, "permission_denied")
    assert endpoint.status_code == 200
    assert (listing.status_code, start_job.status_code) == (401, 401)


def test_an_expired_or_missing_worker_token_is_refused(platform: Running) -> None:
    with worker(platform, "job_x", seconds=-1) as http:
        expired = http.get("/api/worker/training/job_x/assignment")
    missing = platform.http.get("/api/worker/training/job_x/assignment")

    assert (expired.status_code, missing.status_code) == (401, 401)
    assert "expired" in expired.json()["detail"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", "::"])
def test_a_public_host_without_a_key_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="without a key"):
        require_safe_host(host, has_key=False, allow_insecure=False)

    require_safe_host(host, has_key=True, allow_insecure=False)
    require_safe_host(host, has_key=False, allow_insecure=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.9"])
def test_a_loopback_host_needs_no_key(host: str) -> None:
    require_safe_host(host, has_key=False, allow_insecure=False)
