"""Tools that act in worlds: what of them is kept, shown, told and refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer
from rleaas.server.outbound import Outbound
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.server.store import acting_tools, environments
from rleaas.server.store.tables import JsonObject
from rleaas.sims.user_tools import read_tools

from ..sims.desk_server import served  # noqa: TID252 - the endpoints of worlds' own tests
from .conftest import Running

TOKEN = "tok-5f0e9d"
URL = "https://93.184.215.14/score"
OTHER_URL = "https://93.184.215.14/other"
SPEC: JsonObject = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://93.184.215.14/v1"}],
    "paths": {"/pets": {"get": {"operationId": "listPets"}}},
}


def put(platform: Running, *tools: Mapping[str, object]) -> JsonObject:
    body = {"tools": list(tools), "environment_name": "Desk"}
    return platform.ok(platform.http.post("/api/tools", json=body))


def refusal(platform: Running, tool: Mapping[str, object]) -> tuple[int, str]:
    body = {"tools": [tool], "environment_name": "Desk"}
    reply = platform.http.post("/api/tools", json=body)
    return reply.status_code, reply.json()["code"]


def told(platform: Running) -> list[JsonObject]:
    state = platform.server.state
    with state.database.read(1) as session:
        version = environments.find_version(session, "Desk")
        records = acting_tools.told(session, version, state.keys)
    return acting_tools.looked_at(records, Outbound())


@pytest.fixture
def desk(platform: Running) -> Running:
    asked = environments.Registration(
        name="Desk", serves=True, source="sim://DevSim", vertical="DevSim"
    )
    with platform.server.state.database.write(1) as session:
        environments.upsert(session, asked, None)
    platform.ok(platform.http.get("/api/environments/Desk/endpoint"))
    return platform


def version(platform: Running) -> object:
    return platform.ok(platform.http.get("/api/environments/Desk"))["version"]


def test_a_token_is_sealed_shown_to_nobody_and_told_to_the_world_alone(desk: Running) -> None:
    put(desk, {"id": "t", "name": "score", "endpoint": {"url": URL, "token": TOKEN}})
    shown = desk.http.get("/api/tools/t").text
    assert TOKEN not in shown
    assert "endpoint_token" not in shown
    assert json.loads(shown)["endpoint"] == {"url": URL, "has_token": True}
    database = desk.server.state.settings.data_dir / "rleaas.db"
    files = [database, *database.parent.glob("rleaas.db-*")]
    assert not any(TOKEN.encode() in file.read_bytes() for file in files if file.exists())
    (record,) = told(desk)
    assert record["endpoint"] == {"url": URL, "token": TOKEN, "addresses": ["93.184.215.14"]}


def test_a_token_stays_with_its_url_and_goes_with_it(desk: Running) -> None:
    put(desk, {"id": "t", "name": "score", "endpoint": {"url": URL, "token": TOKEN}})
    put(desk, {"id": "t", "endpoint": {"url": URL, "method": "PUT"}})
    assert told(desk)[0]["endpoint"] == {
        "url": URL,
        "method": "PUT",
        "token": TOKEN,
        "addresses": ["93.184.215.14"],
    }
    put(desk, {"id": "t", "endpoint": {"url": OTHER_URL}})
    assert told(desk)[0]["endpoint"] == {"url": OTHER_URL, "addresses": ["93.184.215.14"]}


def test_what_is_told_makes_tools(desk: Running) -> None:
    effects = [{"fact": "called", "value": True}]
    put(
        desk,
        {"name": "mark", "effects": effects, "category": "notify"},
        {"name": "pets", "spec": SPEC},
        {"name": "only_listed"},
    )
    made = read_tools(told(desk))
    assert [(tool.name, tool.category) for tool in made] == [
        ("mark", "notify"),
        ("list_pets", "system"),
    ]


def test_a_tool_that_acts_gives_its_world_a_new_version_and_others_do_not(desk: Running) -> None:
    assert version(desk) == 1
    put(desk, {"id": "listed", "name": "listed"})
    assert version(desk) == 1
    put(desk, {"id": "t", "name": "mark", "ends_episode": True})
    assert version(desk) == 2
    put(desk, {"id": "t", "name": "mark", "ends_episode": True})
    assert version(desk) == 2
    desk.ok(desk.http.get("/api/environments/Desk/endpoint"))
    desk.ok(desk.http.put("/api/tools/t", json={"description": "Marks."}))
    assert version(desk) == 3
    desk.ok(desk.http.get("/api/environments/Desk/endpoint"))
    desk.ok(desk.http.delete("/api/tools/t"))
    assert version(desk) == 4
    assert told(desk) == []


def test_an_older_version_is_not_told_of_later_tools(desk: Running) -> None:
    put(desk, {"name": "mark", "ends_episode": True})
    state = desk.server.state
    with state.database.read(1) as session:
        first = environments.find_version(session, "Desk", 1)
        assert acting_tools.told(session, first, state.keys) == []


def test_what_may_not_be_reached_is_refused_at_once_and_again_when_it_is_told(
    desk: Running,
) -> None:
    private = {"id": "t", "name": "score", "endpoint": {"url": "http://127.0.0.1:9/score"}}
    assert refusal(desk, private) == (422, "address_not_public")
    clear = {"id": "t", "name": "score", "endpoint": {"url": URL.replace("https", "http")}}
    assert refusal(desk, clear) == (422, "endpoint_not_https")
    inside = {**SPEC, "servers": [{"url": "http://169.254.169.254/latest"}]}
    assert refusal(desk, {"name": "meta", "spec": inside}) == (422, "address_not_public")
    record: JsonObject = {"name": "score", "endpoint": {"url": "http://127.0.0.1:9/score"}}
    (looked_at,) = acting_tools.looked_at([record], Outbound())
    assert "not a public address" in str(looked_at["endpoint"])
    (allowed,) = acting_tools.looked_at([record], Outbound(["127.0.0.1:9"]))
    assert allowed["endpoint"] == {"url": "http://127.0.0.1:9/score", "addresses": ["127.0.0.1"]}


@pytest.mark.parametrize(
    ("tool", "code"),
    [
        ({"name": "two words", "ends_episode": True}, "invalid_tool"),
        ({"name": "x", "preconditions": ["a ==== b"]}, "invalid_expression"),
        ({"name": "x", "effects": [{"fact": "f"}]}, "invalid_tool"),
        ({"name": "x", "endpoint": {"url": "ftp://a"}}, "invalid_tool"),
        ({"name": "x", "endpoint": {"url": URL, "addresses": ["10.0.0.1"]}}, "invalid_tool"),
        ({"name": "x", "endpoint": {"url": URL, "token": ["a"]}}, "invalid_tool"),
        ({"name": "x", "endpoint": {"url": URL, "token": "a b"}}, "invalid_tool"),
        ({"name": "x", "endpoint": {"url": URL}, "parameters": {"$ref": "#"}}, "invalid_tool"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    desk: Running, tool: dict[str, object], code: str
) -> None:
    status, said = refusal(desk, tool)
    assert 400 <= status < 500
    assert said == code
    assert told(desk) == []
    assert version(desk) == 1


def test_a_tool_of_no_environment_that_says_what_it_does_is_refused_as_no_world_would_call_it(
    desk: Running,
) -> None:
    acting = desk.http.post("/api/tools", json={"tools": [{"name": "mark", "ends_episode": True}]})
    listed = desk.http.post("/api/tools", json={"tools": [{"name": "mark"}]})

    assert (acting.status_code, acting.json()["code"]) == (422, "tool_needs_environment")
    assert listed.status_code == 200


def test_two_tools_of_an_environment_cannot_act_under_one_name(desk: Running) -> None:
    put(desk, {"id": "a", "name": "mark", "ends_episode": True})
    assert refusal(desk, {"id": "b", "name": "mark", "ends_episode": True}) == (409, "name_taken")
    put(desk, {"id": "c", "name": "listPets"}, {"id": "d", "name": "list_pets"})
    assert refusal(desk, {"id": "e", "name": "pets", "spec": SPEC}) == (409, "name_taken")


def test_a_built_in_tool_is_not_made_to_do_something_else(desk: Running) -> None:
    put(desk, {"id": "t", "name": "finish", "source": "built-in"})
    reply = desk.http.put("/api/tools/t", json={"ends_episode": True})
    assert (reply.status_code, reply.json()["code"]) == (409, "built_in_tool")


def test_the_client_registers_tools_that_act(desk: Running) -> None:
    with Client(base_url=desk.server.url) as client:
        made = client.Tools.register(
            "Desk",
            "score",
            category="read",
            endpoint={"url": URL, "token": TOKEN},
            preconditions=["tickets_read > 0"],
            effects=[{"fact": "scored", "value": {"expression": "result.score"}}],
            returns={"score": {"expression": "result.score"}},
            suggested={"text": "$ticket_id"},
        )
    assert made.endpoint == {"url": URL, "has_token": True}
    assert made.preconditions == ["tickets_read > 0"]
    (record,) = told(desk)
    assert record["returns"] == {"score": {"expression": "result.score"}}
    assert record["suggested"] == {"text": "$ticket_id"}


@pytest.mark.slow
def test_a_registered_tool_is_called_for_real_in_the_world_that_is_served(tmp_path: Path) -> None:
    def make_state(settings: ServerSettings) -> ServerState:
        return ServerState(replace(settings, allowed_hosts=frozenset({"127.0.0.1"})))

    with (
        served() as endpoint,
        LocalServer(tmp_path, make_state=make_state) as server,
        Client(base_url=server.url) as client,
    ):
        client.Environment.create("Desk", vertical="DevSim", config={"face": "text"})
        client.Tools.register(
            "Desk",
            "score",
            endpoint={"url": f"{endpoint.url}/score", "token": TOKEN},
            effects=[{"fact": "scored", "value": {"expression": "result.score"}}],
        )
        env = client.Environment.get("Desk").wait_until_ready(timeout=50)
        with env.connect() as remote:
            opening, _ = remote.reset(seed=1, options={"scenario": "devsim_release_001"})
            assert "score" in {tool["name"] for tool in json.loads(str(opening))["tools"]}
            told, *_, info = remote.step('{"tool": "score", "arguments": {}}')
            endpoint.shutdown()
            endpoint.server_close()
            gone, *_ = remote.step('{"tool": "score", "arguments": {}}')
    result = json.loads(str(told))["results"][0]
    assert result == {"tool": "score", "ok": True, "result": {"score": 7, "asked": {}, "scored": 7}}
    assert cast("JsonObject", info["state"])["scored"] == 7
    assert endpoint.seen[0]["authorization"] == f"Bearer {TOKEN}"
    assert json.loads(str(gone))["results"][0]["error"]["code"] == "endpoint_unreachable"
