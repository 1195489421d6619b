"""A world over MCP: the official client plays it, in memory, in a process, and over HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, TextContent, TextResourceContents
from rleaas.sims import World
from rleaas.sims.devsim import VERTICAL
from rleaas.sims.mcp import server_of
from rleaas.sims.playing import WorldServer
from rleaas.sims.user_tools import read_tools

SCENARIO = "devsim_access_002"
SOLUTION = ("check_entitlements", "grant_access", "finish")


def playing(scenario: str = SCENARIO, *tools: dict[str, Any]) -> tuple[WorldServer, World]:
    world = World(VERTICAL, tools=read_tools(tools))
    return WorldServer(world, seed=3, scenario=scenario), world


def said(result: CallToolResult) -> dict[str, Any]:
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == result.structured_content
    return cast("dict[str, Any]", json.loads(content.text))


async def read(agent: Client, uri: str) -> dict[str, Any]:
    (contents,) = (await agent.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return cast("dict[str, Any]", json.loads(contents.text))


@pytest.mark.anyio
async def test_an_agent_reads_the_task_solves_it_and_reads_the_verdict() -> None:
    play, world = playing()
    async with Client(server_of(play)) as agent:
        listed = (await agent.list_tools()).tools
        own = {tool.name: tool for tool in listed}
        assert set(world.scenario.tools) <= set(own)
        assert "run_ci" not in own
        assert own["grant_access"].input_schema["properties"]["hours"]["maximum"] == 72
        assert own["grant_access"].annotations is not None
        assert not own["grant_access"].annotations.read_only_hint
        prompt = await agent.get_prompt("task")
        (message,) = prompt.messages
        assert isinstance(message.content, TextContent)
        assert world.prompt in message.content.text
        assert f"{world.budget} tool calls" in message.content.text
        assert (await read(agent, "world://task"))["budget_left"] == world.budget
        assert (await read(agent, "world://verdict"))["over"] is False
        told = [said(await agent.call_tool(one, dict(world.suggested(one)))) for one in SOLUTION]
        assert [one["over"] for one in told] == [False, False, True]
        verdict = await read(agent, "world://verdict")
    assert verdict["success"] is True
    assert verdict["calls"] == 3
    assert all(check["passed"] for check in verdict["checks"])


@pytest.mark.anyio
async def test_what_the_world_refuses_is_a_tool_error_that_costs_a_step() -> None:
    play, world = playing()
    async with Client(server_of(play)) as agent:
        for tool, arguments, code in (
            ("read_ticket", {"ticket_id": "tic_1"}, "ticket_not_found"),
            ("read_ticket", {"ticket": 3}, "invalid_arguments"),
            ("run_ci", {"change_id": "chg_1"}, "tool_not_available"),
            ("reed_ticket", {}, "unknown_tool"),
        ):
            result = await agent.call_tool(tool, arguments)
            assert result.is_error
            assert said(result)["error"]["code"] == code
    assert world.steps_taken == 4


@pytest.mark.anyio
async def test_an_episode_can_be_given_up_and_another_begun() -> None:
    play, world = playing()
    async with Client(server_of(play)) as agent:
        verdict = said(await agent.call_tool("episode_end", {}))["result"]
        assert (verdict["over"], verdict["success"]) == (True, False)
        late = await agent.call_tool("read_ticket", dict(world.suggested("read_ticket")))
        assert said(late)["error"]["code"] == "episode_over"
        wrong = await agent.call_tool("episode_begin", {"scenario": "devsim_access_02"})
        assert wrong.is_error
        assert "devsim_access_002" in said(wrong)["error"]["message"]
        begun = said(await agent.call_tool("episode_begin", {"scenario": "devsim_release_001"}))
        assert begun["result"]["scenario_id"] == "devsim_release_001"
        assert begun["result"]["seed"] == 4
        assert "run_ci" in {tool.name for tool in (await agent.list_tools()).tools}
        for arguments in ({"seed": "x"}, {"seed": -1}, {"tier": 2.5}, {"scenario": 3}, {"sed": 1}):
            assert (await agent.call_tool("episode_begin", arguments)).is_error
        status = said(await agent.call_tool("episode_status", {}))["result"]
    assert status["budget_left"] == world.budget


@pytest.mark.anyio
async def test_prompts_and_resources_that_are_not_there_are_errors() -> None:
    play, _ = playing()
    async with Client(server_of(play)) as agent:
        with pytest.raises(MCPError):
            await agent.get_prompt("other")
        with pytest.raises(MCPError):
            await agent.read_resource("world://answers")


@pytest.mark.anyio
async def test_a_tool_of_the_users_is_one_of_the_servers() -> None:
    effects = [{"fact": "noted", "value": {"expression": "arguments.text"}}]
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    play, world = playing(SCENARIO, {"name": "note", "parameters": schema, "effects": effects})
    async with Client(server_of(play)) as agent:
        own = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert own["note"].input_schema["required"] == ["text"]
        assert said(await agent.call_tool("note", {"text": "hi"}))["result"] == {"noted": "hi"}
    assert world.state.facts["noted"] == "hi"


def command(*options: str) -> list[str]:
    return [*("-m", "rleaas.cli.main", "sim", "mcp", "--vertical", "DevSim"), *options]


@pytest.mark.anyio
async def test_an_agent_plays_a_world_in_a_process_of_its_own(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "give_up", "ends_episode": True}]))
    options = ("--scenario", SCENARIO, "--seed", "3", "--config", '{"org_size": 12}')
    started = StdioServerParameters(
        command=sys.executable, args=command(*options, "--tools", str(tools))
    )
    _, same = playing()
    same.reset(3, SCENARIO)
    async with Client(started) as agent:
        task = await read(agent, "world://task")
        assert (task["scenario_id"], task["seed"]) == (SCENARIO, 3)
        assert "give_up" in {tool.name for tool in (await agent.list_tools()).tools}
        refused = await agent.call_tool("read_ticket", {})
        assert refused.is_error
        ticket = said(await agent.call_tool("list_tickets", {}))["result"]["tickets"][0]["id"]
        for tool, more in (("check_entitlements", {}), ("grant_access", {"hours": 8})):
            assert not (await agent.call_tool(tool, {"ticket_id": ticket, **more})).is_error
        await agent.call_tool("finish", {})
        verdict = await read(agent, "world://verdict")
    assert verdict["success"] is True
    assert verdict["calls"] == 5


@pytest.fixture
def port() -> Generator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    options = ("--scenario", SCENARIO, "--http", str(number))
    with subprocess.Popen([sys.executable, *command(*options)]) as served:
        try:
            await_port(number)
            yield number
        finally:
            served.terminate()


def await_port(port: int) -> None:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens at {port}")


# Under trio the client leaves a session's stream to the garbage collector, which warns.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.slow
@pytest.mark.anyio
async def test_an_agent_plays_a_world_over_http_on_loopback(port: int) -> None:
    async with Client(f"http://127.0.0.1:{port}/mcp") as agent:
        told = said(await agent.call_tool("episode_status", {}))
    assert told["result"]["scenario_id"] == SCENARIO
