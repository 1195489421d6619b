"""The published environments, call by call: what each brings about on our server."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found,untyped-decorator"

import json
import urllib.request
from typing import Any

from interop_rleaas_world import World, effect, published, raises, told

MAIN, OTHER = "Cart Pole ä", "Empty One"
INFRASTRUCTURE = {
    "provider": "Azure",
    "region": "eastus",
    "azure": {"subscription_id": "sub", "resource_group": "rg", "vm_size": "D4", "node_count": 3},
    "k8s": {"namespace": "rl", "min_replicas": 1, "max_replicas": 2},
}


@effect("EnvironmentsClient.create", "the record, its children on their routes, its lifecycle")
def create(world: World) -> None:
    env = world.client.Environment.create(
        MAIN,
        "It balances.",
        [{"name": "push", "type": "write"}],
        [{"name": "upright", "tier": 2, "max_steps": 9}],
        [],
        [],
        vertical="DevSim",
        tags=["t"],
        infrastructure=INFRASTRUCTURE,
        source="gym://CartPole-v1",
        sdk="docker",
    )
    told(env, name=MAIN, vertical="DevSim", description="It balances.", tags=["t"])
    assert isinstance(env.id, int)
    assert env.status in ("registered", "provisioning", "ready")
    assert [one["name"] for one in world.client.Tools.list(env_name=MAIN)] == ["push"]
    (scenario,) = world.client.Scenario.list(env_name=MAIN)
    told(scenario, name="upright", tier=2, max_steps=9)
    record = world.client.get(f"/api/environments/{env.id}")
    told(record, domain="enterprise", infrastructure=INFRASTRUCTURE, sdk="docker", tool_count=1)
    world.kept.update(env=env)


@effect("EnvironmentsClient.register_environment", "the same as create; again, an update")
def register_environment(world: World) -> None:
    first = world.client.Environment.register_environment(OTHER, "one", [], [], [], [])
    again = world.client.Environment.register_environment(OTHER, "two", [], [], [], [])
    assert first.id == again.id
    assert world.client.Environment.get(OTHER).description == "two"
    world.kept.update(other=again)


@effect("EnvironmentsClient.validate_repo", "a real look at the branch, and nothing is kept")
def validate_repo(world: World) -> None:
    url = f"{world.neighbours.url}/env.git"
    assert world.client.Environment.validate_repo(url)["ok"] is True
    wrong = world.client.Environment.validate_repo(url, branch="no-such")
    assert wrong["ok"] is False
    assert "no-such" in wrong["message"]


@effect("EnvironmentsClient.save_repo_config", "saved, and the token is not told")
def save_repo_config(world: World) -> None:
    reply = world.client.Environment.save_repo_config(
        OTHER, "gitlab", f"{world.neighbours.url}/env.git", auth_type="pat", token="very-secret"
    )
    assert reply["saved"] is True
    assert "very-secret" not in str(reply)


@effect("EnvironmentsClient.load_repo_config", "what was saved, without the token")
def load_repo_config(world: World) -> None:
    loaded = world.client.Environment.load_repo_config(OTHER)
    told(loaded, provider="gitlab", branch="main", authType="pat")
    assert "very-secret" not in str(loaded)


@effect(
    "EnvironmentsClient.get",
    "by name and by id; one that is not there is EnvironmentNotFound",
    "as promised; names with a slash or # cannot be cured: sent unescaped (S-1)",
)
def get(world: World) -> None:
    assert world.client.Environment.get(MAIN).id == world.env.id
    assert world.client.Environment.get(str(world.env.id)).name == MAIN
    raises(published.EnvironmentNotFound, lambda: world.client.Environment.get("nobody"))


@effect("EnvironmentsClient.list", "all, by vertical, and in pages")
def list_environments(world: World) -> None:
    listing = world.client.Environment.list
    assert {MAIN, OTHER} <= {one.name for one in listing()}
    assert [one.name for one in listing(vertical="DevSim")] == [MAIN]
    assert [one.name for one in listing(category="DevSim")] == [MAIN]
    assert len(listing(limit=1)) == 1
    assert listing(limit=1, offset=1)[0].id != listing(limit=1)[0].id
    assert listing(limit=5, cursor=str(world.env.id))[0].id > world.env.id
    assert listing(status="no such status") == []


@effect(
    "EnvironmentResource.wait_until_ready",
    "ready when it is served; a failure is told",
    "as promised; errors on the way cannot be cured: they count as ready (F-1)",
)
def wait_until_ready(world: World) -> None:
    assert world.env.wait_until_ready(timeout=60, poll_interval=0.1) is world.env
    contract = world.client.get(f"/api/environments/{world.env.id}")["contract"]
    assert contract["action_space"]
    broken = world.client.Environment.create(
        "broken", "", [], [], [], [], source="gym://NoSuchEnvironment-v0"
    )
    error = raises(RuntimeError, lambda: broken.wait_until_ready(timeout=60, poll_interval=0.1))
    assert "broken" in str(error)


@effect("EnvironmentResource.update", "system, category, a new name, a config as a new version")
def update(world: World) -> None:
    env = world.client.Environment.create("before", "", [], [], [], [])
    version = world.client.get(f"/api/environments/{env.id}")["version"]
    env.update(config={"org_size": "large"}, name="after", system="SAP", category="HRSim")
    found = world.client.get("/api/environments/after")
    told(found, id=env.id, config={"org_size": "large"}, system="SAP", category="HRSim")
    # A vertical gives an environment without a source its world, and the config changes that.
    assert found["version"] == version + 2


@effect("EnvironmentResource.deploy", "a deployment with the infrastructure that was registered")
def deploy(world: World) -> None:
    made = world.client.Environment.get(MAIN).deploy()
    told(made, provider="Azure", region="eastus", vm_size="D4", namespace="rl", node_count=3)
    assert made["cluster_name"] == "aks-cart-pole-cluster"
    assert made["env_name"] == MAIN
    assert world.client.Deployment.get(made["id"])["id"] == made["id"]


@effect("EnvironmentResource.deprovision", "its compute is given back, its records stay")
def deprovision(world: World) -> None:
    env = world.client.Environment.create("Short", "", [{"name": "kept"}], [], [], [])
    told(env.deprovision(), status="deprovisioned")
    assert world.client.Environment.get("Short").status == "deprovisioned"
    assert [one["name"] for one in world.client.Tools.list(env_name="Short")] == ["kept"]
    world.kept.update(short=env)


@effect("EnvironmentResource.delete", "only when confirmed; then everything of it is gone")
def delete(world: World) -> None:
    raises(ValueError, world.short.delete)
    told(world.short.delete(confirm=True), status="deleted", name="Short")
    raises(published.EnvironmentNotFound, lambda: world.client.Environment.get("Short"))
    raises(published.EnvironmentNotFound, lambda: world.client.Tools.list(env_name="Short"))


@effect("EnvironmentResource.configure_tools", "the access is kept; unknown words are refused")
def configure_tools(world: World) -> None:
    world.env.configure_tools(access_pattern="read_only", approval_mode="block")
    found = world.client.get(f"/api/environments/{world.env.id}")
    told(found, access_pattern="read_only", approval_mode="block")
    world.env.configure_tools(tool_names=["push"])
    assert world.client.get(f"/api/environments/{world.env.id}")["tool_names"] == ["push"]
    error = raises(
        published.RLEaaSAPIError, lambda: world.env.configure_tools(access_pattern="everything")
    )
    assert error.status_code == 422


@effect("EnvironmentResource.attach_data", "an uploaded asset, with how it is to be taken in")
def attach_data(world: World) -> None:
    asked = urllib.request.Request(
        f"{world.url}/api/data-assets?name=accounts",
        data=b"id,balance\n1,10\n",
        headers={"Authorization": f"Bearer {world.key}", "Content-Type": "text/csv"},
    )
    with urllib.request.urlopen(asked) as reply:
        asset: dict[str, Any] = json.loads(reply.read())
    attached = world.env.attach_data(asset["id"], {"entity_type": "account"})
    told(attached, data_asset_id=asset["id"], injection_config={"entity_type": "account"})
    raises(published.RLEaaSAPIError, lambda: world.env.attach_data("data_none"))


@effect("EnvironmentResource.save_repo_config", "saved for this environment")
def handle_save_repo_config(world: World) -> None:
    saved = world.env.save_repo_config(repo_url=f"{world.neighbours.url}/env.git", branch="main")
    assert saved["saved"] is True


@effect("EnvironmentResource.load_repo_config", "what was saved for this environment")
def handle_load_repo_config(world: World) -> None:
    loaded = world.env.load_repo_config()
    told(loaded, repoUrl=f"{world.neighbours.url}/env.git", authType="none")


@effect("EnvironmentResource.create_scenario", "a scenario of this environment, with an id")
def create_scenario(world: World) -> None:
    made = world.env.create_scenario(
        "steady", "Keep it up.", tier=3, available_tools=["push"], tags=["x"]
    )
    assert made["id"]
    told(made, name="steady", tier=3, task_prompt="Keep it up.", environment=MAIN, tags=["x"])
    assert world.client.Scenario.get(made["id"])["available_tools"] == ["push"]


@effect("EnvironmentResource.attach_verifier", "the verifier judges here, with its weight")
def attach_verifier(world: World) -> None:
    verifier = world.client.Verifier.create(
        "Pushes", "rule_based", config={"conditions": ["'push' in trajectory.tool_calls"]}
    )
    world.env.attach_verifier(verifier.id, weight=0.25)
    (found,) = world.client.get(f"/api/environments/{world.env.id}/verifiers")["verifiers"]
    told(found, verifier_id=verifier.id, weight=0.25)


@effect("EnvironmentResource.clone_scenarios", "copies with ids of their own, marked as cloned")
def clone_scenarios(world: World) -> None:
    told(world.other.clone_scenarios(MAIN), cloned=2, source=MAIN, target=OTHER)
    theirs = world.client.Scenario.list(env_name=MAIN)
    ours = world.client.Scenario.list(env_name=OTHER)
    assert sorted(one["name"] for one in ours) == sorted(one["name"] for one in theirs)
    assert not {one["id"] for one in ours} & {one["id"] for one in theirs}
    assert {one["source"] for one in ours} == {"cloned"}


@effect("EnvironmentResource.clone_verifiers", "copies that judge here, with the same weights")
def clone_verifiers(world: World) -> None:
    told(world.other.clone_verifiers(MAIN), cloned=1, source=MAIN)
    (found,) = world.client.get(f"/api/environments/{world.other.id}/verifiers")["verifiers"]
    told(found, name="Pushes", weight=0.25, source="cloned")


@effect("EnvironmentResource.get_risk_report", "thresholds, and violations by severity")
def get_risk_report(world: World) -> None:
    report = world.env.get_risk_report()
    told(report, environment_name=MAIN)
    told(report["risk_thresholds"], max_risk_score=0.8, critical_threshold=0.7)
    violations = report["compliance_violations"]
    assert set(violations["by_severity"]) == {"critical", "error", "warning"}
    assert violations["total"] == sum(violations["by_severity"].values())


@effect("EnvironmentResource.analyze", "the repository's README and files, and the endpoints")
def analyze(world: World) -> None:
    found = world.env.analyze()
    told(found, name=MAIN, readme_raw="# A balancing act\n", category="DevSim")
    assert [one["path"] for one in found["files"]] == ["README.md"]
    assert found["endpoints"]
