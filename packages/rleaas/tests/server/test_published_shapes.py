"""Requests as the published client sends them, in the forms of facts/rleaas-contract.md."""

from typing import cast

import httpx
import pytest

from .conftest import Running, Start

CREATE: dict[str, object] = {
    "name": "FinSim Prod v1",
    "description": "Loans",
    "tools": [{"name": "approve", "method": "POST", "resource": "loans"}],
    "scenarios": [{"name": "s1", "tier": 1, "max_steps": 20}],
    "verifiers": ["verif_rule_0a1b2c3d"],
    "simulations": ["loans"],
    "owner": "",
    "sdk": "gradio",
    "compute": "cpu-basic",
    "license": "",
    "source": "custom",
    "vertical": "FinSim",
    "category": "FinSim",
    "domain": "finance",
    "config": {"org_size": "large"},
    "tags": ["aml"],
    "infrastructure": {"provider": "Azure", "region": "eastus", "azure": {"vm_size": "D4"}},
    "infra": {"provider": "Azure", "region": "eastus", "cpu": None, "scaling": "", "vm_size": "D4"},
    "verifier_configs": {"verif_rule_0a1b2c3d": {"threshold": "0.9"}},
    "repo": {
        "provider": "github",
        "repoUrl": "https://example.com/r",
        "branch": "main",
        "contextPath": "",
        "authType": "pat",
        "username": "",
        "token": "ghp_secret",
    },
}


def test_a_published_create_is_kept_whole_except_for_the_secret(platform: Running) -> None:
    made = platform.ok(platform.http.post("/api/custom-environments", json=CREATE))
    got = platform.ok(platform.http.get("/api/environments/FinSim%20Prod%20v1"))

    # Its vertical is a built-in world, which is being served.
    assert made["status"] == "registered"
    assert got["status"] in ("registered", "provisioning", "ready")
    for field in ("infrastructure", "tools", "verifier_configs", "domain", "tags", "category"):
        assert got[field] == CREATE[field]
    assert (got["tool_count"], got["scenario_count"], got["id"]) == (19, 1, 1)
    assert "ghp_secret" not in str(got)


def test_ping_tells_status_version_message_and_endpoints(platform: Running) -> None:
    assert set(platform.ok(platform.http.get("/api"))) == {
        "status",
        "version",
        "message",
        "endpoints",
    }


def test_literal_empty_paging_parameters_are_no_paging(platform: Running) -> None:
    platform.ok(platform.http.post("/api/custom-environments", json=CREATE))

    page = platform.ok(
        platform.http.get("/api/environments", params={"limit": "0", "cursor": "", "offset": "0"})
    )

    assert page["count"] == 1


def test_published_training_reads_every_field_of_its_handle(platform: Running) -> None:
    platform.ready()
    platform.ok(platform.http.post("/api/agents", json={"id": "agent_0a1b2c3d", "name": "mine"}))
    body: dict[str, object] = {
        "algorithm": "PPO",
        "num_episodes": 5,
        "max_steps": 100,
        "config": {"learning_rate": 0.001, "checkpoint_interval": 5, "algorithm": "PPO"},
        "model": "agent_0a1b2c3d",
        "run_name": "run",
    }

    made = platform.ok(platform.http.post("/train/1", json=body))

    for field in ("job_id", "status", "environment_name", "message", "algorithm", "progress"):
        assert made[field] is not None
    assert (made["model"], made["run_name"]) == ("agent_0a1b2c3d", "run")
    results = cast("dict[str, object]", made["results"])
    assert {"avg_reward", "success_rate", "current_tier"} <= set(results)
    assert "model_metadata" not in made
    assert "model_path" not in made


def test_the_published_default_algorithm_is_taken(platform: Running) -> None:
    platform.ready()

    reply = platform.http.post(
        "/train/CartPole",
        json={"algorithm": "GRPO", "num_episodes": 100, "max_steps": 1000, "config": {}},
    )

    assert platform.ok(reply)["algorithm"] == "GRPO"


@pytest.mark.parametrize("route", ["/api/training/jobs/{}/cancel", "/api/evaluations/{}/cancel"])
def test_a_cancel_has_no_body_and_no_content_type(platform: Running, route: str) -> None:
    request = httpx.Request("POST", platform.server.url + route.format("x"))
    assert "content-type" not in request.headers

    assert platform.http.send(request).status_code == 404


def test_posts_without_a_body_are_accepted(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})])
    platform.ready()
    job_id = platform.train()

    cancelled = platform.ok(platform.http.post(f"/api/training/jobs/{job_id}/cancel"))
    gone = platform.ok(platform.http.post("/api/environments/CartPole/deprovision"))

    assert (cancelled["status"], cancelled["job_id"]) == ("cancelled", job_id)
    assert gone["status"] == "deprovisioned"


def test_the_older_delete_still_works(platform: Running) -> None:
    platform.register("E", source="custom")

    assert platform.ok(platform.http.delete("/api/environments/E"))["status"] == "deleted"


def test_no_reply_is_a_redirect_or_empty(platform: Running) -> None:
    for path in ("/api/", "/api/environments/", "/training/", "/api/rollouts//"):
        reply = platform.http.get(path)
        assert reply.status_code == 404
        assert reply.json()["code"]
