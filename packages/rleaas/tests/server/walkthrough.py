"""A walk over every route of a real server: what is asked, and what it answers.

The examples of the API's description are recorded here; see `test_openapi_routes`.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import httpx
from rlcore import mint_token
from rleaas.evaluation.rollouts import RolloutRecord, RolloutWriter, StepRecord
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.store.tables import RolloutRow
from sqlalchemy import select

from .archives import policy_file, state_file
from .conftest import Running

# JSON has no narrower type than Any.
Json = Any
VERIFIER = {
    "name": "Approved",
    "type": "rule-based",
    "logic": {"conditions": ["state.approved == True"]},
}
STEPS = [{"observation": [0.0], "action": 1, "reward": 1.0}]


@dataclass(frozen=True, slots=True)
class Told:
    """One answer, and the question."""

    path: Mapping[str, str]
    query: Mapping[str, object]
    body: Json
    status: int
    reply: httpx.Response


@dataclass
class Walk:
    """Asks, and keeps what was said; each POST carries a key and is sent twice."""

    platform: Running
    slowly: threading.Event
    told: dict[str, Told] = field(default_factory=dict[str, Told])
    repeated: dict[str, tuple[int, Json, Json]] = field(
        default_factory=dict[str, tuple[int, Json, Json]]
    )

    def ask(
        self,
        label: str,
        body: Json = None,
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        expect: int = 200,
        again: bool = True,
        **path: str,
    ) -> Json:
        method, template = label.split(" ")
        place = template.format(**{name: quote(value, safe="") for name, value in path.items()})
        key = {"idempotency-key": f"walk {label} {len(self.told)}"} if method == "POST" else {}

        def send(extra: Mapping[str, str]) -> httpx.Response:
            return self.platform.http.request(
                method,
                place,
                params=None if query is None else dict(query),
                json=body,
                content=content,
                headers={**(headers or {}), **key, **extra},
            )

        reply = send({})
        assert reply.status_code == expect, (label, reply.status_code, reply.text)
        self.told.setdefault(label, Told(path, query or {}, body, expect, reply))
        is_json = reply.headers.get("content-type", "").startswith("application/json")
        if key and again:
            second = send({})
            self.repeated[label] = (second.status_code, reply.json(), second.json())
        return reply.json() if is_json else reply.text


def walk(platform: Running, site: str, slowly: threading.Event) -> Walk:
    """Ask every route.

    Args:
        platform: the server.
        site: what answers whatever the server asks it.
        slowly: set while workers are to go on until they are cancelled.
    """
    one = Walk(platform, slowly)
    _people(one)
    _environments(one)
    _catalogue(one)
    job = _work(one, site)
    _records(one, job, site)
    _deployments(one, site)
    _goodbye(one)
    return one


def _people(one: Walk) -> None:
    for path in ("/api", "/healthz", "/readyz", "/metrics", "/api/health", "/api/me"):
        one.ask(f"GET {path}")
    one.ask("GET /api/sso-status")
    key = one.ask("POST /api/keys", {"name": "ci", "scopes": ["read"]}, again=False)
    one.ask("GET /api/keys")
    one.ask("DELETE /api/keys/{key_id}", key_id=key["id"])
    one.ask("PUT /api/profile", {"full_name": "Ada Lovelace", "title": "Researcher"})
    one.ask("GET /api/profile")
    lab = {"name": "lab", "admin": "ada@lab.example", "limits": {"jobs": 4}}
    one.ask("POST /api/organisations", lab, again=False)
    one.ask("GET /api/organisations")
    one.ask("GET /api/organisations/{organisation}", organisation="lab")
    limits = {"limits": {"jobs": 8, "requests_per_minute": 600}}
    one.ask("PUT /api/organisations/{organisation}", limits, organisation="lab")
    member = {"email": "grace@lab.example", "role": "member"}
    one.ask("PUT /api/organisations/{organisation}/members", member, organisation="lab")
    one.ask("GET /api/organisations/{organisation}/members", organisation="lab")
    one.ask(
        "DELETE /api/organisations/{organisation}/members/{user}",
        organisation="lab",
        user="grace@lab.example",
    )


def _environments(one: Walk) -> None:
    made = {
        "name": "CartPole-Prod",
        "source": "gym://CartPole-v1",
        "description": "Balance a pole",
        "vertical": "DevSim",
        "tags": ["control"],
    }
    one.ask("POST /api/custom-environments", made)
    other = {"name": "Copy", "source": "gym://CartPole-v1"}
    one.ask("POST /api/custom-environments", other)
    env = "CartPole-Prod"
    one.ask("GET /api/environments/{env}/endpoint", env=env)
    one.ask("GET /api/environments", query={"limit": 10})
    one.ask("GET /api/environments/{env}", env=env)
    one.ask("PUT /api/environments/{env}", {"config": {"render": False}}, env=env)
    one.ask("GET /api/environments/{env}/versions", env=env)
    merge = {"access_pattern": "full", "approval_mode": "auto_grant"}
    one.ask("PUT /api/custom-environments/{env}", merge, env=env)
    one.ask("PUT /api/environments/{env}/system", {"system": "gymnasium"}, env=env)
    one.ask("PUT /api/environments/{env}/category", {"category": "DevSim"}, env=env)
    one.ask("POST /api/environments/{env}/start", env=env)
    one.ask("POST /api/environments/{env}/stop", env=env)
    one.ask("GET /environments/{env}/risk-report", env=env)
    one.ask("GET /api/environments/{env}/public-urls", env=env)
    one.ask("GET /api/environment/{env}/analyze", env=env)
    checked = {"repoUrl": "https://git.invalid/team/env.git", "branch": "main"}
    one.ask("POST /api/repo/validate", checked)
    saved = {**checked, "provider": "github", "authType": "pat", "token": "a token"}
    one.ask("PUT /api/environments/{env}/repo", saved, env=env)
    one.ask("GET /api/environments/{env}/repo", env=env)
    one.ask("POST /api/environments/{env}/repo/validate", env=env)
    asset = one.ask(
        "POST /api/data-assets",
        query={"name": "patients.csv"},
        content=b"id,age\n1,34\n",
        headers={"content-type": "text/csv"},
    )
    one.ask("GET /api/data-assets")
    one.ask("GET /api/data-assets/{asset_id}", asset_id=asset["id"])
    one.ask("GET /api/data-assets/{asset_id}/file", asset_id=asset["id"])
    attached = {"data_asset_id": asset["id"], "injection_config": {"entity_type": "patient"}}
    one.ask("POST /api/environments/{env}/data", attached, env=env)
    one.ask("GET /api/environments/{env}/data", env=env)
    one.ask("DELETE /api/environments/{env}/data/{asset_id}", env=env, asset_id=asset["id"])
    one.ask("DELETE /api/data-assets/{asset_id}", asset_id=asset["id"])


def _catalogue(one: Walk) -> None:
    env = "CartPole-Prod"
    tool: Json = {
        "id": "tool_push",
        "name": "push",
        "description": "Push the cart",
        "parameters": {},
    }
    one.ask("POST /api/tools", {"tools": [tool], "environment": env})
    one.ask("GET /api/tools", query={"environment": env})
    one.ask("GET /api/tools/{tool_id}", tool_id="tool_push")
    one.ask("PUT /api/tools/{tool_id}", {"description": "Push it left"}, tool_id="tool_push")
    one.ask("DELETE /api/tools/{tool_id}", tool_id="tool_push")
    one.ask("POST /api/verifiers", {**VERIFIER, "id": "verif_1", "environment": env})
    one.ask("GET /api/verifiers", query={"environment": env})
    one.ask("GET /api/verifiers/{verifier_id}", verifier_id="verif_1")
    changed = {"description": "The request was approved"}
    one.ask("PUT /api/verifiers/{verifier_id}", changed, verifier_id="verif_1")
    one.ask("GET /api/verifiers/{verifier_id}/versions", verifier_id="verif_1")
    one.ask("PATCH /api/verifiers/{verifier_id}/disable", verifier_id="verif_1")
    one.ask("PUT /api/verifiers/{verifier_id}/enabled", {"enabled": True}, verifier_id="verif_1")
    copy = one.ask("POST /api/verifiers/{verifier_id}/duplicate", verifier_id="verif_1")
    judged: Json = {"state": {"approved": True}, "trajectory": []}
    one.ask(
        "POST /api/verifiers/{verifier_id}/test",
        judged,
        verifier_id="verif_1",
    )
    episodes = {
        "good": [{"trajectory": [{"tool": "run_aml_check"}]}],
        "bad": [{"state": {"transfer_amount": 300_000}}],
        "repeats": 1,
    }
    one.ask("POST /api/verifiers/{verifier_id}/audit", episodes, verifier_id="verif_1")
    one.ask("GET /api/verifiers/{verifier_id}/audits", verifier_id="verif_1")
    weight = {"verifier_id": "verif_1", "weight": 0.5}
    one.ask("POST /api/environments/{env}/verifiers", weight, env=env)
    one.ask("GET /api/environments/{env}/verifiers", env=env)
    one.ask("POST /api/environments/{env}/clone-verifiers", {"source": env}, env="Copy")
    one.ask(
        "DELETE /api/environments/{env}/verifiers/{verifier_id}", env=env, verifier_id="verif_1"
    )
    one.ask("DELETE /api/verifiers/{verifier_id}", verifier_id=copy["id"])
    scenario = {"name": "Wind", "tier": 2, "task_prompt": "Hold it for 200 steps", "tags": ["wind"]}
    held = one.ask("POST /api/environments/{env}/scenarios", scenario, env=env)
    one.ask("GET /api/environments/{env}/scenarios", env=env)
    one.ask("POST /api/environments/{env}/clone-scenarios", {"source": env}, env="Copy")
    one.ask("POST /api/scenarios", {**scenario, "id": "scen_1", "environment": env})
    one.ask("GET /api/scenarios")
    one.ask("GET /api/scenarios/{scenario_id}", scenario_id="scen_1")
    one.ask("PATCH /api/scenarios/{scenario_id}", {"tier": 3}, scenario_id="scen_1")
    suite = {"name": "Held out", "scenario_ids": [held["id"]], "purpose": "evaluation"}
    kept = one.ask("POST /api/scenario-suites", {**suite, "environment": env})
    one.ask("GET /api/scenario-suites")
    one.ask("GET /api/scenario-suites/{suite_id}", suite_id=kept["id"])
    one.ask("PATCH /api/scenario-suites/{suite_id}", {"name": "Rest"}, suite_id=kept["id"])
    one.ask("DELETE /api/scenario-suites/{suite_id}", suite_id=kept["id"])
    one.ask("DELETE /api/scenarios/{scenario_id}", scenario_id="scen_1")
    one.ask("GET /api/scenario-library")
    one.ask("GET /api/scenario-library/{library_id}", library_id="finsim_wire_001")


def _work(one: Walk, site: str) -> str:
    env, platform = "CartPole-Prod", one.platform
    asked = {"algorithm": "PPO", "num_episodes": 100, "seed": 7, "run_name": "first try"}
    one.ask("POST /train/{env}/check", asked, env=env)
    job = str(one.ask("POST /train/{env}", asked, env=env)["job_id"])
    assert platform.finished("training", job) == "completed"
    checkpoint = f"ckpt_{job}_7"
    one.ask("GET /training/{job_id}", job_id=job)
    one.ask("GET /api/training/jobs", query={"limit": 10})
    one.ask("GET /api/training/queue")
    for what in ("metrics", "logs", "log-page", "checkpoints"):
        one.ask(f"GET /api/training/jobs/{{job_id}}/{what}", job_id=job)
    one.ask("GET /api/checkpoints/{checkpoint_id}", checkpoint_id=checkpoint)
    one.ask("GET /api/checkpoints/{checkpoint_id}/file", checkpoint_id=checkpoint)
    one.ask("GET /api/checkpoints/{checkpoint_id}/export", checkpoint_id=checkpoint)
    verdict = {"decision": "yes", "comments": "Steady to the end"}
    one.ask("POST /human-eval/{job_id}", verdict, job_id=job)
    agent = {"id": "agent_1", "name": "Pilot", "model_ref": checkpoint, "framework": "custom"}
    one.ask("POST /api/agents", agent)
    one.ask("GET /api/agents")
    one.ask("GET /api/agents/{agent_id}", agent_id="agent_1")
    one.ask("PUT /api/agents/{agent_id}/configure", {"trainable": False}, agent_id="agent_1")
    one.ask("GET /api/agents/{agent_id}/versions", agent_id="agent_1")
    one.ask("POST /api/agents/{agent_id}/rollback", {"version": 1}, agent_id="agent_1")
    one.ask("POST /api/agents/{agent_id}/validate", agent_id="agent_1")
    dry = {"environment_id": env, "episodes": 3}
    one.ask("POST /api/agents/{agent_id}/dry-run", dry, agent_id="agent_1")
    one.ask("GET /api/agents/{agent_id}/dry-runs", agent_id="agent_1")
    placed = {"environment_id": env, "label": "champion"}
    one.ask("POST /api/agents/{agent_id}/deploy", placed, agent_id="agent_1")
    one.ask("GET /api/agents/{agent_id}/deployments", agent_id="agent_1")
    wanted = {"checkpoint_id": checkpoint, "format": "pytorch"}
    one.ask("POST /api/agents/export", wanted)
    one.ask("POST /api/agents/{agent_id}/export", wanted, agent_id="agent_1")
    played = {"agent_checkpoint_id": checkpoint, "environment_name": env, "episodes": 3}
    first = one.ask("POST /api/evaluations", played)["id"]
    second = one.ask("POST /api/evaluations", {**played, "base_seed": 9}, again=False)["id"]
    for evaluation in (first, second):
        assert platform.finished("evaluation", evaluation) == "completed"
    one.ask("GET /api/evaluations")
    one.ask("GET /api/evaluations/{evaluation_id}", evaluation_id=first)
    one.ask("GET /api/evaluations/{evaluation_id}/report", evaluation_id=first)
    one.ask("GET /api/evaluations/{evaluation_id}/rollouts", evaluation_id=first)
    person = {"episode": 0, "passed": True, "score": 0.9, "comments": "Steady"}
    one.ask("POST /api/evaluations/{evaluation_id}/human-evals", person, evaluation_id=first)
    one.ask("GET /api/evaluations/{evaluation_id}/human-evals", evaluation_id=first)
    one.ask("GET /api/evaluations/{evaluation_id}/agreement", evaluation_id=first)
    path = "POST /api/evaluations/{evaluation_id}/reproduce"
    again = one.ask(path, {"name": "Once more"}, evaluation_id=first)["id"]
    assert platform.finished("evaluation", again) == "completed"
    one.ask("GET /api/evaluations/{evaluation_id}/reproduction", evaluation_id=again)
    # Its worker is a script, and stored no steps.
    _place(platform, first, "0" * 64)
    judges = {"verifier_ids": ["verif_1"]}
    path = "POST /api/evaluations/{evaluation_id}/rescore"
    judged = one.ask(path, judges, evaluation_id=first)["id"]
    assert platform.finished("evaluation", judged) == "completed"
    _place(platform, first, None)
    stored = {"environment_name": env, "steps": STEPS, "id": "roll_1", "job_id": job}
    one.ask("POST /api/rollouts", stored)
    one.ask("POST /api/rollouts", {**stored, "id": "roll_2"}, again=False)
    report = one.ask("POST /api/rollouts/export", {"evaluation_id": first, "format": "json"})
    one.ask("GET /api/rollout-reports/{name}", name=report["report_url"].rpartition("/")[2])
    one.ask("GET /api/report-key")
    one.ask("GET /api/rollouts-all", query={"limit": 2})
    pair = {"baseline_id": "roll_1", "trained_id": "roll_2"}
    one.ask("GET /api/rollout-comparison/{env}", query=pair, env=env)
    one.ask("GET /api/training/runs/{job_id}/rollouts", job_id=job)
    one.ask("GET /api/rollouts/{env}", query={"limit": 2}, env=env)
    one.ask("GET /api/rollouts/{env}/{rollout_id}", env=env, rollout_id="roll_1")
    steps = "GET /api/rollouts/{env}/{rollout_id}/steps"
    one.ask(steps, query={"limit": 10}, env=env, rollout_id="roll_1")
    _worker(one, env)
    _language_model(one, env, site)
    one.ask("DELETE /api/agents/{agent_id}", agent_id="agent_1")
    return job


def _place(platform: Running, job: str, digest: str | None) -> None:
    with platform.server.state.database.write() as session:
        for row in session.scalars(select(RolloutRow).where(RolloutRow.job_id == job)):
            row.file_sha256 = digest


def _worker(one: Walk, env: str) -> None:
    state = one.platform.server.state
    one.slowly.set()
    asked = {"run_name": "waits", "verifier_ids": ["verif_1"]}
    job = str(one.ask("POST /train/{env}", asked, again=False, env=env)["job_id"])
    token = mint_token(
        state.keys.workers, subject=worker_subject("training", job), expires_at=time.time() + 60
    )
    while job not in {row["job_id"] for row in _running(one)}:
        time.sleep(0.01)  # its first attempt counts from then on
    own = {"authorization": f"Bearer {token}"}
    path: dict[str, Any] = {"kind": "training", "id": job}
    one.ask("GET /api/worker/{kind}/{id}/assignment", headers=own, **path)
    reports = [{"type": "metric", "data": {"episode": 1, "avg_reward": 20.5}}]
    batch = {"seq": 10**6, "reports": reports}
    one.ask("POST /api/worker/{kind}/{id}/reports", batch, headers=own, again=False, **path)
    episode = {"verifier_id": "verif_1", "steps": [{"tool": "pay"}], "state": {"approved": True}}
    one.ask("POST /api/worker/{kind}/{id}/judge", episode, headers=own, **path)
    content, kept = policy_file(), state_file()
    state_sha256 = hashlib.sha256(kept).hexdigest()
    one.ask(
        "PUT /api/worker/{kind}/{id}/checkpoints/{checkpoint_id}/state",
        content=kept,
        headers={**own, "x-content-sha256": state_sha256},
        checkpoint_id=f"ckpt_{job}_1",
        **path,
    )
    one.ask(
        "PUT /api/worker/{kind}/{id}/checkpoints/{checkpoint_id}",
        query={"episode": 1, "avg_reward": 20.5, "state_sha256": state_sha256},
        content=content,
        headers={**own, "x-content-sha256": hashlib.sha256(content).hexdigest()},
        checkpoint_id=f"ckpt_{job}_1",
        **path,
    )
    one.ask("GET /api/checkpoints/{checkpoint_id}/state", checkpoint_id=f"ckpt_{job}_1")
    played = _rollouts()
    digest = hashlib.sha256(played).hexdigest()
    one.ask(
        "PUT /api/worker/{kind}/{id}/rollouts/{name}",
        content=played,
        headers={**own, "x-content-sha256": digest},
        name="part-1",
        **path,
    )
    one.ask("GET /api/rollout-files/{sha256}", sha256=digest)
    one.ask("POST /api/training/jobs/{job_id}/cancel", job_id=job)
    one.slowly.clear()


def _language_model(one: Walk, env: str, site: str) -> None:
    platform = one.platform
    one.slowly.set()
    agent = {"kind": "llm", "base_url": f"{site}/v1", "model": "small"}
    body = {"agent": agent, "environment_name": env, "seeds": [1]}
    found = platform.ok(platform.http.post("/api/evaluations", json=body))
    evaluation = str(found["id"])
    place = f"/api/evaluations/{evaluation}"
    while platform.ok(platform.http.get(place))["status"] != "running":
        time.sleep(0.01)
    token = mint_token(
        platform.server.state.keys.workers,
        subject=worker_subject("evaluation", evaluation),
        expires_at=time.time() + 60,
    )
    one.ask(
        "POST /api/worker/{kind}/{id}/complete",
        {"messages": [{"role": "user", "content": "Settle transfer tr_0001."}], "tools": []},
        headers={"authorization": f"Bearer {token}"},
        kind="evaluation",
        id=evaluation,
    )
    platform.ok(platform.http.post(f"{place}/cancel"))
    one.slowly.clear()


def _rollouts() -> bytes:
    step = StepRecord(index=0, tool="wire", arguments={"amount": 7}, reward=1.0)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "rollouts.parquet"
        with RolloutWriter(path) as writer:
            writer.add(RolloutRecord(id="first", outcome="success", reward=1.0, steps=(step,)))
        return path.read_bytes()


def _running(one: Walk) -> list[Json]:
    reply = one.platform.http.get("/api/training/jobs", params={"status": "running"})
    found: list[Json] = one.platform.ok(reply)["jobs"]  # type: ignore[assignment]
    return found


def _records(one: Walk, job: str, site: str) -> None:
    env = "CartPole-Prod"
    governed = {"data_retention_days": 90, "pii_fields": ["email"], "environment_name": env}
    one.ask("POST /governance/configure", governed)
    one.ask("GET /governance", query={"environment_name": env})
    found: Json = one.ask("GET /api/audit", query={"limit": 2})
    one.ask("GET /api/audit/{event_id}", event_id=found["events"][0]["id"])
    one.ask("GET /api/audit/export", query={"format": "csv"})
    one.ask("GET /api/audit/verify")
    one.ask("GET /api/events", query={"limit": 2})
    one.ask("GET /kpis", query={"environment_name": env})
    one.ask("GET /kpis/history", query={"limit": 2})
    one.ask("DELETE /kpis/history")
    one.ask("GET /api/agent/tools")
    one.ask("GET /api/agent/health")
    one.ask("POST /api/agent/invoke", {"tool": "list_jobs", "params": {}})
    hook = {"url": f"{site}/hook", "events": ["job_complete"]}
    one.ask("POST /api/training/jobs/{job_id}/webhook", hook, again=False, job_id=job)
    one.ask("GET /api/training/jobs/{job_id}/webhooks", job_id=job)
    made = one.ask("POST /api/webhooks", hook, again=False)
    named: dict[str, Any] = {"webhook_id": made["id"]}
    one.ask("GET /api/webhooks")
    one.ask("GET /api/webhooks/{webhook_id}", **named)
    one.ask("POST /api/webhooks/{webhook_id}/test", **named)
    one.ask("GET /api/webhooks/{webhook_id}/deliveries", **named)
    one.ask("DELETE /api/webhooks/{webhook_id}", **named)


def _deployments(one: Walk, site: str) -> None:
    made = {
        "provider": "AWS",
        "cluster_name": "eks-1",
        "env_name": "CartPole-Prod",
        "image": "registry.example/rl:1",
    }
    named: dict[str, Any] = {"id": str(one.ask("POST /api/deployments", made)["id"])}
    one.ask("GET /api/deployments")
    one.ask("GET /api/deployments/{id}", **named)
    one.ask("POST /api/deployments/{id}/sync", {}, **named)
    one.ask("POST /api/deployments/{id}/deploy-app", {}, **named)
    status = {"status": "running", "message": "Applied by hand"}
    one.ask("POST /api/deployments/{id}/set-app-status", status, **named)
    one.ask("GET /api/deployments/{id}/logs/stream", query={"wait_seconds": 1}, **named)
    urls = {"urls": [{"label": "API", "url": site, "type": "api"}]}
    one.ask("PUT /api/deployments/{id}/urls", urls, **named)
    once = {"timeout_seconds": 5, "interval_seconds": 1}
    one.ask("POST /api/deployments/{id}/availability-test", once, **named)
    asked = {"model_url": site, "model": "tiny", "prompt": "2 + 2?"}
    one.ask("POST /api/deployments/{id}/probe-model", asked, **named)
    model = {"model_id": "tiny", "endpoint_url": f"{site}/v1"}
    one.ask("POST /api/deployments/{id}/configure-model", model, **named)
    one.ask("GET /api/deployments/{id}/manifests", **named)
    one.ask("DELETE /api/deployments/{id}", **named)
    one.ask("PUT /api/cloud-config", {"REGIONS": ["eu-west-1"]})
    one.ask("GET /api/cloud-config")
    clusters = {"subscription_id": "00000000-0000", "resource_group": "rl"}
    one.ask("GET /api/azure/clusters", query=clusters, expect=409)
    one.ask("DELETE /api/azure/clusters/{name}", query=clusters, expect=409, name="aks-1")


def _goodbye(one: Walk) -> None:
    checkpoint = one.told["GET /api/checkpoints/{checkpoint_id}"].path["checkpoint_id"]
    played = {"agent_checkpoint_id": checkpoint, "environment_name": "CartPole-Prod"}
    one.slowly.set()
    evaluation = one.ask("POST /api/evaluations", {**played, "episodes": 2}, again=False)["id"]
    one.ask("POST /api/evaluations/{evaluation_id}/cancel", evaluation_id=evaluation)
    one.slowly.clear()
    one.ask("POST /api/environments/{env}/deprovision", env="Copy")
    one.ask("DELETE /api/custom-environments/{env}", env="Copy")
