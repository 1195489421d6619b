"""The SDK's environments, data and deployments against a real server, in both colours."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast

import pytest
from rlcore import (
    ConfigurationError,
    ConflictError,
    EnvironmentNotFound,
    InvalidRequestError,
    NotFoundError,
    UnexpectedReply,
)
from rleaas import AsyncClient, Client
from rleaas.models import READY, Deployment
from rleaas.resources.deployments import DeploymentsClient
from rleaas.resources.environments import EnvironmentsClient
from rleaas.testing import Offline, converse, reply

from .conftest import Running

NAME = "team/Größe 2"
INFRASTRUCTURE = {
    "provider": "AWS",
    "region": "eu-west-1",
    "memory": "1Gi",
    "aws": {"cluster_name": "mine", "instance_type": "m6i.large"},
    "k8s": {"min_replicas": 2, "max_replicas": 3, "autoscaler": "HPA"},
}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    assert isinstance(request.param, str)
    return request.param


# defect: P-1
def test_the_readme_creates_an_environment_as_it_says(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create(name="FinSim-Prod-v1", vertical="FinSim")

        assert (env.vertical, env.record.domain) == ("FinSim", "finance")
        assert client.environments.get("FinSim-Prod-v1").id == env.id


# defect: F-16
def test_a_handle_follows_its_new_name_and_sees_every_change(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create(NAME, source="gym://CartPole-v1")
        env.wait_until_ready()
        env.update(config={"size": 1}, name="Renamed", system="SAP", category="HRSim")

        assert (env.name, env.vertical, env["system"]) == ("Renamed", "HRSim", "SAP")
        assert env.wait_until_ready().status == READY
        assert [version.config for version in env.versions()] == [{}, {"size": 1}]
        assert client.Environment.get("Renamed@1").version == 1
        with pytest.raises(EnvironmentNotFound):
            client.Environment.get(NAME)


# defect: F-17
def test_a_refreshed_handle_has_every_field_anew(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create("E", "before")
        client.Environment.create("E", "after", tags=["t"])

        assert (env.refresh().description, env.tags) == ("after", ["t"])


# defect: P-11
def test_tools_data_repository_and_reports_are_reached_from_the_handle(
    platform: Running, tmp_path: Path
) -> None:
    file = tmp_path / "accounts.csv"
    file.write_bytes(b"id\n1\n")
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create(NAME, tools=[{"name": "pay"}])
        asset = client.DataAsset.upload(file, media_type="text/csv")
        env.attach_data(asset, {"entity_type": "account"})
        saved = client.DataAsset.download(asset.id, tmp_path / "copy.csv")

        assert env.configure_tools(tool_names=["pay"])["tool_names"] == ["pay"]
        assert saved.read_bytes() == b"id\n1\n"
        assert [one.data_asset_id for one in env.list_data()] == [asset.id]
        env.detach_data(asset.id)
        assert env.list_data() == []
        assert [one.id for one in client.DataAsset.list()] == [asset.id]
        client.DataAsset.delete(asset.id)
        with pytest.raises(NotFoundError):
            client.DataAsset.get(asset.id)
        assert env.analyze().name == NAME
        with pytest.raises(NotFoundError):
            env.load_repo_config()
        env.save_repo_config(repo_url="https://example.org/x", auth_type="pat", token="t")
        client.Environment.save_repo_config(NAME, repo_url="https://example.org/x", branch="dev")
        assert client.Environment.load_repo_config(env).branch == "dev"
        assert client.Environment.validate_repo("file:///etc").ok is False
        assert env.get_risk_report().compliance_violations["total"] == 0
        assert env.public_urls().urls == []


def test_a_pattern_and_a_list_are_refused_before_anything_is_sent() -> None:
    env = EnvironmentsClient(Offline()).get("E")
    handle = converse(env, [reply({"id": 1, "name": "E", "status": "ready"})]).result

    with pytest.raises(ConfigurationError, match="two ways"):
        converse(handle.configure_tools("full", ["pay"]), [])


# defect: S-3
def test_a_repository_in_either_spelling_is_sent_once_with_the_registration() -> None:
    creating = EnvironmentsClient(Offline()).create(
        "E", repo={"repo_url": "https://example.org/x", "auth_type": "pat", "token": "t"}
    )
    talk = converse(creating, [reply({"id": 1, "name": "E", "status": "registered"})])

    (request,) = talk.requests
    assert cast("dict[str, object]", request.json)["repo"] == {
        "repoUrl": "https://example.org/x",
        "authType": "pat",
        "token": "t",
    }


def test_data_with_other_bytes_than_promised_is_not_kept(tmp_path: Path) -> None:
    from rleaas._flow.wire import Saved
    from rleaas.resources.data_assets import DataAssetsClient

    asset = {"id": "data_1", "name": "x", "sha256": "0" * 64, "size_bytes": 1}
    other = hashlib.sha256(b"other").hexdigest()
    getting = DataAssetsClient(Offline()).download("data_1", tmp_path / "x")

    with pytest.raises(UnexpectedReply, match="data_1"):
        converse(getting, [reply(asset), Saved(reply(), other)])


def test_data_without_a_name_or_a_file_is_refused(tmp_path: Path) -> None:
    from rleaas.resources.data_assets import DataAssetsClient

    client = DataAssetsClient(Offline())
    with pytest.raises(ConfigurationError, match="no name"):
        converse(client.upload(b"x"), [])
    with pytest.raises(ConfigurationError, match="cannot be read"):
        converse(client.upload(tmp_path / "missing"), [])


# defect: F-18
def test_deploying_keeps_every_wish_of_the_infrastructure(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create("E", infrastructure=INFRASTRUCTURE)
        stored = env.refresh().deploy()
        given = env.deploy({**INFRASTRUCTURE, "provider": "aws"})

        for found in (stored, given):
            assert (found.provider, found.cluster_name) == ("AWS", "mine")
            assert (found.region, found["memory"]) == ("eu-west-1", "1Gi")
            assert (found["instance_type"], found["min_replicas"]) == ("m6i.large", 2)
        with pytest.raises(ConfigurationError, match="no provider"):
            env.deploy({"region": "x"})
        assert len(client.Deployment.list(env)) == 2


def test_every_method_about_deployments_does_what_it_says(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        env = client.Environment.create("E", source="gym://CartPole-v1")
        made = client.Deployment.create("GCP", "c", env, image="i", k8s_labels={"team": "rl"})
        urls = [{"url": "https://a.org", "type": "api"}, {"url": "https://b.org", "type": "Model"}]
        with pytest.raises(InvalidRequestError):
            client.Deployment.save_urls(made, urls)
        urls[1]["type"] = "dashboard"
        client.Deployment.save_urls(made.id, urls)

        assert client.Deployment.get(made) == client.deployments.get(made.id)
        assert client.Deployment.sync(made).status == "not_connected"
        assert client.Deployment.deploy_app(made).app_status == "not_connected"
        assert client.Deployment.set_app_status(made, "running").app_status == "running"
        assert client.Deployment.stream_logs(made).done is True
        assert len(client.Deployment.get_urls(made, url_type="API")) == 1
        assert client.Deployment.get_primary_url(made) == "https://b.org"
        assert client.Deployment.get_primary_url(made, prefer_type="api") == "https://a.org"
        assert client.Deployment.list_public_urls("E").count == 2
        assert client.Deployment.availability_test(made, 0.2, 0.1).acknowledged is True
        assert client.Deployment.probe_model(made, "http://127.0.0.1:9").ok is False
        with pytest.raises(ConflictError):
            client.Deployment.configure_model(made, "m")
        assert [
            one["kind"] for one in client.Deployment.manifests(made, secret=True).manifests
        ] == [
            "Secret",
            "Deployment",
            "Service",
            "HorizontalPodAutoscaler",
        ]
        client.Deployment.update_cloud_config({"REGIONS": ["moon-1"]})
        assert client.Deployment.get_cloud_config()["REGIONS"] == ["moon-1"]
        with pytest.raises(ConflictError):
            client.Deployment.list_azure_clusters("s&x")
        with pytest.raises(ConflictError):
            client.Deployment.delete_azure_cluster("c", "s&x", "g")
        client.Deployment.delete(made)
        # defect: A-5
        with pytest.raises(NotFoundError):
            client.Deployment.get(made)


# defect: T-10
def test_a_long_poll_is_given_more_time_than_it_asks_for() -> None:
    asking = DeploymentsClient(Offline()).stream_logs("dep_1", wait_seconds=90)
    talk = converse(asking, [reply({"lines": [], "cursor": 0, "done": False})])

    (request,) = talk.requests
    assert ("wait_seconds", "30") in request.params
    assert (request.timeout or 0) > 30


# defect: X-1
@pytest.mark.anyio
async def test_the_awaited_client_does_the_same(platform: Running) -> None:
    async with AsyncClient(base_url=platform.server.url) as client:
        env = await client.Environment.create(NAME, source="gym://CartPole-v1")
        await env.wait_until_ready()
        await env.update(name="Renamed", config={"size": 1})
        asset = await client.DataAsset.upload(b"x", "x.bin")
        await env.attach_data(asset)
        deployment = await env.deploy({"provider": "On-Premise"})

        assert isinstance(deployment, Deployment)
        assert deployment.cluster_name == "k8s-renamed-cluster"
        assert [one.version for one in await env.versions()] == [1, 2]
        assert [one.data_asset_id for one in await env.list_data()] == [asset.id]
        assert (await client.deployments.get(deployment)).env_name == "Renamed"
        # defect: X-2
        with pytest.raises(NotFoundError):
            await client.Deployment.get("dep_x")
        await env.delete(confirm=True)
        with pytest.raises(EnvironmentNotFound):
            await env.refresh()
