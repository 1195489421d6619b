"""A policy that does not look at its case succeeds on next to nothing, in every vertical."""

from __future__ import annotations

import pytest
from rleaas.sims import VERTICALS, World

from .policies import Policies, always, at_random, checks_then, in_order, solved_by

LAZY = {
    "in the listed order": in_order(),
    "in the order of the alphabet": in_order(sorted),
    "backwards": in_order(lambda names: names[::-1]),
    "at random": at_random(1),
}
MOST_LAZY = 3
every_vertical = pytest.mark.parametrize("name", sorted(VERTICALS))


def endings(name: str) -> list[str]:
    """The tools that decide something for good."""
    return [tool.name for tool in VERTICALS[name].tools if tool.ends_episode]


@every_vertical
@pytest.mark.parametrize("policies", [pytest.param(LAZY[one], id=one) for one in LAZY])
def test_calling_what_there_is_solves_nearly_nothing(name: str, policies: Policies) -> None:
    solved = solved_by(VERTICALS[name], policies)
    assert len(solved) <= MOST_LAZY, solved


@every_vertical
def test_always_deciding_the_same_solves_nothing(name: str) -> None:
    for ending in endings(name):
        assert solved_by(VERTICALS[name], always(ending)) == [], ending


@every_vertical
def test_looking_at_all_and_then_always_deciding_the_same_solves_less_than_a_quarter(
    name: str,
) -> None:
    vertical = VERTICALS[name]
    for ending in endings(name):
        solved = solved_by(vertical, checks_then(ending))
        assert len(solved) < len(vertical.scenarios) / 4, (ending, solved)


@every_vertical
def test_no_prompt_leaves_a_blank_unfilled(name: str) -> None:
    world = World(VERTICALS[name])
    for scenario in VERTICALS[name].scenarios:
        prompt = world.reset(1, scenario).prompt
        assert not {"{", "}", "$"} & set(prompt), scenario.id


@pytest.mark.parametrize("name", ["HRSim", "MedSim"])
def test_no_prompt_names_the_tool_to_call(name: str) -> None:
    world = World(VERTICALS[name])
    for scenario in VERTICALS[name].scenarios:
        prompt = world.reset(1, scenario).prompt
        assert not [tool.name for tool in VERTICALS[name].tools if tool.name in prompt], scenario.id


@pytest.mark.parametrize("name", ["FinSim", "HRSim", "MedSim"])
def test_one_more_act_that_nothing_asks_for_spoils_every_scenario(name: str) -> None:
    world = World(VERTICALS[name])
    passed: list[tuple[str, str, int]] = []
    for scenario in VERTICALS[name].scenarios:
        asked_for = {call.tool for call in scenario.reference}
        acts = [
            tool.name
            for tool in VERTICALS[name].tools
            if tool.category in ("write", "notify") and tool.name not in asked_for
        ]
        for act in acts:
            for place in range(len(scenario.reference)):
                world.reset(0, scenario)
                world.budget += 1
                world.play(scenario.reference[:place])
                if world.call(act, world.suggested(act)).ok:
                    world.play(scenario.reference[place:])
                    if world.succeeded():
                        passed.append((scenario.id, act, place))
    assert passed == []
