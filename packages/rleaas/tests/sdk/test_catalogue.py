"""Tools, verifiers, scenarios, suites and agents, in three colours of one conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlcore import (
    ConflictError,
    NotFoundError,
    ScenarioNotFound,
    ToolNotFound,
)
from rleaas import AsyncClient
from rleaas.resources.agent_handle import AgentResource
from rleaas.resources.agents import AgentsClient
from rleaas.resources.scenarios import ScenarioClient
from rleaas.resources.suites import ScenarioSuiteClient
from rleaas.resources.tools import ToolsClient
from rleaas.resources.verifier_handle import VerifierResource
from rleaas.resources.verifiers import VerifierClient

from .colours import Colour


def test_tools_are_registered_found_changed_and_deleted(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.environments.create(name)
        tool = await client.tools.register(env, "wire", "write", "sends money")
        put = await client.Tools.upsert([{"name": "read", "type": "read"}], env_id=env.name)
        assert put.created == 1
        assert (await client.Tools.get("wire", env_name=env)).id == tool.id
        assert (await client.Tools.update(tool, description="d"))["description"] == "d"
        listed = await client.Tools.list(env_name=env)
        assert {"wire", "read"} <= {one.name for one in listed}
        assert [one.id async for one in client.Tools.iterate(env)] == [one.id for one in listed]
        assert [one.name for one in await client.Tools.list(env, category="read")] == ["read"]
        await client.Tools.delete(tool)
        with pytest.raises(ToolNotFound):
            await client.Tools.get(tool)

    colour.play(conversation)
    colour.assert_all_called(ToolsClient)


def test_verifiers_are_versioned_attached_and_switched(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.environments.create(name)
        made = await client.verifiers.create(
            name, "rule-based", env, config={"conditions": ["paid"]}
        )
        found = await client.Verifier.get(name)
        assert (found.id, found["type"]) == (made.id, "rule_based")
        await found.update(description="changed", logic={"conditions": ["amount > 3"]})
        assert (await made.refresh()).description == "changed"
        assert [one.version for one in await made.versions()] == [1, 2]
        assert len(await client.Verifier.versions(made)) == 2
        assert (await made.disable()).status == "disabled"
        assert (await made.enable()).status == "active"
        copy = await made.duplicate()
        await copy.attach(env, 2.0)
        attached = await env.list_verifiers()
        assert [(one.id, one.weight) for one in attached] == [(copy.id, 2.0)]
        await copy.detach(env)
        assert (await made.test({"amount": 4})).passed
        steps = [{"tool": "wire", "arguments": {"amount": 2}}]
        judged = await client.Verifier.test(made, trajectory=steps)
        assert (judged.score, judged.explanation) == (0.0, "0 of 1 conditions hold: amount > 3")
        good, bad = ([{"state": {"amount": low + more}} for more in range(5)] for low in (4, -1))
        assert (await client.Verifier.audit(made, good, bad)).audited
        assert not (await made.audit(bad, bad, repeats=1)).passed
        audits = await made.audits()
        assert [one.passed for one in audits] == [False, True]
        assert await client.Verifier.audits(made) == audits
        listed = [one.id for one in await client.Verifier.list(environment=env)]
        assert [one.id async for one in client.Verifier.iterate(env)] == listed
        await client.Verifier.delete(copy.id)
        await made.delete()
        with pytest.raises(NotFoundError):
            await client.Verifier.get(made)

    colour.play(conversation)
    colour.assert_all_called(VerifierClient, VerifierResource)


def test_scenarios_and_suites_are_put_together(colour: Colour, name: str) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.environments.create(name)
        first = await client.scenarios.create(name, env_name=env, tier=2, available_tools=[])
        second = await env.create_scenario("second", task_prompt="do it")
        changed = await client.Scenario.update(first, max_steps=3)
        assert (changed.max_steps, changed.tier) == (3, 2)
        assert (await client.Scenario.get(name)).id == first.id
        listed = [one.id for one in await client.Scenario.list(env)]
        assert listed == [first.id, second.id]
        assert [one.id async for one in client.Scenario.iterate(env)] == listed
        assert [one.id for one in await client.Scenario.library(limit=1)] == ["finsim_wire_001"]
        with pytest.raises(ScenarioNotFound):
            await client.Scenario.from_library("none", env_name=env)

        suite = await client.scenario_suites.create(name, [first, second.id], env_name=env)
        assert suite.scenario_ids == listed
        smaller = await client.ScenarioSuite.update(suite, scenario_ids=[second])
        assert (smaller.version, smaller.scenario_ids) == (2, [second.id])
        assert (await client.ScenarioSuite.get(name)).id == suite.id
        suites = [one.id for one in await client.ScenarioSuite.list(env, "training")]
        assert suites == [suite.id]
        assert [one.id async for one in client.ScenarioSuite.iterate(env)] == suites
        await client.Scenario.delete(second)
        assert (await client.ScenarioSuite.get(suite)).scenario_ids == []
        await client.ScenarioSuite.delete(suite)

    colour.play(conversation)
    colour.assert_all_called(ScenarioClient, ScenarioSuiteClient)


def test_agents_are_configured_bound_played_and_exported(
    colour: Colour, name: str, tmp_path: Path
) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.environments.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        job = await client.TrainingJob.run(env)
        await job.wait_until_complete(timeout=30)
        checkpoint = (await job.list_checkpoints())[0]
        agent = await client.agents.register(name, model_ref=f"checkpoint://{checkpoint.id}")
        assert (await client.Agent.get(name)).id == agent.id
        assert agent.id in [one.id for one in await client.Agent.list()]
        await client.Agent.configure(agent, trainable=False)
        await agent.configure(trainable=True)
        assert (await agent.refresh()).trainable
        assert len(await agent.list_versions()) == len(await client.Agent.list_versions(agent)) == 3
        await client.Agent.rollback(agent, "v2")
        await agent.rollback("v1")
        assert (await client.Agent.validate(agent)).valid == (await agent.validate()).valid
        await client.Agent.deploy(agent, env, "live")
        await agent.deploy(env)
        bound = await client.Agent.list_deployments(agent)
        assert len(bound) == len(await agent.list_deployments()) == 2
        await client.Agent.dry_run(agent, env, 1)
        await agent.dry_run(env, 1)
        assert len(await client.Agent.list_dry_runs(agent)) == len(await agent.list_dry_runs()) == 2
        made = await client.Agent.export(checkpoint, agent, download_to=tmp_path)
        again = await agent.export(checkpoint)
        assert (again.sha256, made.downloaded_to is None) == (made.sha256, False)
        with pytest.raises(NotFoundError):
            await client.Agent.export("none")
        await agent.delete()
        with pytest.raises(NotFoundError):
            await client.Agent.delete(agent)
        with pytest.raises(ConflictError):
            await job.cancel()

    colour.play(conversation)
    colour.assert_all_called(AgentsClient, AgentResource)
