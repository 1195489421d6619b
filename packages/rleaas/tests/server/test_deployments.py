"""Deployments: records that pretend nothing, manifests for a cluster, requests that go out."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import cast

import httpx
import pytest
from rleaas.server.local import LocalServer
from rleaas.server.rules import manifests
from rleaas.server.rules.clouds import DEFAULTS
from rleaas.server.rules.json_values import fields, items
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from .conftest import FakeMesh, Running

AZURE = {
    "provider": "Azure",
    "region": "westeurope",
    "image": "registry.example.org/env:1",
    "azure": {"subscription_id": "s", "vm_size": "Standard_D2s_v5", "node_count": 3},
    "k8s": {"k8s_version": "1.33", "namespace": "sims", "min_replicas": 2, "max_replicas": 4},
}

# It ships no types.
validate = import_module("kubernetes_validate").validate


def documents_of(stream: str) -> list[dict[str, object]]:
    """The documents of a YAML stream that are written as JSON."""
    return [json.loads(document) for document in re.split("^---$", stream, flags=re.M)[1:]]


class Model(BaseHTTPRequestHandler):
    """Answers questions by repeating them, and everything else with its path."""

    def do_GET(self) -> None:
        self._answer(503 if self.path == "/down" else 200, {"path": self.path})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(200, {"path": self.path, "asked": asked})

    def log_message(self, format: str, *args: object) -> None:
        return

    def _answer(self, status: int, said: object) -> None:
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def allowing(mesh: FakeMesh, tmp_path: Path) -> Iterator[Running]:
    """A server whose operator allows requests to this machine."""

    def make_state(settings: ServerSettings) -> ServerState:
        allowed = ServerSettings(data_dir=settings.data_dir, allowed_hosts=frozenset({"127.0.0.1"}))
        return ServerState(allowed, launcher=mesh, inspect=mesh.inspect)

    with (
        LocalServer(tmp_path / "data", make_state=make_state) as server,
        httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http,
    ):
        yield Running(server, http, mesh)


def deploy(platform: Running, **body: object) -> dict[str, object]:
    asked = {"provider": "AWS", "cluster_name": "c", **body}
    return platform.ok(platform.http.post("/api/deployments", json=asked))


# defect: F-18
def test_a_deployment_takes_what_it_does_not_say_from_the_environments_infrastructure(
    platform: Running,
) -> None:
    platform.register("My Env_v1!", infrastructure=AZURE)
    found = deploy(platform, provider="", cluster_name="", env_name="My Env_v1!", namespace="mine")

    assert (found["provider"], found["cluster_name"]) == ("Azure", "aks-my-env-v1-cluster")
    assert (found["region"], found["vm_size"], found["node_count"]) == (
        "westeurope",
        "Standard_D2s_v5",
        3,
    )
    assert (found["namespace"], found["min_replicas"]) == ("mine", 2)


def test_a_deployment_says_that_nothing_is_connected(platform: Running) -> None:
    made = deploy(platform)
    path = f"/api/deployments/{made['id']}"
    synced = platform.ok(platform.http.post(f"{path}/sync", json={}))
    app = platform.ok(platform.http.post(f"{path}/deploy-app", json={}))
    logs = platform.ok(platform.http.get(f"{path}/logs/stream", params={"wait_seconds": 30}))
    rest = platform.ok(
        platform.http.get(f"{path}/logs/stream", params={"cursor": str(logs["cursor"])})
    )

    assert {made["status"], synced["status"], app["app_status"], logs["app_status"]} == {
        "not_connected"
    }
    assert "no cluster" in str(items(logs["lines"])[-1])
    assert (logs["done"], rest["lines"], rest["done"]) == (True, [], True)


def test_logs_are_held_until_a_line_comes(platform: Running) -> None:
    path = f"/api/deployments/{deploy(platform)['id']}"
    platform.ok(platform.http.post(f"{path}/set-app-status", json={"status": "building"}))
    cursor = platform.ok(platform.http.get(f"{path}/logs/stream"))["cursor"]
    found: list[dict[str, object]] = []
    asking = threading.Thread(
        target=lambda: found.append(
            platform.ok(
                httpx.get(f"{platform.server.url}{path}/logs/stream?cursor={cursor}", timeout=40)
            )
        )
    )
    asking.start()
    said = {"status": "failed", "message": "no space"}
    platform.ok(platform.http.post(f"{path}/set-app-status", json=said))
    asking.join(30)

    (page,) = found
    assert page["lines"] == ["local says: failed: no space"]
    assert page["terminal_event"] == {"app_status": "failed"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"provider": "", "cluster_name": "c"}, "invalid_provider"),
        ({"provider": "Moon", "cluster_name": "c"}, "invalid_provider"),
        ({"provider": "On-Premise"}, "cluster_name_missing"),
        ({"provider": "AWS", "cluster_name": "c", "namespace": "No!"}, "invalid_request"),
        (
            {"provider": "AWS", "cluster_name": "c", "min_replicas": 3, "max_replicas": 2},
            "invalid_request",
        ),
    ],
)
def test_a_deployment_that_could_not_be_is_refused(
    platform: Running, body: dict[str, object], code: str
) -> None:
    reply = platform.http.post("/api/deployments", json=body)

    assert (reply.status_code, reply.json()["code"]) == (422, code)
    assert platform.ok(platform.http.get("/api/deployments"))["count"] == 0


# defect: T-1
def test_a_repeated_create_makes_one_deployment(platform: Running) -> None:
    body = {"provider": "AWS", "cluster_name": "c"}
    headers = {"Idempotency-Key": "once"}
    replies = [
        platform.http.post("/api/deployments", json=body, headers=headers).json()["id"]
        for _ in range(2)
    ]

    assert replies[0] == replies[1]
    assert platform.ok(platform.http.get("/api/deployments"))["count"] == 1


def test_tokens_of_a_deployment_are_never_told(platform: Running) -> None:
    made = platform.http.post(
        "/api/deployments",
        json={"provider": "AWS", "cluster_name": "c", "repo_token": "ghp_x1", "repo_url": "u"},
    )
    path = f"/api/deployments/{made.json()['id']}"
    model = {"model_id": "m", "hf_token": "hf_y2", "endpoint_url": "https://models.example.org"}
    configured = platform.http.post(f"{path}/configure-model", json=model)

    for reply in (made, configured, platform.http.get(path), platform.http.get("/api/deployments")):
        assert "ghp_x1" not in reply.text
        assert "hf_y2" not in reply.text
    assert configured.json()["secrets"] == ["hf_token", "repo_token"]


@pytest.mark.parametrize("version", cast("list[str]", DEFAULTS["K8S_VERSIONS"]))
def test_every_manifest_is_valid_in_every_offered_version_of_kubernetes(version: str) -> None:
    served = manifests.Served("Größe/1 環", 3, "gym://CartPole-v1", {"x": 1}, "sha256:0")
    record = {
        "image": "i",
        "namespace": "n",
        "min_replicas": 2,
        "cpu": "2",
        "memory": "1Gi",
        "gpu": 1,
        "k8s_labels": {"team": "rl"},
    }
    rendered = [*manifests.render(record, served), manifests.secret(record, served, "k")]

    assert [each["kind"] for each in rendered] == [
        "Deployment",
        "Service",
        "HorizontalPodAutoscaler",
        "Secret",
    ]
    for each in rendered:
        validate(each, version, strict=True)
        assert fields(each["metadata"])["name"] == "gr-e-1"


def test_the_manifests_serve_the_environments_version_with_its_key(platform: Running) -> None:
    platform.register("E", kwargs={"sutton_barto_reward": True}, infrastructure=AZURE)
    path = f"/api/deployments/{deploy(platform, env_name='E', provider='')['id']}/manifests"
    open_ones = platform.ok(platform.http.get(path))
    whole = platform.ok(platform.http.get(path, params={"secret": "true"}))

    deployment = f"deployment:{open_ones['deployment_id']}"
    assert platform.audited(deployment) == ["deployment.created", "deployment.secret_shown"]
    assert open_ones["omitted"] == ["Secret"]
    documents = documents_of(str(whole["yaml"]))
    assert documents == whole["manifests"]
    assert documents[0]["kind"] == "Secret"
    key = str(fields(documents[0]["data"])["RLMESH_TOKEN_KEY"])
    expected = platform.server.state.keys.environment(1).reveal()
    assert base64.b64decode(key).decode() == expected
    assert expected not in json.dumps(open_ones)
    template = fields(fields(fields(documents[1]["spec"])["template"])["spec"])
    container = fields(items(template["containers"])[0])
    assert container["image"] == AZURE["image"]
    assert items(container["args"])[:2] == ["--env", "gym://CartPole-v1"]
    assert fields(container["readinessProbe"])["grpc"] == {"port": 50051}


def test_manifests_without_an_image_are_refused_with_what_is_missing(platform: Running) -> None:
    platform.register("E")
    made = deploy(platform, env_name="E")
    reply = platform.http.get(f"/api/deployments/{made['id']}/manifests")

    assert (reply.status_code, reply.json()["code"]) == (409, "deployment_incomplete")


def test_saved_urls_are_replaced_and_told_as_public_urls(platform: Running) -> None:
    platform.register("E", source="custom")
    made = deploy(platform, env_name="E")
    path = f"/api/deployments/{made['id']}/urls"
    for label in ("one", "two"):
        url = {"label": label, "url": "https://example.org", "type": "dashboard"}
        platform.ok(platform.http.put(path, json={"urls": [url]}))
    bad = platform.http.put(path, json={"urls": [{"url": "javascript:alert(1)"}]})
    told = platform.ok(platform.http.get("/api/environments/E/public-urls"))

    assert bad.status_code == 422
    (only,) = items(told["urls"])
    assert fields(only) == {
        "label": "two",
        "url": "https://example.org",
        "type": "dashboard",
        "deployment_id": made["id"],
        "cluster_name": "c",
        "env_name": "E",
    }


def test_availability_is_what_the_urls_answer(allowing: Running, site: str) -> None:
    path = f"/api/deployments/{deploy(allowing)['id']}"
    urls = [{"label": name, "url": f"{site}/{name}"} for name in ("up", "down")]
    allowing.ok(allowing.http.put(f"{path}/urls", json={"urls": urls}))
    body = {"timeout_seconds": 1, "interval_seconds": 1}
    found = allowing.ok(allowing.http.post(f"{path}/availability-test", json=body))

    checks = [fields(check) for check in items(found["checks"])]
    assert [(check["status_code"], check["reachable"]) for check in checks] == [
        (200, True),
        (503, False),
    ]
    assert found["message"] == "1 of 2 URLs answer"


def test_a_url_in_the_servers_network_is_not_asked(platform: Running, site: str) -> None:
    path = f"/api/deployments/{deploy(platform)['id']}"
    platform.ok(platform.http.put(f"{path}/urls", json={"urls": [{"url": site}]}))
    body = {"timeout_seconds": 0.5}
    tested = platform.ok(platform.http.post(f"{path}/availability-test", json=body))
    probed = platform.ok(platform.http.post(f"{path}/probe-model", json={"model_url": site}))

    assert "not a public address" in str(fields(items(tested["checks"])[0])["error"])
    assert (probed["ok"], probed["status_code"]) == (False, None)


def test_a_model_is_asked_the_question_and_its_answer_is_told(allowing: Running, site: str) -> None:
    path = f"/api/deployments/{deploy(allowing)['id']}"
    nowhere = allowing.http.post(f"{path}/probe-model")
    allowing.ok(
        allowing.http.post(
            f"{path}/configure-model", json={"model_id": "tiny", "endpoint_url": f"{site}/v1"}
        )
    )
    found = allowing.ok(allowing.http.post(f"{path}/probe-model", json={"prompt": "2+2?"}))

    assert nowhere.json()["code"] == "model_url_missing"
    assert (found["ok"], found["endpoint"]) == (True, f"{site}/v1/chat/completions")
    asked = fields(fields(found["result"])["asked"])
    assert (asked["model"], asked["messages"]) == ("tiny", [{"role": "user", "content": "2+2?"}])


def test_no_model_is_started_where_there_is_no_cluster(platform: Running) -> None:
    path = f"/api/deployments/{deploy(platform)['id']}/configure-model"
    reply = platform.http.post(path, json={"model_id": "m"})

    assert (reply.status_code, reply.json()["code"]) == (409, "cluster_not_connected")


# defect: S-2
def test_azure_is_refused_because_it_is_not_connected(platform: Running) -> None:
    listed = platform.http.get("/api/azure/clusters", params={"subscription_id": "s&x"})
    deleted = platform.http.delete(
        "/api/azure/clusters/c", params={"subscription_id": "s&x", "resource_group": "g"}
    )

    for reply in (listed, deleted):
        assert (reply.status_code, reply.json()["code"]) == (409, "cloud_not_connected")


def test_cloud_words_are_replaced_key_by_key(platform: Running) -> None:
    before = platform.ok(platform.http.get("/api/cloud-config"))
    changed = platform.ok(platform.http.put("/api/cloud-config", json={"REGIONS": ["moon-1"]}))
    unknown = platform.http.put("/api/cloud-config", json={"COLOURS": []})

    assert changed == {**before, "REGIONS": ["moon-1"]}
    assert platform.ok(platform.http.get("/api/cloud-config")) == changed
    assert unknown.status_code == 422


def test_a_deployment_is_forgotten_and_named_when_it_is_missing(platform: Running) -> None:
    made = deploy(platform)
    path = f"/api/deployments/{made['id']}"

    assert platform.ok(platform.http.delete(path)) == {"status": "deleted", "id": made["id"]}
    reply = platform.http.get(path)
    assert (reply.status_code, reply.json()["detail"]) == (404, "Deployment not found")
