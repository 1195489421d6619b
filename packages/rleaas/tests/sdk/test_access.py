"""Keys, profile, organisations, audit and figures, in three colours of one conversation."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from rlcore import AuthenticationError, InvalidRequestError, NotFoundError
from rleaas import AsyncClient
from rleaas.resources.audit import AuditLogClient
from rleaas.resources.keys import KeysClient, ProfileClient
from rleaas.resources.metrics import MetricsClient
from rleaas.resources.observability import ObservabilityClient
from rleaas.resources.organisations import OrganisationsClient
from rleaas.resources.platform import Platform
from rleaas.resources.webhooks import WebhooksClient
from rleaas.server.local import LocalServer

from .colours import COLOURS, Colour
from .conftest import served

TOP = "top-secret-key"


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with served(tmp_path_factory.mktemp("guarded"), api_key=TOP) as server:
        yield server


@pytest.fixture(params=COLOURS)
def keyed(request: pytest.FixtureRequest, guarded: LocalServer) -> Colour:
    return Colour(str(request.param), guarded.url)


def test_keys_profiles_and_organisations_are_managed(keyed: Colour) -> None:
    name = f"lab {secrets.token_hex(4)}"

    async def conversation(client: AsyncClient) -> str:
        made = await client.keys.create("ci", scopes=["read"])
        assert made.id in [one.id for one in await client.Keys.list()]
        assert (await client.Keys.me()).organisation == "default"
        assert (await client.Keys.sso_status()).sso_enabled is False
        assert (await client.profile.update(full_name="Ada", bio="b")).full_name == "Ada"
        assert (await client.Profile.update(clear=["bio"])).bio is None
        assert (await client.Profile.get()).full_name == "Ada"

        lab = await client.organisations.create(name, admin="a@lab")
        assert (await client.Organisation.get(name)).id == lab.id
        assert name in [one.name for one in await client.Organisation.list()]
        assert (await client.Organisation.set_limits(lab, {"jobs": 3})).limits == {"jobs": 3}
        member = await client.Organisation.put_member(lab, "b@lab")
        members = await client.Organisation.members(lab)
        assert [one.email for one in members] == ["a@lab", "b@lab"]
        await client.Organisation.remove_member(lab, member)
        assert (await client.Keys.revoke(made)).revoked
        return made.key

    revoked = keyed.play(conversation, api_key=TOP)
    keyed.assert_all_called(KeysClient, ProfileClient, OrganisationsClient)

    async def refused(client: AsyncClient) -> None:
        with pytest.raises(AuthenticationError, match="revoked"):
            await client.ping()

    keyed.play(refused, api_key=revoked)


def test_what_was_done_is_in_the_audit_log(keyed: Colour, name: str, tmp_path: Path) -> None:
    async def conversation(client: AsyncClient) -> str:
        env = await client.Environment.create(name)
        await client.Tools.register(env, "pay")
        found = await client.audit_log.query(event_types=["tool"], limit=1)
        assert [one.type for one in found] == ["tool.registered"]
        every = [one.id async for one in client.AuditLog.iterate(env)]
        assert every == [one.id for one in await client.AuditLog.query(env, limit=None)]
        assert (await client.AuditLog.get_event(found[0])).id == found[0].id
        place = await client.AuditLog.export(tmp_path / f"{keyed.name}.json")
        assert (await client.AuditLog.verify()).valid
        key = await client.AuditLog.report_key()
        assert key.public_key.startswith("-----BEGIN PUBLIC KEY-----")
        changed = await client.AuditLog.configure_governance(env, data_retention_days=9)
        assert changed.data_retention_days == 9
        assert (await client.AuditLog.get_governance(env)).data_retention_days == 9
        assert (await client.AuditLog.whoami()).organisation == "default"
        assert (await client.AuditLog.sso_status()).sso_enabled is False
        return place

    place = keyed.play(conversation, api_key=TOP)
    keyed.assert_all_called(AuditLogClient)
    assert len(json.loads(Path(place).read_text())) > 1


def test_the_platform_is_observed_and_tells_its_webhooks(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> None:
        assert (await client.ping()).status == "ok"
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        tools = [one["name"] for one in await client.observability.list_agent_tools()]
        assert tools == [one["name"] for one in await client.metrics.list_agent_tools()]
        health = await client.Observability.agent_health()
        assert health.keys() is not None
        await client.Metrics.agent_health()
        with pytest.raises(InvalidRequestError):
            await client.Observability.invoke_agent_tool("none")
        with pytest.raises(InvalidRequestError):
            await client.Metrics.invoke_agent_tool("none")
        assert (await client.Metrics.get_kpis(env)).environment_name == name
        assert await client.Metrics.get_kpi_history(env) == []
        await client.Metrics.clear_kpi_history()

        hook = await client.webhooks.register("https://93.184.216.34/hook", ["tier_advance"])
        assert hook.secret
        assert (await client.Webhook.get(hook)).secret is None
        assert hook.id in [one.id for one in await client.Webhook.list()]
        assert await client.Webhook.deliveries(hook) == []
        await client.Webhook.delete(hook)
        with pytest.raises(NotFoundError):
            await client.Webhook.test(hook)

        path = f"/api/environments/{env.id}"
        assert (await client.get(path))["name"] == name
        assert (await client.put(path, json={"config": {"a": 1}})) is not None
        scenario = await client.post("/api/scenarios", json={"name": "raw"})
        raw = f"/api/scenarios/{scenario['id']}"
        assert (await client.patch(raw, json={"tier": 2}))["tier"] == 2
        assert (await client.delete(raw))["status"] == "deleted"
        events = [one.kind async for one in client.events(environment=env, after=0, timeout=0)]
        assert events

    colour.play(conversation)
    colour.assert_all_called(ObservabilityClient, MetricsClient, WebhooksClient, Platform)
