"""Tools that users bring into a world, against a real server, and against a hostile one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError, ExpressionError
from rleaas.sims import Refused, World
from rleaas.sims.devsim import VERTICAL
from rleaas.sims.discrete import DiscreteWorld
from rleaas.sims.text import TextWorld
from rleaas.sims.user_tools import read_tools

from .desk_server import Desk, served

TOKEN = "tok-7c1f0a2b"


@pytest.fixture(scope="module")
def desk() -> Generator[Desk]:
    with served() as running:
        yield running


def world(*records: dict[str, Any]) -> World:
    made = World(VERTICAL, tools=read_tools(records))
    made.reset(3, "devsim_release_001")
    return made


def endpoint(desk: Desk, path: str, **said: Any) -> dict[str, Any]:
    return {
        "name": "ask",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        "endpoint": {"url": f"{desk.url}{path}", "timeout_seconds": 1, **said},
    }


def refusal(record: dict[str, Any], arguments: dict[str, Any] | None = None) -> dict[str, str]:
    result = world(record).call(record["name"], arguments or {})
    assert not result.ok
    assert result.error is not None
    return dict(result.error)


DECLARED = {
    "name": "tell_customer",
    "category": "notify",
    "parameters": {
        "type": "object",
        "properties": {"minutes": {"type": "integer", "minimum": 1}},
        "required": ["minutes"],
    },
    "preconditions": [
        {
            "condition": "tickets_read > 0",
            "code": "ticket_unread",
            "message": "read_ticket first",
        },
        "arguments.minutes <= 60",
    ],
    "effects": [
        {"fact": "customer_told", "value": True},
        {"fact": "minutes_promised", "value": {"expression": "arguments.minutes * 2"}},
        {
            "record": {
                "table": "messages",
                "id": {"expression": "ticket_id"},
                "fields": {"minutes": {"expression": "arguments.minutes"}, "by": "mail"},
            }
        },
    ],
    "returns": {"promised": {"expression": "arguments.minutes * 2"}},
}


def test_declared_effects_set_facts_and_records_once_preconditions_hold() -> None:
    played = world(DECLARED)
    told = played.call("tell_customer", {"minutes": 5})
    assert told.error == {"code": "ticket_unread", "message": "read_ticket first"}
    assert "customer_told" not in played.state.facts
    played.call("read_ticket", played.suggested("read_ticket"))
    late = played.call("tell_customer", {"minutes": 90})
    assert late.error is not None
    assert late.error["code"] == "precondition_failed"
    assert played.call("tell_customer", {"minutes": 5}).value == {"promised": 10}
    ticket = played.state.case["ticket_id"]
    assert played.state.facts["minutes_promised"] == 10
    assert played.state.tables["messages"][ticket] == {"id": ticket, "minutes": 5, "by": "mail"}
    assert played.trajectory().tool_calls == ("read_ticket", "tell_customer")


def test_effects_are_all_made_or_none() -> None:
    failing = {
        "name": "both",
        "effects": [
            {"fact": "first", "value": 1},
            {"fact": "second", "value": {"expression": "no_such_fact + 1"}},
        ],
    }
    played = world(failing)
    result = played.call("both", {})
    assert result.error is not None
    assert result.error["code"] == "effect_failed"
    assert "no_such_fact" in result.error["message"]
    assert "first" not in played.state.facts


def test_a_declared_tool_can_end_the_episode() -> None:
    played = world({"name": "give_up", "ends_episode": True})
    assert played.call("give_up", {}).ends


def test_a_record_that_says_nothing_of_what_it_does_is_no_tool_of_the_world() -> None:
    no_specs: list[Any] = [None, "prose", {"openapi": "3.0.0"}, {"swagger": "2.0", "paths": {}}]
    for spec in no_specs:
        assert read_tools([{"name": "just_a_name", "parameters": {}, "spec": spec}]) == ()


def test_an_endpoint_is_asked_for_real_with_its_token_as_bearer(desk: Desk) -> None:
    record = endpoint(desk, "/score", token=TOKEN)
    result = world(record).call("ask", {"text": "hello"})
    assert result.value == {"score": 7, "asked": {"text": "hello"}}
    seen = desk.seen[-1]
    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/score", {"text": "hello"})
    assert seen["authorization"] == f"Bearer {TOKEN}"


def test_effects_are_worked_out_from_what_the_endpoint_answered(desk: Desk) -> None:
    effects = [{"fact": "last_score", "value": {"expression": "result.score + 1"}}]
    played = world({**endpoint(desk, "/score"), "effects": effects})
    assert played.call("ask", {}).ok
    assert played.state.facts["last_score"] == 8


def test_arguments_of_a_get_are_its_path_and_query(desk: Desk) -> None:
    record = endpoint(desk, "/pets/{owner}/list", method="GET")
    record["parameters"] = {"type": "object"}
    result = world(record).call("ask", {"owner": "a/b c?", "limit": 3, "tags": ["x", "y&z"]})
    assert result.value == {"value": ["one", "two"]}
    assert desk.seen[-1]["path"] == "/pets/a%2Fb%20c%3F/list"
    assert desk.seen[-1]["query"] == {"limit": ["3"], "tags": ["x", "y&z"]}


@pytest.mark.parametrize("arguments", [{}, {"owner": ""}, {"owner": "."}, {"owner": ".."}])
def test_an_argument_is_no_way_out_of_its_path(desk: Desk, arguments: dict[str, Any]) -> None:
    before = len(desk.seen)
    record = endpoint(desk, "/pets/{owner}/list", method="GET")
    record["parameters"] = {"type": "object"}
    assert refusal(record, arguments)["code"] == "invalid_arguments"
    assert len(desk.seen) == before


def test_a_tool_that_needs_an_authorization_is_one_for_approvals() -> None:
    (tool,) = read_tools([{"name": "x", "ends_episode": True, "authorization_required": True}])
    assert tool.category == "approval"


def test_no_content_is_an_empty_result(desk: Desk) -> None:
    assert world(endpoint(desk, "/nothing")).call("ask", {}).value == {}


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/angry", "endpoint_refused", "status 500"),
        ("/missing", "endpoint_refused", "status 404"),
        ("/moved", "endpoint_refused", "status 302"),
        ("/prose", "endpoint_reply_invalid", "no JSON"),
        ("/nan", "endpoint_reply_invalid", "NaN"),
        ("/nested", "endpoint_reply_invalid", "no JSON"),
        ("/huge", "endpoint_reply_too_large", "65536 bytes"),
        ("/cut", "endpoint_unreachable", "RemoteProtocolError"),
    ],
)
def test_what_an_endpoint_does_wrong_is_a_refused_call(
    desk: Desk, path: str, code: str, said: str
) -> None:
    told = refusal(endpoint(desk, path))
    assert told["code"] == code
    assert said in told["message"]


@pytest.mark.parametrize("path", ["/slow", "/drip"])
def test_an_endpoint_that_takes_its_time_is_given_up_in_time(desk: Desk, path: str) -> None:
    began = time.monotonic()
    told = refusal(endpoint(desk, path, timeout_seconds=0.3))
    assert told["code"] == "endpoint_timeout"
    assert time.monotonic() - began < 5


def test_an_endpoint_that_is_gone_is_a_refused_call() -> None:
    with served() as gone:
        record = endpoint(gone, "/score")
    assert refusal(record)["code"] == "endpoint_unreachable"


@pytest.mark.parametrize("path", ["/echo", "/angry"])
def test_a_token_is_in_no_result_even_if_the_endpoint_echoes_it(desk: Desk, path: str) -> None:
    result = world(endpoint(desk, path, token=TOKEN)).call("ask", {})
    assert TOKEN not in json.dumps(result.to_json())
    assert "***" in json.dumps(result.to_json())


def test_an_endpoint_that_may_not_be_asked_is_not_asked(desk: Desk) -> None:
    before = len(desk.seen)
    told = refusal(endpoint(desk, "/score", refused="host 'x' is not a public address"))
    assert told["code"] == "endpoint_not_allowed"
    assert len(desk.seen) == before


def test_an_endpoint_is_dialled_where_it_was_looked_at(desk: Desk) -> None:
    record = endpoint(desk, "/score", addresses=["127.0.0.1"])
    record["endpoint"]["url"] = record["endpoint"]["url"].replace("127.0.0.1", "desk.invalid")
    assert world(record).call("ask", {}).ok


SPEC: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets/{owner}": {
            "parameters": [
                {"name": "owner", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": {
                "operationId": "listPets",
                "summary": "The pets of somebody.",
                "parameters": [{"$ref": "#/components/parameters/Limit"}],
            },
        },
        "/score": {
            "post": {
                "operationId": "scorePet",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    },
                },
            }
        },
    },
    "components": {
        "parameters": {
            "Limit": {"name": "limit", "in": "query", "schema": {"$ref": "#/components/schemas/N"}}
        },
        "schemas": {
            "N": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            "Pet": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "age": {"type": "integer", "nullable": True},
                },
            },
        },
    },
}


def spec(desk: Desk, **said: Any) -> dict[str, Any]:
    return {"name": "pets", "spec": {**SPEC, "servers": [{"url": desk.url}], **said}}


def test_each_operation_of_a_description_is_a_tool_that_is_called_for_real(desk: Desk) -> None:
    played = world(spec(desk))
    added = {tool.name: tool for tool in played.tools if tool not in VERTICAL.tools}
    assert sorted(added) == ["list_pets", "score_pet"]
    assert added["list_pets"].description == "The pets of somebody."
    assert played.call("list_pets", {"owner": "ada", "limit": 2}).value == {"value": ["one", "two"]}
    assert (desk.seen[-1]["path"], desk.seen[-1]["query"]) == ("/pets/ada", {"limit": ["2"]})
    assert played.call("score_pet", {"name": "Rex", "age": None}).value is not None
    assert desk.seen[-1]["body"] == {"name": "Rex", "age": None}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_pets", {"owner": "ada", "limit": 0}),
        ("list_pets", {}),
        ("score_pet", {"age": 3}),
        ("score_pet", {"name": "Rex", "wings": 2}),
    ],
)
def test_arguments_that_break_a_description_never_reach_the_endpoint(
    desk: Desk, tool: str, arguments: dict[str, Any]
) -> None:
    before = len(desk.seen)
    result = world(spec(desk)).call(tool, arguments)
    assert result.error is not None
    assert result.error["code"] == "invalid_arguments"
    assert len(desk.seen) == before


def test_a_description_may_be_yaml_and_its_server_that_of_the_endpoint(desk: Desk) -> None:
    text = (
        "openapi: 3.1.0\npaths:\n  /score:\n    post:\n      operationId: score-it\n"
        "      requestBody:\n        content:\n          application/json:\n"
        "            schema: {type: object, properties: {n: {type: integer}}}\n"
    )
    record = {"name": "pets", "spec": text, "endpoint": {"url": desk.url, "token": TOKEN}}
    assert world(record).call("score_it", {"n": 1}).ok
    assert desk.seen[-1]["authorization"] == f"Bearer {TOKEN}"


def schema(**parts: Any) -> dict[str, Any]:
    return {"name": "x", "effects": [{"fact": "f", "value": 1}], "parameters": parts}


LOOP: dict[str, Any] = {
    "Pet": {"type": "object", "properties": {"mother": {"$ref": "#/components/schemas/Pet"}}}
}


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": "two words", "ends_episode": True}, "its name has letters"),
    ({"name": "x", "endpoint": "http://a"}, "endpoint is an object"),
    ({"name": "x", "endpoint": {"url": "ftp://a/b"}}, "http or https URL"),
    ({"name": "x", "endpoint": {"url": "http://"}}, "http or https URL"),
    ({"name": "x", "endpoint": {"url": "http://u:p@a/"}}, "password"),
    ({"name": "x", "endpoint": {"url": "http://{host}/a"}}, "in the path"),
    ({"name": "x", "endpoint": {"url": "http://a/{0}"}}, "braces"),
    ({"name": "x", "endpoint": {"url": "http://a/{b"}}, "cannot be read"),
    ({"name": "x", "endpoint": {"url": "http://a/{b:>99}"}}, "braces"),
    ({"name": "x", "endpoint": {"url": "http://a/{b!r}"}}, "braces"),
    ({"name": "x", "endpoint": {"url": "http://a", "method": "TRACE"}}, "endpoint.method"),
    ({"name": "x", "endpoint": {"url": "http://a", "timeout_seconds": 9e9}}, "timeout"),
    ({"name": "x", "endpoint": {"url": "http://a", "token": "a\nb"}}, "endpoint.token"),
    ({"name": "x", "endpoint": {"url": "http://a", "metod": "GET"}}, "no 'metod'"),
    ({"name": "x", "effects": [{"fact": "Not A Word", "value": 1}]}, "snake_case"),
    ({"name": "x", "effects": [{"fact": "f"}]}, "has no value"),
    ({"name": "x", "effects": {"fact": "f"}}, "effects is a list"),
    ({"name": "x", "effects": [{"record": {"table": "t", "fields": {}}}]}, "an id"),
    ({"name": "x", "preconditions": [3]}, "a precondition is"),
    ({"name": "x", "ends_episode": "yes"}, "ends_episode"),
    ({"name": "x", "endpoint": {"url": "http://a"}, "spec": "{"}, "neither JSON nor YAML"),
    ({"name": "x", "endpoint": {"url": "http://a"}, "spec": {"swagger": "2.0"}}, "OpenAPI 3"),
    (
        {"name": "x", "endpoint": {"url": "http://a"}, "spec": {"openapi": "3.0.0", "paths": {}}},
        "0 operations",
    ),
    (schema(**{"$ref": "http://internal/schema.json"}), "not offered"),
    (schema(properties={'a"]; import os #': {}}), "no name of an argument"),
    (schema(properties={"a": {"type": "date"}}), "is not 'date'"),
    (schema(properties={"a": {"pattern": "("}}), "is not '('"),
    (schema(type="array"), "schema of an object"),
    (
        {
            "name": "x",
            "spec": {
                **SPEC,
                "servers": [{"url": "http://a"}],
                "components": {**SPEC["components"], "schemas": {**LOOP, "N": {}}},
            },
        },
        "contains itself",
    ),
]


@pytest.mark.parametrize(("record", "said"), WRONG)
def test_a_record_that_is_wrong_is_refused_when_it_is_read(
    record: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)) as caught:
        read_tools([record])
    assert caught.value.code == "invalid_tool"


def test_a_condition_that_cannot_be_read_is_refused_with_a_caret() -> None:
    with pytest.raises(ExpressionError) as caught:
        read_tools([{"name": "x", "preconditions": ["a ==== b"]}])
    assert "^" in str(caught.value)


def test_two_tools_cannot_have_one_name() -> None:
    with pytest.raises(ConfigurationError, match="finish"):
        world({"name": "finish", "ends_episode": True})
    with pytest.raises(ConfigurationError, match="two tools"):
        read_tools([DECLARED, DECLARED])


def test_user_tools_are_in_the_text_and_the_discrete_face(desk: Desk) -> None:
    tools = read_tools(
        [DECLARED, {**endpoint(desk, "/score"), "suggested": {"text": "$ticket_id"}}]
    )
    text = TextWorld(VERTICAL, tools=tools)
    opening, _ = text.reset(seed=3, options={"scenario": "devsim_release_001"})
    assert {"tell_customer", "ask"} <= {tool["name"] for tool in json.loads(opening)["tools"]}
    told, *_, info = text.step('{"tool": "ask", "arguments": {"text": "hi"}}')
    assert json.loads(told)["results"][0]["result"]["score"] == 7
    assert [call["tool"] for call in info["tool_calls"]] == ["ask"]
    discrete = DiscreteWorld(VERTICAL, tools=tools)
    discrete.reset(seed=3, options={"scenario": "devsim_release_001"})
    names: list[str] = discrete.metadata["action_names"]
    *_, info = discrete.step(np.int64(names.index("ask")))
    assert info["tool_calls"][0]["arguments"] == {"text": discrete.world.state.case["ticket_id"]}
    *_, info = discrete.step(np.int64(names.index("tell_customer")))
    assert info["refused_calls"][0]["arguments"] == {"minutes": 1}
    assert info["refused_calls"][0]["error"]["code"] == "ticket_unread"


def test_a_refusal_of_a_tool_is_no_error_of_the_world() -> None:
    tool = read_tools([{"name": "x", "preconditions": ["false"]}])[0]
    with pytest.raises(Refused):
        tool.run(world().state, {})
