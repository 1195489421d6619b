"""Language models that play in evaluations: whose they are, and what they may be asked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from rlcore import ConfigurationError, InvalidRequestError, Secret
from rleaas.llm import ModelEndpoint
from rleaas.server.agent_models import AgentModels, as_asked
from rleaas.server.outbound import Outbound
from rleaas.server.settings import agent_endpoint

from ..llm.model_server import model_server  # noqa: TID252 - plays the model
from .conftest import Running

HERE = Outbound({"127.0.0.1"})
ASKED = [{"role": "user", "content": "Hello?"}]


def test_the_operators_model_is_asked_with_the_operators_key_and_others_without() -> None:
    with model_server("Mine.") as own, model_server("Yours.") as other:
        endpoint = ModelEndpoint(url=own.openai, model="big", key=Secret("sk-agent"))
        models = AgentModels(endpoint, HERE)
        mine = models.settled({"kind": "llm"})
        yours = models.settled({"kind": "llm", "base_url": other.openai, "model": "tiny"})

        assert models.complete(mine, ASKED, []).text == "Mine."
        assert models.complete(yours, ASKED, []).text == "Yours."

    assert own.requests[0].headers["authorization"] == "Bearer sk-agent"
    assert "sk-agent" not in str(other.requests[0].headers)
    assert "base_url" not in mine
    assert (mine["model"], yours["model"]) == ("big", "tiny")
    assert as_asked(yours) == {
        "kind": "llm",
        "base_url": other.openai,
        "protocol": "openai",
        "model": "tiny",
        "timeout_seconds": 60.0,
    }


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "no_agent_model"),
        ({"base_url": "http://127.0.0.1:1/v1"}, "invalid_agent"),
        ({"base_url": "nowhere", "model": "m"}, "invalid_agent"),
        ({"base_url": "http://[", "model": "m"}, "invalid_agent"),
        ({"base_url": "http://me:secret@127.0.0.1:1/v1", "model": "m"}, "invalid_agent"),
        ({"base_url": "http://127.0.0.1:1/v1?key=secret", "model": "m"}, "invalid_agent"),
        ({"base_url": "http://127.0.0.1:1/v1", "model": "m"}, "address_not_public"),
        ({"base_url": "http://169.254.169.254/v1", "model": "m"}, "address_not_public"),
    ],
)
def test_an_agent_that_cannot_be_asked_is_refused(said: Mapping[str, object], code: str) -> None:
    with pytest.raises((ConfigurationError, InvalidRequestError)) as caught:
        AgentModels(None, Outbound()).settled({"kind": "llm", **said})
    assert caught.value.code == code


def test_where_an_agent_is_is_looked_at_again_when_it_is_asked() -> None:
    agent = AgentModels(None, HERE).settled(
        {"kind": "llm", "base_url": "http://127.0.0.1:1/v1", "model": "m"}
    )
    with pytest.raises(InvalidRequestError, match="not a public address"):
        AgentModels(None, Outbound()).complete(agent, ASKED, [])


def test_the_servers_agent_is_a_url_and_a_model_with_its_key_in_the_environment() -> None:
    found = agent_endpoint("http://127.0.0.1:1/v1", "tiny", {"RLEAAS_AGENT_KEY": "sk-1"})

    assert found is not None
    assert (found.key and found.key.reveal(), found.model) == ("sk-1", "tiny")
    assert agent_endpoint(None, None, {"RLEAAS_JUDGE_KEY": "sk-1"}) is None
    with pytest.raises(ConfigurationError, match="an agent has a URL and a model"):
        agent_endpoint(None, "tiny", {})


LLM: dict[str, object] = {"kind": "llm", "base_url": "http://127.0.0.1:1/v1", "model": "m"}


@pytest.mark.parametrize(
    ("environment", "agent", "code"),
    [
        ("CartPole", "expert", "agent_needs_world"),
        ("CartPole", "nobody", "unknown_agent"),
        ("Bank", "llm", "wrong_face"),
        ("Bank", LLM, "wrong_face"),
        ("Desk", "llm", "no_agent_model"),
        ("Desk", LLM, "address_not_public"),
        ("Desk", {"kind": "human"}, "invalid_request"),
        ("Desk", {**LLM, "timeout_seconds": -1}, "invalid_request"),
    ],
)
def test_an_agent_that_could_not_play_there_is_refused_at_once(
    platform: Running, environment: str, agent: object, code: str
) -> None:
    platform.register()
    platform.register("Bank", source="custom", vertical="FinSim")
    platform.register("Desk", source="custom", vertical="FinSim", config={"face": "text"})

    body = {"agent": agent, "environment_name": environment}
    reply = platform.http.post("/api/evaluations", json=body)

    assert reply.status_code in (400, 422), reply.text
    assert reply.json()["code"] == code
