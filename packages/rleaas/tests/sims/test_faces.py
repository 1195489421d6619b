"""The faces of a world, as gymnasium and trainers see them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rlcore import ConfigurationError
from rleaas.sims.discrete import DiscreteWorld
from rleaas.sims.text import MOST_CALLS, TextWorld
from rleaas.verify.episode import tool_calls_of

from .shop import SHOP

# gymnasium advises against what text spaces and small boxes are; nothing else may be said.
ADVICE = r".*(not supported by|Not able to test alternative render modes|env\.spec|flatten).*"


@pytest.mark.parametrize("face", [DiscreteWorld, TextWorld])
def test_gymnasium_finds_nothing_wrong(face: type[DiscreteWorld] | type[TextWorld]) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=ADVICE)
        check_env(face(SHOP), skip_render_check=True)


def test_the_discrete_face_calls_tools_with_what_they_suggest() -> None:
    env = DiscreteWorld(SHOP)
    observation, info = env.reset(seed=1, options={"scenario": "shop_001"})
    assert env.metadata["action_names"] == ["look_at_order", "refund", "deny"]
    names = env.metadata["observation_names"]
    assert len(names) == len(observation)
    assert (info["scenario_id"], info["tool_calls"]) == ("shop_001", [])
    observation, reward, terminated, truncated, info = env.step(np.int64(1))
    assert info["tool_calls"] == []
    assert info["refused_calls"][0]["error"]["code"] == "not_looked"
    assert dict(zip(names, observation.tolist(), strict=True)) == {
        "looked": 0.0,
        "allowed.look_at_order": 1.0,
        "allowed.refund": 1.0,
        "allowed.deny": 1.0,
        "ran.look_at_order": 0.0,
        "ran.refund": 0.0,
        "ran.deny": 0.0,
        "last_call_ran": 0.0,
        "budget_left": 0.75,
    }
    observation, reward, terminated, truncated, info = env.step(np.int64(0))
    assert [call.name for call in tool_calls_of(0, info, {})] == ["look_at_order"]
    assert dict(zip(names, observation.tolist(), strict=True))["ran.look_at_order"] == 1.0
    observation, reward, terminated, truncated, info = env.step(np.int64(1))
    assert (reward, terminated, truncated, info["success"]) == (0.99, True, False, True)
    assert info["state"]["refunded"] == info["state"]["amount"]


def test_the_text_face_tells_all_that_a_model_needs() -> None:
    env = TextWorld(SHOP)
    observation, _ = env.reset(seed=1, options={"scenario": {"id": "shop_001", "tier": 1}})
    opening = json.loads(observation)
    assert opening["prompt"].startswith("Refund ")
    assert [tool["name"] for tool in opening["tools"]] == ["look_at_order", "refund", "deny"]
    order, amount = env.world.state.case["order_id"], env.world.state.case["amount"]
    calls = [
        {"tool": "look_at_order", "arguments": {"order_id": order}},
        {"tool": "refund", "arguments": {"amount": amount}},
    ]
    action = json.dumps({"tool_calls": calls})
    observation, reward, terminated, _, info = env.step(action)
    assert json.loads(observation) == {
        "results": [
            {"tool": "look_at_order", "ok": True, "result": {"id": order, "amount": amount}},
            {"tool": "refund", "ok": True, "result": {"refunded": amount}},
        ],
        "budget_left": 2,
    }
    assert reward == pytest.approx(0.98)
    assert terminated
    assert info["success"] is True
    assert [call["tool"] for call in info["tool_calls"]] == ["look_at_order", "refund"]


@pytest.mark.parametrize(
    "action",
    [
        "",
        "refund it",
        "[" * 5_000,
        '{"tool": 3}',
        '{"arguments": {}}',
        '{"tool": "refund", "arguments": {"amount": NaN}}',
        '{"tool_calls": []}',
        json.dumps([{"tool": "deny"}] * (MOST_CALLS + 1)),
        "x" * 100_000,
    ],
)
def test_text_that_is_no_call_is_a_refused_one(action: str) -> None:
    env = TextWorld(SHOP)
    env.reset(seed=1, options={"scenario": "shop_001"})
    observation, reward, terminated, truncated, info = env.step(action)
    assert json.loads(observation)["results"][0]["error"]["code"] == "invalid_arguments"
    assert (reward, terminated, truncated) == (-0.03, False, False)
    assert info["tool_calls"] == []
    assert len(info["refused_calls"]) == 1


def test_the_budget_truncates() -> None:
    env = TextWorld(SHOP)
    env.reset(seed=1, options={"scenario": "shop_002"})
    ends = [env.step("no")[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_options_that_name_no_scenario_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="an id or an object"):
        DiscreteWorld(SHOP).reset(seed=1, options={"scenario": 3})
