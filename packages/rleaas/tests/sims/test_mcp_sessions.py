"""A world for each session over HTTP, whoever else plays, and however they behave."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from itertools import count
from typing import Any, cast

import httpx
import pytest
import uvicorn
from mcp import Client
from mcp.types import TextContent
from rleaas.sims import World
from rleaas.sims.devsim import VERTICAL
from rleaas.sims.mcp import http_app
from rleaas.sims.playing import WorldServer

SCENARIO = "devsim_access_002"
MOST = 3
ASK = {"accept": "application/json, text/event-stream"}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def begin() -> WorldServer:
    return WorldServer(World(VERTICAL), seed=3, scenario=SCENARIO)


@pytest.fixture
def site() -> Generator[str]:
    config = uvicorn.Config(
        http_app(begin, most=MOST),
        port=0,
        log_level="warning",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()


@pytest.fixture
def http() -> Generator[httpx.Client]:
    with httpx.Client(trust_env=False, headers=ASK, timeout=20) as client:
        yield client


NUMBERS = count(1)


def ask(
    http: httpx.Client,
    site: str,
    method: str,
    session: str | None = None,
    params: dict[str, Any] | None = None,
) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": next(NUMBERS), "method": method, "params": params or {}}
    headers = {} if session is None else {"mcp-session-id": session}
    return http.post(site, json=body, headers=headers)


def call(http: httpx.Client, site: str, tool: str, session: str | None = None) -> httpx.Response:
    return ask(http, site, "tools/call", session, {"name": tool, "arguments": {}})


def opened(http: httpx.Client, site: str) -> str:
    reply = ask(http, site, "initialize", params=HELLO)
    assert reply.status_code == 200, reply.text
    session = reply.headers["mcp-session-id"]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert http.post(site, json=done, headers={"mcp-session-id": session}).status_code == 202
    return str(session)


def left(http: httpx.Client, site: str, session: str, tool: str = "episode_status") -> int:
    """The calls that are left after a call of this tool."""
    reply = call(http, site, tool, session)
    assert reply.status_code == 200, reply.text
    data = next(line for line in reply.text.splitlines() if line.startswith("data: {"))
    told = json.loads(data.removeprefix("data: "))["result"]["structuredContent"]
    where = told["result"] if tool == "episode_status" else told
    return cast("int", where["budget_left"])


# Under trio the client leaves a session's stream to the garbage collector, which warns.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_two_clients_play_worlds_of_their_own(site: str) -> None:
    async def budget(agent: Client) -> int:
        (content,) = (await agent.call_tool("episode_status", {})).content
        assert isinstance(content, TextContent)
        return cast("int", json.loads(content.text)["result"]["budget_left"])

    async with Client(site) as one, Client(site) as other:
        whole = await budget(one)
        await one.call_tool("list_tickets", {})
        await one.call_tool("episode_begin", {"scenario": "devsim_release_001"})
        assert await budget(other) == whole
        await other.call_tool("list_tickets", {})
        assert await budget(other) == whole - 1


def test_a_session_that_is_closed_takes_its_world_along(site: str, http: httpx.Client) -> None:
    session = opened(http, site)
    whole = left(http, site, session)
    assert left(http, site, session, "list_tickets") == whole - 1

    assert http.delete(site, headers={"mcp-session-id": session}).status_code == 200

    gone = call(http, site, "episode_status", session)
    assert gone.status_code == 404
    assert http.delete(site, headers={"mcp-session-id": session}).status_code == 404
    assert left(http, site, opened(http, site)) == whole


def test_no_more_sessions_are_opened_than_there_is_room_for(site: str, http: httpx.Client) -> None:
    sessions = [opened(http, site) for _ in range(MOST)]

    assert ask(http, site, "initialize", params=HELLO).status_code == 503
    assert left(http, site, sessions[0]) > 0
    http.delete(site, headers={"mcp-session-id": sessions[0]})
    assert opened(http, site) not in sessions


@pytest.mark.parametrize("session", ["guessed", "0" * 32, "x" * 5_000, "../../etc", "'; drop"])
def test_a_session_that_nobody_opened_is_not_there(
    site: str, http: httpx.Client, session: str
) -> None:
    assert ask(http, site, "tools/list", session).status_code == 404
    assert [left(http, site, opened(http, site)) > 0 for _ in range(MOST)] == [True] * MOST


def test_calls_without_a_session_reach_no_world(site: str, http: httpx.Client) -> None:
    refused = call(http, site, "list_tickets")
    assert refused.status_code == 400
    newest = ask(http, site, "tools/list").request
    newest.headers["mcp-protocol-version"] = "2026-07-28"
    told = http.send(newest)
    assert (told.status_code, told.json()["error"]["code"]) == (400, -32022)
    # What was refused has opened nothing.
    assert [left(http, site, opened(http, site)) > 0 for _ in range(MOST)] == [True] * MOST


def test_opening_a_session_twice_begins_nothing_anew(site: str, http: httpx.Client) -> None:
    session = opened(http, site)
    spent = left(http, site, session, "list_tickets")

    ask(http, site, "initialize", session, HELLO)

    assert left(http, site, session) == spent


def test_first_calls_that_come_at_once_meet_in_one_world(site: str, http: httpx.Client) -> None:
    session = opened(http, site)
    threads = [
        threading.Thread(target=left, args=(http, site, session, "list_tickets")) for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    fresh = left(http, site, opened(http, site))
    assert left(http, site, session) == fresh - 4
