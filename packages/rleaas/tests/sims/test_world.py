"""What the kit promises of every world, on one that is small enough to see through."""

from __future__ import annotations

import math

import pytest
from rlcore import ConfigurationError
from rleaas.sims import Call, World
from rleaas.sims.access import ToolAccess
from rleaas.sims.library import BASED_ON

from .shop import SHOP


def world(**config: object) -> World:
    return World(SHOP, config)


def test_a_reference_succeeds_and_a_bad_solution_does_not() -> None:
    played = world()
    for scenario in SHOP.scenarios:
        for seed in range(3):
            played.reset(seed, scenario.id)
            played.play(scenario.reference)
            assert played.succeeded()
            played.reset(seed, scenario.id)
            played.play(scenario.bad)
            assert not played.succeeded()


def test_the_last_call_brings_the_reward_of_the_task() -> None:
    played = world()
    played.reset(1, "shop_001")
    look, refund = played.play([Call("look_at_order"), Call("refund")])
    assert (look.reward, look.ends) == (-0.01, False)
    assert (refund.reward, refund.ends) == (0.99, True)


def test_a_refused_call_costs_a_step_and_changes_nothing() -> None:
    played = world()
    played.reset(1, "shop_001")
    before = played.state.frozen()
    refused = played.call("refund", {"amount": 5})
    assert refused.to_json() == {
        "ok": False,
        "error": {"code": "not_looked", "message": "look at the order first"},
    }
    assert refused.reward == -0.03
    assert played.steps_taken == 1
    played.state.clock -= 1
    assert played.state.frozen() == before


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("look_at_order", {}, "invalid_arguments", "arguments must contain ['order_id']"),
        ("look_at_order", {"order_id": "x"}, "invalid_arguments", "arguments.order_id must match"),
        ("look_at_order", None, "invalid_arguments", "arguments must be object"),
        ("refund", {"amount": math.nan}, "invalid_arguments", "arguments.amount must be a finite"),
        ("refund", {"amount": 1, "to": "me"}, "invalid_arguments", "arguments must not contain"),
        ("lookat_order", {}, "unknown_tool", "did you mean 'look_at_order'?"),
        ("", {}, "unknown_tool", "see the list of tools"),
    ],
)
def test_a_call_that_is_wrong_is_told_what_is(
    tool: str, arguments: object, code: str, said: str
) -> None:
    played = world()
    played.reset(1, "shop_001")
    error = played.call(tool, arguments).error
    assert error is not None
    assert error["code"] == code
    assert said in error["message"]


def test_a_tool_outside_the_task_is_not_available() -> None:
    played = world()
    opening = played.reset(1, "shop_002")
    assert [tool.name for tool in opening.tools] == ["refund", "deny"]
    error = played.call("look_at_order", {"order_id": "ord_1"}).error
    assert error is not None
    assert error["code"] == "tool_not_available"


def test_the_budget_ends_an_episode_and_what_comes_after_counts_for_nothing() -> None:
    played = world()
    assert played.reset(1, "shop_002").budget == 3
    played.call("no", {})
    played.call("no", {})
    last = played.call("no", {})
    assert last.ends
    assert played.over
    assert not played.ended
    after = played.call("refund", {"amount": 1})
    assert after.error is not None
    assert after.error["code"] == "episode_over"
    assert (after.reward, played.steps_taken) == (0.0, 3)
    assert not played.succeeded()
    assert played.trajectory().truncated


def test_the_same_seed_is_the_same_episode() -> None:
    first, second = world(), world()
    for seed in range(20):
        assert first.reset(seed) == second.reset(seed)
        assert first.state == second.state
    assert first.reset(20).prompt != first.reset(21).prompt


def test_an_episode_leaves_the_organisation_as_it_was() -> None:
    played = world()
    played.reset(3, "shop_001")
    before = played.state.frozen()
    played.state.tables["orders"].clear()
    played.reset(3, "shop_001")
    assert played.state.frozen() == before


def test_what_is_drawn_obeys_tier_ceiling_and_split() -> None:
    everything = world(split="all")
    assert {everything.reset(seed) and everything.scenario.id for seed in range(20)} == {
        "shop_001",
        "shop_002",
    }
    everything.reset(0, tier=2)
    assert everything.scenario.id == "shop_002"
    learning = world()
    assert {learning.reset(seed) and learning.scenario.id for seed in range(20)} == {"shop_001"}
    with pytest.raises(ConfigurationError, match="draws no scenario of tier 2"):
        world(split="all", complexity_ceiling=1).reset(0, tier=2)


def test_a_scenario_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'shop_001'"):
        world().reset(0, "shop_01")


def test_a_users_scenario_varies_the_one_that_it_names() -> None:
    played = world()
    opening = played.reset(
        0,
        {
            "id": "scen_mine",
            "tier": 1,
            "task_prompt": "Be {quick}.",
            "max_steps": 2,
            "available_tools": ["refund", "a_tool_of_another_environment"],
            "context_injection": {BASED_ON: "shop_002"},
        },
    )
    assert opening.prompt.startswith("Be {quick}.\nRefund order ord_")
    assert [tool.name for tool in opening.tools] == ["refund"]
    assert (opening.budget, played.scenario.id) == (2, "scen_mine")
    played.play([Call("refund")])
    assert played.succeeded()


def test_tools_that_are_none_of_the_worlds_are_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Did you mean 'refund'") as caught:
        world().reset(0, {"id": "scen_mine", "tier": 1, "available_tools": ["refnd", "x"]})
    assert caught.value.code == "unknown_tool"


def test_a_users_scenario_without_a_base_is_always_the_same_one_of_its_tier() -> None:
    played = world(split="all")
    for seed in range(5):
        played.reset(seed, {"id": "scen_other", "tier": 2, "task_prompt": ""})
        assert played.scenario.success == SHOP.scenarios[1].success


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"orgsize": 3}, "Did you mean 'org_size'"),
        ({"org_size": 0}, "config.org_size is from 1 to 1000"),
        ({"org_size": "huge"}, "small, medium, large"),
        ({"region": "Mars"}, "config.region is one of EU, US, not 'Mars'"),
        ({"complexity_ceiling": True}, "config.complexity_ceiling"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused(
    config: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        World(SHOP, config)


def test_a_configuration_has_effect() -> None:
    played = world(org_size="small")
    played.reset(0)
    assert len(played.state.tables["orders"]) == 8
    assert world(region="us").config["region"] == "US"


def test_a_users_tool_is_allowed_everywhere_and_may_not_take_a_name() -> None:
    mine = SHOP.tools[2]
    with pytest.raises(ConfigurationError, match="two tools 'deny'"):
        World(SHOP, tools=[mine])


@pytest.mark.parametrize(
    ("told", "left", "code"),
    [
        ({}, ["look_at_order", "refund", "deny"], None),
        ({"access_pattern": "full", "approval_mode": "auto_grant"}, None, None),
        ({"access_pattern": "read_only"}, ["look_at_order"], "tool_not_permitted"),
        ({"tool_names": ["refund"]}, ["refund"], "tool_not_permitted"),
        ({"approval_mode": "block"}, ["look_at_order", "refund"], "approval_needed"),
        ({"approval_mode": "real_approval"}, ["look_at_order", "refund"], "approval_needed"),
    ],
)
def test_what_an_environment_does_not_permit_is_refused(
    told: dict[str, object], left: list[str] | None, code: str | None
) -> None:
    played = world()
    played.restrict(ToolAccess.of(told))
    opening = played.reset(1, "shop_001")
    every = ["look_at_order", "refund", "deny"]
    assert [tool.name for tool in opening.tools] == (every if left is None else left)
    error = played.call("deny", {}).error
    assert (None if error is None else error["code"]) == code
