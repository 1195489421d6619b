"""An environment of a vertical without a source is served by the vertical's built-in world."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rleaas import Client
from rleaas.models.environment import Environment

from .conftest import Running, Start


def test_a_vertical_brings_its_tools_and_verifiers_and_a_version_for_each_config(
    platform: Running,
) -> None:
    made = Environment.model_validate(
        platform.register("Bank", source="custom", vertical="finsim", config={"org_size": "small"})
    )
    assert (made.vertical, made.domain, made.source) == ("FinSim", "finance", "sim://FinSim")
    assert (made.version, made.tool_count) == (1, 18)
    tools = platform.listed(platform.ok(platform.http.get("/api/tools?environment=Bank")), "tools")
    aml = next(tool for tool in tools if tool["name"] == "run_aml_check")
    assert (aml["source"], aml["category"], aml["compliance_tags"]) == ("built-in", "read", ["AML"])
    verifier = platform.ok(platform.http.get("/api/verifiers/finsim_aml_check"))
    assert (verifier["source"], verifier["type"]) == ("built-in", "rule_based")

    change = {"config": {"org_size": "small", "face": "text"}}
    changed = platform.ok(platform.http.put("/api/environments/Bank", json=change))
    assert changed["version"] == 2
    again = platform.register("Bank", source="custom", vertical="FinSim", **change)
    assert (again["version"], again["tool_count"]) == (2, 18)


def test_a_vertical_that_is_told_later_brings_its_world(platform: Running) -> None:
    platform.register("Later", source="custom", config={"jurisdiction": "EU"})
    platform.ok(platform.http.put("/api/environments/Later/category", json={"category": "FinSim"}))
    got = platform.ok(platform.http.get("/api/environments/Later"))
    assert (got["source"], got["tool_count"]) == ("sim://FinSim", 18)
    assert got["config"] == {"jurisdiction": "EU"}


def test_an_environment_with_a_source_keeps_it_whatever_its_vertical(platform: Running) -> None:
    platform.register("CartPole", vertical="FinSim")
    again = platform.register("CartPole", source="custom", vertical="FinSim")
    assert (again["source"], again["tool_count"]) == ("gym://CartPole-v1", 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"config": {"org_sise": 3}}, "org_size"),
        ({"config": {"jurisdiction": "Atlantis"}}, "US, EU, UK, SG"),
        ({"config": {"face": "video"}}, "discrete, text"),
        ({"source": "sim://FinSim", "kwargs": {"a": 1}}, "config"),
        ({"source": "sim://BankSim"}, "FinSim"),
    ],
)
def test_a_world_that_cannot_be_made_is_refused_at_once(
    platform: Running, fields: dict[str, object], said: str
) -> None:
    body = {"name": "Bank", "source": "custom", "vertical": "FinSim", **fields}
    reply = platform.http.post("/api/custom-environments", json=body)
    assert reply.status_code in (400, 422)
    assert said in reply.text
    assert platform.http.get("/api/environments/Bank").status_code == 404


@pytest.mark.slow
def test_both_faces_of_a_registered_world_are_played_over_the_wire(start: Start) -> None:
    running = start(real=True)
    with Client(base_url=running.server.url) as client:
        env = client.Environment.create(name="Bank", vertical="FinSim").wait_until_ready(timeout=50)
        with env.connect() as remote:
            names = list(remote.metadata["action_names"])
            _, info = remote.reset(seed=1, options={"scenario": "finsim_wire_001"})
            assert info["scenario_id"] == "finsim_wire_001"
            remote.step(np.int64(names.index("run_aml_check")))
            _, reward, terminated, _, info = remote.step(np.int64(names.index("approve_transfer")))
            assert reward == pytest.approx(0.99)
            assert (terminated, info["success"]) == (True, True)
            assert info["state"]["decision"] == "approved"

        config = {"face": "text", "jurisdiction": "EU"}
        env = client.Environment.create(name="Desk", vertical="FinSim", config=config)
        env.wait_until_ready(timeout=50)
        env.configure_tools(access_pattern="read_only")
        env.stop()  # the next start obeys
        with env.connect() as remote:
            observation, info = remote.reset(seed=1, options={"scenario": "finsim_wire_001"})
            assert " EUR " in json.loads(str(observation))["prompt"]
            call = {"tool": "run_aml_check", "arguments": {"transfer_id": "tr_0001"}}
            observation, *_ = remote.step(json.dumps(call))
            told = json.loads(str(observation))["results"][0]
            assert (told["ok"], told["result"]["risk"]) == (True, "low")
            call["tool"] = "approve_transfer"
            observation, *_ = remote.step(json.dumps(call))
            refused = json.loads(str(observation))["results"][0]
            assert refused["error"]["code"] == "tool_not_permitted"
            observation, *_ = remote.step("approve it, please")
            refused = json.loads(str(observation))["results"][0]
            assert refused["error"]["code"] == "invalid_arguments"


def test_a_published_word_without_effect_is_kept_and_said_to_have_none(platform: Running) -> None:
    config = {"departments": ["loans"], "customer_accounts": 30, "data_version": "2025"}
    made = platform.register("Bank", source="custom", vertical="FinSim", config=config)

    assert made["config"] == config
    assert made["warnings"] == ["config.departments has no effect: the world of FinSim has none"]
    changed = {**config, "data_version": "2026"}
    again = platform.register("Bank", source="custom", vertical="FinSim", config=changed)
    assert again["version"] == 2
