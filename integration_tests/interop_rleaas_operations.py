"""The published audit log, keys, profile, deployments, and the clients themselves."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interop_rleaas_environments import MAIN
from interop_rleaas_world import World, effect, published, raises, told

REFUSED = "refused by name: this server is connected to no cloud, and does not pretend"


@effect("AuditLogClient.query", "records of what was done, with all filters, in pages")
def query(world: World) -> None:
    ask = world.client.AuditLog.query
    (begun,) = ask(event_types=["environment.created"], environment_name=MAIN)
    assert {"id", "timestamp", "type", "environment", "details", "chain_hash"} <= set(begun)
    assert all(one["environment"] == MAIN for one in ask(environment_name=MAIN))
    assert all(one["job_id"] == world.job.id for one in ask(job_id=world.job.id))
    assert ask(agent_id=world.agent.id)
    assert ask(end_time=begun["timestamp"], limit=1000)[0]["timestamp"] <= begun["timestamp"]
    assert ask(start_time="2999-01-01T00:00:00Z") == []
    assert ask(limit=1, offset=1) == ask(limit=2)[1:]
    world.kept.update(event=begun)


@effect("AuditLogClient.get_event", "the record with its place in the chain")
def get_event(world: World) -> None:
    found = world.client.AuditLog.get_event(world.event["id"])
    told(found, id=world.event["id"], chain_hash=world.event["chain_hash"])
    assert found["prev_hash"]


@effect(
    "AuditLogClient.export",
    "all records in a file",
    "as promised; format='csv' cannot be cured: it writes JSON (A-3)",
)
def export(world: World) -> None:
    path = world.client.AuditLog.export(str(world.folder / "audit.json"))
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    assert len(found) == len(world.client.AuditLog.query(limit=0))
    assert world.event["id"] in [one["id"] for one in found]


@effect("AuditLogClient.configure_governance", "merged, for the platform and an environment")
def configure_governance(world: World) -> None:
    log = world.client.AuditLog
    log.configure_governance(data_retention_days=30, pii_fields=["iban"])
    log.configure_governance(compliance_tags=["GDPR"], max_risk_threshold=0.4)
    log.configure_governance(MAIN, alert_thresholds={"pass_rate_min": 0.0})
    assert world.env.get_risk_report()["risk_thresholds"]["max_risk_score"] == 0.4
    episode = {"environment_name": MAIN, "steps": [{"step": 0, "reward": 1, "iban": "DE1"}]}
    stored = world.client.post("/api/rollouts", json=episode)
    shown = world.client.Evaluation.get_rollout(stored["id"], MAIN)
    assert "DE1" not in str(shown)


@effect("AuditLogClient.get_governance", "what was configured, and for which environments")
def get_governance(world: World) -> None:
    found = world.client.AuditLog.get_governance()
    told(found, data_retention_days=30, pii_fields=["iban"], compliance_tags=["GDPR"])
    assert found["configs"][MAIN]["alert_thresholds"] == {"pass_rate_min": 0.0}


@effect("AuditLogClient.whoami", "user, e-mail, organisation and scopes")
def whoami(world: World) -> None:
    found = world.client.AuditLog.whoami()
    assert {"user_id", "email", "org", "scopes"} <= set(found)
    assert "write" in found["scopes"]


@effect("AuditLogClient.sso_status", "whether people sign in elsewhere: they do not")
def sso_status(world: World) -> None:
    told(world.client.AuditLog.sso_status(), sso_enabled=False, provider="", domains=[])


@effect("KeysClient.create", "a key that opens the platform, told once")
def create_key(world: World) -> None:
    made = world.client.Keys.create("robot")
    assert made["key"].startswith("rleaas_sk_")
    told(made, name="robot", is_active=True)
    with published.Client(api_key=made["key"], base_url=world.url) as other:
        assert other.Environment.get(MAIN).id == world.env.id
    world.kept.update(made=made)


@effect("KeysClient.list", "the keys, without their secrets")
def list_keys(world: World) -> None:
    (found,) = [one for one in world.client.Keys.list() if one["id"] == world.made["id"]]
    told(found, name="robot", prefix=world.made["prefix"], is_active=True)
    assert found["last_used_at"]
    assert world.made["key"] not in str(found)


@effect("KeysClient.revoke", "the key opens nothing any more")
def revoke(world: World) -> None:
    told(world.client.Keys.revoke(world.made["id"]), revoked=True, id=world.made["id"])
    with published.Client(api_key=world.made["key"], base_url=world.url) as other:
        raises(published.AuthenticationError, other.ping)


@effect("ProfileClient.update", "the fields that are given change")
def update_profile(world: World) -> None:
    world.client.Profile.update(full_name="Ada", title="Engineer")
    told(world.client.Profile.update(title=""), full_name="Ada", title="")


@effect("ProfileClient.get", "what was said")
def get_profile(world: World) -> None:
    told(world.client.Profile.get(), full_name="Ada", title="")


@effect("DeploymentsClient.create", "a record with every wish; the status is plain")
def create_deployment(world: World) -> None:
    made = world.client.Deployment.create(
        "AWS", "rl-1", MAIN, "us-east-1", account_id="1", instance_type="m6i.large", node_count=2
    )
    told(made, provider="AWS", cluster_name="rl-1", env_name=MAIN, instance_type="m6i.large")
    told(made, region="us-east-1", account_id="1", node_count=2, status="not_connected")
    world.kept.update(deployment=made["id"])


@effect("DeploymentsClient.list", "all, and those of an environment")
def list_deployments(world: World) -> None:
    assert world.deployment in [one["id"] for one in world.client.Deployment.list()]
    assert all(one["env_name"] == MAIN for one in world.client.Deployment.list(MAIN))


@effect("DeploymentsClient.get", "the record; one that is not there is refused")
def get_deployment(world: World) -> None:
    told(world.client.Deployment.get(world.deployment), id=world.deployment, provider="AWS")
    error = raises(published.RLEaaSAPIError, lambda: world.client.Deployment.get("dep_none"))
    assert error.status_code == 404


@effect("DeploymentsClient.sync", "what is known of the cluster: that none is connected")
def sync(world: World) -> None:
    told(world.client.Deployment.sync(world.deployment), status="not_connected")


@effect("DeploymentsClient.deploy_app", "says that it has to be applied by hand")
def deploy_app(world: World) -> None:
    told(world.client.Deployment.deploy_app(world.deployment), app_status="not_connected")


@effect("DeploymentsClient.set_app_status", "kept, with its message and who says so")
def set_app_status(world: World) -> None:
    made = world.client.Deployment.set_app_status(world.deployment, "running", "by hand")
    told(made, app_status="running", app_status_msg="by hand")
    assert made["app_status_from"]


@effect("DeploymentsClient.stream_logs", "the lines after a cursor, and whether more will come")
def stream_logs(world: World) -> None:
    page = world.client.Deployment.stream_logs(world.deployment, wait_seconds=1)
    assert any("by hand" in one for one in page["lines"])
    told(page, done=True, app_status="running")
    later = world.client.Deployment.stream_logs(world.deployment, page["cursor"], 1)
    assert later["lines"] == []


@effect("DeploymentsClient.save_urls", "the URLs are replaced")
def save_urls(world: World) -> None:
    urls = [
        {"label": "api", "url": f"{world.neighbours.url}/app", "type": "api"},
        {"label": "board", "url": f"{world.neighbours.url}/none", "type": "dashboard"},
    ]
    world.client.Deployment.save_urls(world.deployment, [])
    assert world.client.Deployment.save_urls(world.deployment, urls)["deployment_urls"] == urls


@effect("DeploymentsClient.get_urls", "all, and those of a type")
def get_urls(world: World) -> None:
    assert len(world.client.Deployment.get_urls(world.deployment)) == 2
    (found,) = world.client.Deployment.get_urls(world.deployment, url_type="API")
    assert found["label"] == "api"


@effect("DeploymentsClient.get_primary_url", "that of the preferred type")
def get_primary_url(world: World) -> None:
    found = world.client.Deployment.get_primary_url
    assert found(world.deployment).endswith("/none")
    assert found(world.deployment, prefer_type="api").endswith("/app")


@effect("DeploymentsClient.list_public_urls", "the URLs of an environment's deployments")
def list_public_urls(world: World) -> None:
    found = world.client.Deployment.list_public_urls(MAIN)
    told(found, env_name=MAIN, count=2)
    told(found["urls"][0], deployment_id=world.deployment, cluster_name="rl-1", env_name=MAIN)


@effect("DeploymentsClient.availability_test", "each URL is really asked")
def availability_test(world: World) -> None:
    found = world.client.Deployment.availability_test(world.deployment, timeout_seconds=5)
    told(found, acknowledged=True, deployment_id=world.deployment)
    assert [(one["label"], one["status_code"]) for one in found["checks"]] == [
        ("api", 200),
        ("board", 404),
    ]


@effect("DeploymentsClient.configure_model", "the endpoint is registered; none is started")
def configure_model(world: World) -> None:
    made = world.client.Deployment.configure_model(
        world.deployment, "tiny", "hf_very-secret", endpoint_url=world.neighbours.url
    )
    assert [one["url"] for one in made["deployment_urls"] if one["type"] == "model"] == [
        world.neighbours.url
    ]
    assert "hf_very-secret" not in str(made)
    error = raises(
        published.RLEaaSAPIError,
        lambda: world.client.Deployment.configure_model(world.deployment, "tiny"),
    )
    assert error.status_code == 409


@effect("DeploymentsClient.probe_model", "one real question, and what was answered")
def probe_model(world: World) -> None:
    found = world.client.Deployment.probe_model(world.deployment, prompt="2 + 2?")
    told(found, ok=True, status_code=200)
    assert found["result"]["choices"][0]["message"]["content"] == "four"


@effect("DeploymentsClient.get_cloud_config", "the words that deployments are described with")
def get_cloud_config(world: World) -> None:
    found = world.client.Deployment.get_cloud_config()
    assert {"TRAINING_ALGORITHMS", "CLOUD_PROVIDERS", "PROVIDER_REGIONS", "K8S_VERSIONS"} <= set(
        found
    )
    assert "Azure" in found["CLOUD_PROVIDERS"]


@effect("DeploymentsClient.update_cloud_config", "the keys are replaced, the others stay")
def update_cloud_config(world: World) -> None:
    before = world.client.Deployment.get_cloud_config()
    after = world.client.Deployment.update_cloud_config({"REGIONS": ["moon-1"]})
    assert after["REGIONS"] == ["moon-1"]
    assert after["K8S_VERSIONS"] == before["K8S_VERSIONS"]
    assert world.client.Deployment.get_cloud_config()["REGIONS"] == ["moon-1"]


@effect("DeploymentsClient.list_azure_clusters", "no cluster is invented", REFUSED)
def list_azure_clusters(world: World) -> None:
    refused(lambda: world.client.Deployment.list_azure_clusters("sub", "rg"))


@effect("DeploymentsClient.delete_azure_cluster", "no deletion is pretended", REFUSED)
def delete_azure_cluster(world: World) -> None:
    refused(lambda: world.client.Deployment.delete_azure_cluster("c", "sub", "rg"))


def refused(call: Callable[[], object]) -> None:
    error = raises(published.RLEaaSAPIError, call)
    assert error.status_code == 409
    assert "Azure" in error.detail


@effect("DeploymentsClient.delete", "the record is gone")
def delete_deployment(world: World) -> None:
    told(world.client.Deployment.delete(world.deployment), status="deleted", id=world.deployment)
    assert world.deployment not in [one["id"] for one in world.client.Deployment.list()]


@effect("Client.ping", "the platform; a wrong key is AuthenticationError")
def ping(world: World) -> None:
    told(world.client.ping(), status="ok")
    assert {"message", "version", "endpoints"} <= set(world.client.ping())
    with published.Client(api_key="rleaas_sk_wrong", base_url=world.url) as other:
        raises(published.AuthenticationError, other.ping)


@effect("Client.get", "the JSON of a path, with a query")
def raw_get(world: World) -> None:
    found = world.client.get("/api/tools", params={"environment": MAIN})
    assert found["tools"][0]["name"] == "push"


@effect("Client.post", "JSON, a form, and nothing at all")
def raw_post(world: World) -> None:
    made = world.client.post("/api/agents", data={"name": "by form", "trainable": "false"})
    told(made, name="by form", trainable=False)
    assert world.client.post("/api/agents", json={"name": "by JSON"})["name"] == "by JSON"
    assert "valid" in world.client.post(f"/api/agents/{made['id']}/validate")
    world.kept.update(form=made["id"])


@effect("Client.put", "the change is made")
def raw_put(world: World) -> None:
    changed = world.client.put(f"/api/agents/{world.form}/configure", json={"base_model": "b"})
    told(changed, base_model="b")


@effect("Client.patch", "the change is made, without a body too")
def raw_patch(world: World) -> None:
    verifier = world.client.Verifier.create("p", "rule_based", config={"conditions": ["1 == 1"]})
    assert world.client.patch(f"/api/verifiers/{verifier.id}/disable")["status"] == "disabled"
    world.kept.update(patched=verifier.id)


@effect("Client.delete", "it is gone")
def raw_delete(world: World) -> None:
    assert world.client.delete(f"/api/agents/{world.form}")["deleted"] is True


@effect("Client.close", "later calls are errors")
def close(world: World) -> None:
    other = published.Client(api_key=world.key, base_url=world.url)
    other.ping()
    other.close()
    raises(RuntimeError, other.ping)


def awaited(world: World, ask: Callable[[Any], Any]) -> Any:
    """What a coroutine of the asynchronous client returns."""

    async def there() -> Any:
        async with published.AsyncClient(api_key=world.key, base_url=world.url) as client:
            return await ask(client)

    return asyncio.run(there())


@effect("AsyncClient.ping", "the platform, awaited")
def async_ping(world: World) -> None:
    told(awaited(world, lambda client: client.ping()), status="ok")


@effect("AsyncClient.get", "the JSON of a path, awaited")
def async_get(world: World) -> None:
    found = awaited(world, lambda client: client.get(f"/api/environments/{world.env.id}"))
    told(found, name=MAIN)


@effect("AsyncClient.post", "JSON, awaited")
def async_post(world: World) -> None:
    made = awaited(world, lambda client: client.post("/api/agents", json={"name": "awaited"}))
    told(made, name="awaited")
    world.kept.update(later=made["id"])


@effect("AsyncClient.put", "the change is made, awaited")
def async_put(world: World) -> None:
    place = f"/api/agents/{world.later}/configure"
    told(awaited(world, lambda client: client.put(place, json={"name": "b"})), name="b")


@effect("AsyncClient.patch", "the change is made, awaited")
def async_patch(world: World) -> None:
    place = f"/api/verifiers/{world.patched}/disable"
    assert awaited(world, lambda client: client.patch(place))["status"] == "active"


@effect("AsyncClient.delete", "it is gone, awaited")
def async_delete(world: World) -> None:
    gone = awaited(world, lambda client: client.delete(f"/api/agents/{world.later}"))
    assert gone["deleted"] is True


@effect("AsyncClient.aclose", "later calls are errors")
def aclose(world: World) -> None:
    async def closing() -> None:
        client = published.AsyncClient(api_key=world.key, base_url=world.url)
        await client.ping()
        await client.aclose()
        try:
            await client.ping()
        except RuntimeError:
            return
        raise AssertionError("a closed client answered")

    asyncio.run(closing())
