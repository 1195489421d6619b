"""Both protocols, over the official clients, against a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rlcore import ConfigurationError, ModelFailed, Secret
from rleaas.llm import AnthropicChat, Chat, DirectoryCache, ModelEndpoint, OpenAIChat, chat_of

from .model_server import ModelServer, Said, in_turn, model_server

Make = Callable[[ModelServer], Chat]


def openai(server: ModelServer, key: str | None = "sk-1", retries: int = 2) -> OpenAIChat:
    secret = None if key is None else Secret(key)
    return OpenAIChat("tiny", base_url=server.openai, api_key=secret, retries=retries)


def anthropic(server: ModelServer, key: str | None = "sk-1", retries: int = 2) -> AnthropicChat:
    secret = None if key is None else Secret(key)
    return AnthropicChat("tiny", base_url=server.root, api_key=secret, retries=retries)


both = pytest.mark.parametrize("make", [openai, anthropic])
TOOL: dict[str, object] = {
    "name": "pay",
    "description": "Pays.",
    "parameters": {"type": "object", "properties": {}},
}
TALK: list[dict[str, object]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Pay 5."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "name": "pay", "arguments": '{"amount": 5}'}],
    },
    {"role": "tool", "tool_call_id": "a", "content": '{"ok": true}'},
]


@both
def test_a_reply_has_its_text_and_what_it_took(make: Make) -> None:
    with model_server("hello") as server:
        reply = make(server).complete([{"role": "user", "content": "hi"}])

    assert (reply.text, reply.tool_calls) == ("hello", ())
    assert (reply.input_tokens, reply.output_tokens) == (11, 3)


@both
def test_the_key_goes_to_the_endpoint_and_into_no_word_about_it(make: Make) -> None:
    with model_server("hello") as server:
        chat = make(server)
        chat.complete([{"role": "user", "content": "hi"}])
        headers = {name.lower(): value for name, value in server.requests[0].headers.items()}

    assert "sk-1" in (headers.get("authorization", "") + headers.get("x-api-key", ""))
    assert "sk-1" not in repr(chat) + chat.identity


@both
def test_tools_and_their_results_travel(make: Make) -> None:
    with model_server(Said("", (("pay", {"amount": 7}),))) as server:
        reply = make(server).complete(TALK, tools=[TOOL])
        request = server.requests[0]

    assert [(one.name, json.loads(one.arguments)) for one in reply.tool_calls] == [
        ("pay", {"amount": 7})
    ]
    assert request.system == "Be brief."
    assert '"ok": true' in json.dumps(request).replace("\\", "")
    assert request["tools"][0].get("name") == "pay" or (
        request["tools"][0]["function"]["name"] == "pay"
    )


def test_arguments_that_are_no_json_are_handed_on_as_they_are() -> None:
    with model_server(Said("", (("pay", '{"amount": '),))) as server:
        reply = openai(server).complete(TALK[:2], tools=[TOOL])

    assert reply.tool_calls[0].arguments == '{"amount": '


@both
def test_an_answer_of_a_schema_is_asked_for_as_one(make: Make) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    with model_server('{"a": 1}') as server:
        make(server).complete(TALK[:2], json_schema=schema)
        sent = json.dumps(server.requests[0])

    assert json.dumps(schema) in sent


@both
def test_an_endpoint_that_takes_no_schema_is_asked_without_one(make: Make) -> None:
    answer = in_turn(Said("no schemas here", status=400), "fine")
    with model_server(answer) as server:
        chat = make(server)
        texts = [chat.complete(TALK[:2], json_schema={"type": "object"}).text for _ in range(2)]
        schemas = ["json_schema" in json.dumps(one) for one in server.requests]

    assert texts == ["fine", "fine"]
    assert schemas == [True, False, False]


@both
def test_an_endpoint_that_is_busy_is_asked_again(make: Make) -> None:
    busy = Said("busy", status=429, headers={"retry-after": "0"})
    with model_server(in_turn(busy, Said("down", status=503), "hello")) as server:
        reply = make(server).complete(TALK[:2])

    assert reply.text == "hello"
    assert len(server.requests) == 3


@both
@pytest.mark.parametrize(
    ("said", "reason", "asked"),
    [
        (Said("no such key", status=401), "refused", 1),
        (Said("no such model", status=404), "refused", 1),
        (Said("down", status=500, headers={"retry-after": "0"}), "unreachable", 3),
        (Said(body={}), "invalid_answer", 1),
        (Said(body=[1]), "invalid_answer", 1),
    ],
)
def test_an_endpoint_that_fails_is_named_with_a_reason(
    make: Make, said: Said, reason: str, asked: int
) -> None:
    with model_server(said) as server, pytest.raises(ModelFailed) as caught:
        make(server).complete(TALK[:2])

    assert (caught.value.reason, len(server.requests)) == (reason, asked)
    assert caught.value.model == make(server).identity
    assert "sk-1" not in str(caught.value)


@both
def test_an_endpoint_that_drips_is_given_up_in_time(make: Make) -> None:
    began = time.monotonic()
    with model_server(Said("slow", drips=True)) as server, pytest.raises(ModelFailed) as caught:
        make(server).complete(TALK[:2], timeout=0.4)

    assert caught.value.reason == "timeout"
    assert time.monotonic() - began < 5


@both
def test_an_endpoint_that_is_gone_is_unreachable(make: Make) -> None:
    with model_server("hello") as server:
        chat = make(server)
    with pytest.raises(ModelFailed) as caught:
        chat.complete(TALK[:2], timeout=2)

    assert caught.value.reason == "unreachable"
    assert caught.value.retryable


def test_a_url_says_which_protocol_it_speaks() -> None:
    plain = ModelEndpoint(url="http://u:p@127.0.0.1:1/v1?k=1", model="tiny")
    marked = ModelEndpoint(url="anthropic:http://127.0.0.1:1", model="tiny")
    own = ModelEndpoint(url="https://api.anthropic.com", model="tiny")

    assert chat_of(plain).identity == "openai:http://127.0.0.1:1/v1:tiny"
    assert chat_of(marked, "big").identity == "anthropic:http://127.0.0.1:1:big"
    assert chat_of(own).identity == "anthropic:https://api.anthropic.com:tiny"
    with pytest.raises(ConfigurationError, match="no URL of a model's endpoint"):
        chat_of(ModelEndpoint(url="localhost:8000", model="tiny"))


def test_answers_are_kept_over_restarts_and_the_oldest_go(tmp_path: Path) -> None:
    digests = [f"{number:064x}" for number in range(30)]
    cache = DirectoryCache(tmp_path, most=20)
    for digest in digests:
        cache.put(digest, f"answer {digest}")

    again = DirectoryCache(tmp_path, most=20)

    assert again.get(digests[-1]) == f"answer {digests[-1]}"
    assert again.get("f" * 64) is None
    assert len([one for one in digests if again.get(one)]) <= 22
    with pytest.raises(ValueError, match="no SHA-256"):
        again.get("../secret")
