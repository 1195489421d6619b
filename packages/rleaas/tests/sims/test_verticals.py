"""What every vertical of the catalogue keeps: its scenarios, tools, faces and controls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import fastjsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rleaas.sims import VERTICALS, Scenario, State, Vertical, World
from rleaas.sims.discrete import DiscreteWorld
from rleaas.sims.scenario import TIERS
from rleaas.sims.text import TextWorld
from rleaas.verify import Judge, check, definition_of, judge_of

NAMES = sorted(VERTICALS)
SEEDS = range(6)
MOST_STEPS = {1: 3, 2: 12, 3: 20, 4: 50}
CATEGORIES = {"read", "write", "approval", "search", "notify", "system"}

every_vertical = pytest.mark.parametrize("name", NAMES)
every_scenario = pytest.mark.parametrize(
    ("name", "scenario_id"),
    [(name, scenario.id) for name in NAMES for scenario in VERTICALS[name].scenarios],
)


@every_scenario
def test_the_reference_solves_the_scenario_and_the_bad_one_does_not(
    name: str, scenario_id: str
) -> None:
    world = World(VERTICALS[name])
    for seed in SEEDS:
        world.reset(seed, scenario_id)
        results = world.play(world.scenario.reference)
        assert [result.error for result in results if not result.ok] == []
        assert len(results) == len(world.scenario.reference)
        assert world.ended, "the reference comes to an end by itself"
        assert world.succeeded()
        world.reset(seed, scenario_id)
        world.play(world.scenario.bad)
        assert not world.succeeded()


@every_vertical
def test_the_library_has_tasks_of_every_tier_for_learning_and_for_evaluating(name: str) -> None:
    scenarios = VERTICALS[name].scenarios
    assert len(scenarios) >= 25
    assert len({scenario.id for scenario in scenarios}) == len(scenarios)
    for tier in TIERS:
        of_tier = [scenario for scenario in scenarios if scenario.tier == tier]
        assert len(of_tier) >= 5
        assert {scenario.split for scenario in of_tier} == {"training", "evaluation"}
    tools = {tool.name for tool in VERTICALS[name].tools}
    for scenario in scenarios:
        used = {call.tool for call in (*scenario.reference, *scenario.bad)}
        assert used <= set(scenario.tools) <= tools
        assert len(set(scenario.tools)) > len({call.tool for call in scenario.reference})
        assert 1 <= len(scenario.reference) <= scenario.max_steps
        assert len(scenario.reference) <= MOST_STEPS[scenario.tier]
        assert scenario.vertical == VERTICALS[name].name


@every_vertical
def test_no_two_scenarios_are_the_same_task(name: str) -> None:
    told = [
        (json.dumps(scenario.setup, sort_keys=True, default=str), str(scenario.success))
        for scenario in VERTICALS[name].scenarios
    ]
    assert len(set(told)) == len(told)


@every_vertical
def test_no_task_of_the_evaluation_half_can_be_learned_in_the_training_half(name: str) -> None:
    halves: dict[str, set[str]] = {}
    for scenario in VERTICALS[name].scenarios:
        task = json.dumps([[call.tool for call in scenario.reference], str(scenario.success)])
        halves.setdefault(task, set()).add(scenario.split)
    assert [task for task, found in halves.items() if len(found) > 1] == []


@every_scenario
def test_seeds_differ_in_what_an_agent_is_told(name: str, scenario_id: str) -> None:
    env = TextWorld(VERTICALS[name])
    told = {str(env.reset(seed=seed, options={"scenario": scenario_id})[0]) for seed in range(8)}
    assert len(told) >= 4


@every_vertical
def test_tools_are_described_for_an_agent(name: str) -> None:
    tools = VERTICALS[name].tools
    assert len(tools) >= 10
    for tool in tools:
        schema = tool.parameters
        assert tool.name.replace("_", "").isalnum()
        assert tool.name == tool.name.lower()
        assert len(tool.description) > 15
        assert tool.category in CATEGORIES
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        fastjsonschema.compile(dict(schema))


@every_scenario
def test_suggested_arguments_are_valid_all_along(name: str, scenario_id: str) -> None:
    world = World(VERTICALS[name])
    world.reset(1, scenario_id)
    checkers = {tool.name: tool.checker() for tool in world.tools}
    for call in (None, *world.scenario.reference):
        if call is not None:
            world.play([call])
        for tool, check_arguments in checkers.items():
            check_arguments(dict(world.suggested(tool)))


@every_scenario
def test_the_discrete_face_can_solve_what_the_reference_solves(name: str, scenario_id: str) -> None:
    env = DiscreteWorld(VERTICALS[name])
    action_names = env.metadata["action_names"]
    observation, _ = env.reset(seed=2, options={"scenario": scenario_id})
    info: Mapping[str, Any] = {}
    for call in env.world.scenario.reference:
        assert env.observation_space.contains(observation)
        observation, _, _, _, info = env.step(np.int64(action_names.index(call.tool)))
    assert info["success"] is True


@every_scenario
def test_the_text_face_can_solve_what_the_reference_solves(name: str, scenario_id: str) -> None:
    env = TextWorld(VERTICALS[name])
    observation, _ = env.reset(seed=3, options={"scenario": scenario_id})
    info: Mapping[str, Any] = {}
    for call in env.world.scenario.reference:
        assert env.observation_space.contains(observation)
        arguments = call.given(env.world.state)
        if arguments is None:
            arguments = env.world.suggested(call.tool)
        observation, _, _, _, info = env.step(
            json.dumps({"tool": call.tool, "arguments": dict(arguments)})
        )
    assert info["success"] is True


@every_vertical
def test_the_same_seed_is_the_same_episode_elsewhere(name: str) -> None:
    first, second = World(VERTICALS[name]), World(VERTICALS[name])
    second.reset(99)  # what was played before does not matter
    for scenario in VERTICALS[name].scenarios:
        for world in (first, second):
            world.reset(7, scenario)
            world.play(scenario.reference)
        assert first.prompt == second.prompt
        assert first.state == second.state


@every_vertical
def test_built_in_verifiers_judge_every_reference(name: str) -> None:
    vertical = VERTICALS[name]
    judges: dict[str, Judge] = {}
    for verifier in vertical.verifiers:
        check(definition_of(verifier))
        if verifier["type"] != "composite":
            judges[verifier["id"]] = judge_of(definition_of(verifier))
        assert verifier["compliance_tags"]
    assert set(vertical.metrics.values()) <= {verifier["id"] for verifier in vertical.verifiers}
    world = World(vertical)
    for scenario in vertical.scenarios:
        world.reset(4, scenario)
        world.play(scenario.reference)
        told = [judge.judge(world.trajectory()) for judge in judges.values()]
        errors = [one.error for verdict in told for one in verdict.checks if one.error]
        assert errors == []


@every_vertical
@pytest.mark.parametrize("size", [1, 1_000])
def test_organisations_of_every_size_have_room_for_every_task(name: str, size: int) -> None:
    world = World(VERTICALS[name], {"org_size": size})
    for scenario in VERTICALS[name].scenarios:
        world.reset(5, scenario)
        world.play(scenario.reference)
        assert world.succeeded(), scenario.id


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["cus_0001", "acc_0001", "tr_0001", "'; DROP TABLE", "\ud800", "{case[x]}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@every_vertical
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_hostile_calls_are_refused_and_leave_the_state_as_it_was(
    name: str, data: st.DataObject
) -> None:
    vertical = VERTICALS[name]
    world = _shared(vertical)
    scenario: Scenario = data.draw(st.sampled_from(vertical.scenarios))
    world.reset(data.draw(st.integers(0, 2**31)), scenario)
    tools = [tool.name for tool in vertical.tools]
    for _ in range(6):
        tool = data.draw(st.sampled_from(tools) | st.text(max_size=10))
        arguments: object = data.draw(JSON_VALUES | st.just(None))
        if tool in tools and data.draw(st.booleans()):
            arguments = {**world.suggested(tool)}
            if data.draw(st.booleans()) and arguments:
                key = data.draw(st.sampled_from(sorted(arguments)))
                arguments[key] = data.draw(JSON_VALUES)
        before = _told(world.state)
        result = world.call(tool, arguments)
        json.dumps(result.to_json(), allow_nan=False)
        if not result.ok:
            assert result.error is not None
            assert set(result.error) == {"code", "message"}
            assert _told(world.state) == before
        assert -1 <= result.reward <= 1


_WORLDS: dict[str, World] = {}


def _shared(vertical: Vertical) -> World:
    return _WORLDS.setdefault(vertical.name, World(vertical))


def _told(state: State) -> str:
    return json.dumps([state.tables, state.case, state.facts], sort_keys=True)
