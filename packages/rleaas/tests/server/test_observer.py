"""The observability agent: over HTTP, and as a server of the Model Context Protocol."""

from __future__ import annotations

import json
import sys
from typing import cast

import anyio
import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.types import TextContent
from rleaas import AsyncClient, Client

from .conftest import FakeMesh, Running, Start

TOOLS = [
    "list_environments",
    "get_environment",
    "get_environment_kpis",
    "list_jobs",
    "check_health",
    "get_stats",
]


def ask(platform: Running, tool: str, **params: object) -> dict[str, object]:
    reply = platform.http.post("/api/agent/invoke", json={"tool": tool, "params": params})
    return cast("dict[str, object]", platform.ok(reply)["result"])


def test_the_tools_are_told_with_the_form_of_their_parameters(platform: Running) -> None:
    listed = platform.listed(platform.ok(platform.http.get("/api/agent/tools")), "tools")

    assert [tool["name"] for tool in listed] == TOOLS
    for tool in listed:
        assert tool["description"]
        assert cast("dict[str, object]", tool["parameters"])["type"] == "object"


def test_every_answer_is_what_is_on_record(platform: Running, mesh: FakeMesh) -> None:
    mesh.refuse["gym://Nope-v0"] = "no such environment"
    platform.ready("Good", vertical="FinSim")
    job = platform.train("Good")
    platform.finished("training", job)
    platform.register("Bad", source="gym://Nope-v0")
    platform.http.get("/api/environments/Bad/endpoint")

    environments = cast(
        "list[dict[str, object]]", ask(platform, "list_environments")["environments"]
    )
    assert [(one["name"], one["status"]) for one in environments] == [
        ("Good", "ready"),
        ("Bad", "failed"),
    ]
    finance = ask(platform, "list_environments", vertical="FinSim")
    assert len(platform.listed(finance, "environments")) == 1
    assert ask(platform, "get_environment", environment="Good@1")["version"] == 1
    kpis = ask(platform, "get_environment_kpis", environment="Good")
    assert (kpis["kpis"], kpis["jobs"]) == ({}, {"total": 1, "completed": 1})
    jobs = platform.listed(ask(platform, "list_jobs", environment="Good"), "jobs")
    assert [(one["id"], one["status"]) for one in jobs] == [(job, "completed")]
    assert ask(platform, "list_jobs", status="running", kind="training") == {"jobs": []}
    health = ask(platform, "check_health")
    assert health == platform.ok(platform.http.get("/api/agent/health"))
    assert health["status"] == "degraded"
    assert "no such environment" in str(health["warnings"])
    assert ask(platform, "get_stats")["environments"] == {"total": 2, "ready": 1, "failed": 1}


def test_a_platform_where_nothing_failed_is_ok(platform: Running) -> None:
    assert platform.ok(platform.http.get("/api/agent/health"))["status"] == "ok"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"tool": "backup_state"}, 400, "unknown_tool"),
        ({"tool": "get_environment"}, 422, "invalid_request"),
        ({"tool": "get_stats", "params": {"x": 1}}, 422, "invalid_request"),
        ({"tool": "list_jobs", "params": {"limit": 0}}, 422, "invalid_request"),
        (
            {"tool": "get_environment", "params": {"environment": "E"}},
            404,
            "environment_not_found",
        ),
    ],
)
def test_what_the_agent_cannot_answer_is_refused_with_its_reason(
    platform: Running, body: dict[str, object], status: int, code: str
) -> None:
    reply = platform.http.post("/api/agent/invoke", json=body)

    assert (reply.status_code, reply.json()["code"]) == (status, code)


def test_without_a_key_the_agent_says_nothing(start: Start) -> None:
    platform = start(api_key="secret")

    for reply in (
        platform.http.get("/api/agent/health", headers={"Authorization": "Bearer no"}),
        platform.http.post(
            "/api/agent/invoke", json={"tool": "get_stats"}, headers={"Authorization": "Bearer no"}
        ),
    ):
        assert reply.status_code == 401


def test_both_clients_ask_the_same_questions(platform: Running) -> None:
    platform.register("E", source="custom")

    async def asked() -> object:
        async with AsyncClient(base_url=platform.server.url) as client:
            answer = await client.observability.invoke_agent_tool("get_stats")
            return answer["result"], await client.Observability.agent_health()

    with Client(base_url=platform.server.url) as client:
        assert [tool["name"] for tool in client.observability.list_agent_tools()] == TOOLS
        stats = client.Observability.invoke_agent_tool("get_stats")["result"]
        expected = (stats, client.Observability.agent_health())
    assert anyio.run(asked, backend="trio") == expected


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_an_agent_that_speaks_mcp_gets_the_same_answers(start: Start) -> None:
    platform = start(api_key="secret")
    platform.ready("E")
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rleaas.cli.main", "mcp", "--base-url", platform.server.url],
        env={"RLEAAS_API_KEY": "secret"},
    )
    async with McpClient(command) as agent:
        listed = await agent.list_tools()
        good = await agent.call_tool("get_environment", {"environment": "E"})
        bad = await agent.call_tool("get_environment", {"environment": "missing"})

    assert [tool.name for tool in listed.tools] == TOOLS
    assert not good.is_error
    (text,) = good.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == ask(platform, "get_environment", environment="E")
    assert good.structured_content == json.loads(text.text)
    assert bad.is_error
    (reason,) = bad.content
    assert isinstance(reason, TextContent)
    assert "missing" in reason.text
