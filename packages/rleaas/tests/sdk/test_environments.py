"""Environments, their parts, data assets and deployments, in three colours of one conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlcore import ConflictError, EnvironmentNotFound, InvalidRequestError, NotFoundError
from rleaas import AsyncClient
from rleaas.resources.data_assets import DataAssetsClient
from rleaas.resources.deployments import DeploymentsClient
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environments import EnvironmentsClient

from .colours import Colour

REPO = "https://example.org/x"


def test_environments_are_registered_changed_stopped_and_deleted(
    colour: Colour, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"a,b\n1,2\n")

    async def conversation(client: AsyncClient) -> None:
        env = await client.environments.create(name, source="gym://CartPole-v1")
        assert (await env.wait_until_ready()).status == "ready"
        found = await client.Environment.get(name)
        assert (found.id, found["name"]) == (env.id, name)
        assert name in [one.name for one in await client.Environment.list(status="ready")]
        assert name in [one.name async for one in client.Environment.iterate(status="ready")]
        grant = await env.endpoint()
        assert (await client.Environment.endpoint(env)).address == grant.address
        await env.update(config={"size": 1})
        assert [one.config for one in await env.versions()] == [{}, {"size": 1}]
        assert len(await client.Environment.versions(env)) == 2

        first = await env.create_scenario("s")
        verifier = await client.Verifier.create("v", "rule_based")
        await env.attach_verifier(verifier, 0.5)
        other = await client.Environment.create(f"{name} 2")
        assert (await other.clone_scenarios(env)).cloned == 1
        assert (await other.clone_verifiers(env)).cloned == 1
        assert [one.id for one in await env.list_scenarios()] == [first.id]
        assert [one.weight for one in await env.list_verifiers()] == [0.5]
        await env.detach_verifier(verifier)

        tool = await client.Tools.register(env, "pay")
        assert (await env.configure_tools(tool_names=[tool]))["tool_names"] == [tool.id]
        asset = await client.DataAsset.upload(file, media_type="text/csv")
        await env.attach_data(asset, {"entity_type": "account"})
        assert [one.data_asset_id for one in await env.list_data()] == [asset.id]
        with pytest.raises(ConflictError):
            await client.data_assets.delete(asset)
        await env.detach_data(asset)
        copy = await client.DataAsset.download(asset, tmp_path / f"{colour.name}.csv")
        assert copy.read_bytes() == file.read_bytes()
        assert asset.id in [one.id for one in await client.DataAsset.list()]
        assert (await client.DataAsset.get(asset)).sha256 == asset.sha256
        await client.DataAsset.delete(asset)

        await env.save_repo_config(repo_url=REPO, auth_type="pat", token="t")
        await client.Environment.save_repo_config(env, repo_url=REPO, branch="dev")
        assert (await env.load_repo_config()).branch == "dev"
        assert (await client.Environment.load_repo_config(name)).branch == "dev"
        assert (await client.Environment.validate_repo("file:///etc")).ok is False
        assert (await env.get_risk_report()).compliance_violations["total"] == 0
        assert (await other.analyze()).name == other.name
        assert (await env.public_urls()).urls == []
        with pytest.raises(InvalidRequestError):
            await env.deploy()

        assert (await env.stop()).id == env.id
        assert (await env.start()).status == "ready"
        await env.deprovision()
        assert (await env.refresh()).status == "deprovisioned"
        await env.delete(confirm=True)
        await client.Environment.delete(other, confirm=True)
        with pytest.raises(EnvironmentNotFound):
            await env.refresh()

    colour.play(conversation)
    # Dialling needs a served environment, which `tests/mesh` has.
    colour.assert_all_called(
        EnvironmentsClient, EnvironmentResource, but={"connect", "register_environment"}
    )
    colour.assert_all_called(DataAssetsClient)


def test_deployments_are_recorded_rendered_and_forgotten(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        made = await client.deployments.create("GCP", "c", env, image="i")
        await client.Deployment.save_urls(
            made, [{"label": "ui", "url": "https://example.invalid", "type": "dashboard"}]
        )
        record = await client.Deployment.get(made)
        assert record == await client.Deployment.get(made.id)
        assert [one.id for one in await client.Deployment.list(env)] == [made.id]
        assert (await client.Deployment.sync(made)).status == "not_connected"
        assert (await client.Deployment.deploy_app(made)).app_status == "not_connected"
        assert (await client.Deployment.set_app_status(made, "running")).app_status == "running"
        assert (await client.Deployment.stream_logs(made)).done
        assert (await client.Deployment.manifests(made)).manifests
        assert len(await client.Deployment.get_urls(made, url_type="dashboard")) == 1
        assert await client.Deployment.get_primary_url(made) == "https://example.invalid"
        assert len((await client.Deployment.list_public_urls(env)).urls) == 1
        tried = await client.Deployment.availability_test(made, timeout_seconds=1)
        assert tried.acknowledged
        probed = await client.Deployment.probe_model(made, "https://example.invalid", "m")
        assert probed.ok is False
        set_up = await client.Deployment.configure_model(
            made, "m", hf_token="hush-hush", endpoint_url="https://example.invalid"
        )
        assert "hush-hush" not in str(set_up.to_dict())
        words = await client.Deployment.get_cloud_config()
        await client.Deployment.update_cloud_config({"REGIONS": words["REGIONS"]})
        with pytest.raises(ConflictError):
            await client.Deployment.list_azure_clusters("s")
        with pytest.raises(ConflictError):
            await client.Deployment.delete_azure_cluster("c", "s", "g")
        await client.Deployment.delete(made)
        with pytest.raises(NotFoundError):
            await client.Deployment.get(made)

    colour.play(conversation)
    colour.assert_all_called(DeploymentsClient)
