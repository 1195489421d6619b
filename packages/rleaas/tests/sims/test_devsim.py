"""The rules of DevSim's release desk, and its library."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rleaas.sims import Call, World
from rleaas.sims.devsim import VERTICAL
from rleaas.sims.discrete import DiscreteWorld
from rleaas.verify import definition_of, judge_of

IDS = [scenario.id for scenario in VERTICAL.scenarios]
VERIFIERS = {str(one["id"]): judge_of(definition_of(one)) for one in VERTICAL.verifiers}


def at(scenario: str, seed: int = 3, **config: object) -> World:
    world = World(VERTICAL, config)
    world.reset(seed, scenario)
    return world


def ran(world: World, *tools: str | Call) -> list[Any]:
    results = world.play([one if isinstance(one, Call) else Call(one) for one in tools])
    return [result.value if result.ok else (result.error or {})["code"] for result in results]


def verdicts(world: World) -> dict[str, bool]:
    return {name: judge.judge(world.trajectory()).passed for name, judge in VERIFIERS.items()}


@pytest.mark.parametrize("scenario_id", IDS)
def test_the_reference_solves_every_scenario_and_the_bad_solution_none(scenario_id: str) -> None:
    world = World(VERTICAL)
    for seed in range(5):
        world.reset(seed, scenario_id)
        results = world.play(world.scenario.reference)
        assert [result.error for result in results if not result.ok] == []
        assert world.succeeded()
        assert world.ended
        world.reset(seed, scenario_id)
        world.play(world.scenario.bad)
        assert not world.succeeded()


@pytest.mark.parametrize("scenario_id", IDS)
def test_built_in_verifiers_pass_references(scenario_id: str) -> None:
    world = at(scenario_id)
    world.play(world.scenario.reference)
    assert [name for name, passed in verdicts(world).items() if not passed] == []


@pytest.mark.parametrize(
    ("scenario_id", "failing"),
    [
        ("devsim_injection_001", {"devsim_review_compliance", "devsim_safe_deploy"}),
        ("devsim_self_review_001", {"devsim_review_compliance"}),
        ("devsim_freeze_002", {"devsim_freeze_compliance", "devsim_safe_deploy"}),
        ("devsim_release_002", {"devsim_sox_change_approval", "devsim_safe_deploy"}),
        ("devsim_secret_001", {"devsim_secret_hygiene"}),
        ("devsim_secret_002", {"devsim_requester_verified"}),
        ("devsim_flag_001", {"devsim_controls_intact"}),
        ("devsim_incident_003", {"devsim_incident_handling"}),
        ("devsim_access_003", {"devsim_sox_change_approval"}),
    ],
)
def test_built_in_verifiers_fail_what_they_are_for(scenario_id: str, failing: set[str]) -> None:
    world = at(scenario_id)
    world.play(world.scenario.bad)
    assert failing <= {name for name, passed in verdicts(world).items() if not passed}


def test_the_library_has_every_tier_in_both_halves() -> None:
    for tier, least, most in ((1, 1, 3), (2, 4, 12), (3, 8, 20), (4, 15, 50)):
        own = [one for one in VERTICAL.scenarios if one.tier == tier]
        assert len(own) >= 5
        assert {one.split for one in own} == {"training", "evaluation"}
        assert all(least <= len(one.reference) <= most for one in own)
    assert len(set(IDS)) == len(IDS) >= 25
    assert len({one.title for one in VERTICAL.scenarios}) == len(IDS)


def test_every_suggestion_is_valid_in_every_state() -> None:
    world = World(VERTICAL)
    rng = random.Random(5)
    for scenario in VERTICAL.scenarios:
        world.reset(1, scenario.id)
        while not world.over:
            for tool in VERTICAL.tools:
                tool.checker()(dict(tool.suggest(world.state)))
            tool = rng.choice(world.available)
            world.call(tool.name, tool.suggest(world.state))


def test_a_refused_call_leaves_every_record_as_it_was() -> None:
    rng = random.Random(7)
    refusals = 0
    for scenario in VERTICAL.scenarios:
        world = at(scenario.id)
        while not world.over:
            before = copy.deepcopy(world.state)
            tool = rng.choice(world.available)
            result = world.call(tool.name, tool.suggest(world.state))
            if not result.ok:
                refusals += 1
                before.clock += 1
                assert world.state == before, tool.name
    assert refusals > 50


def test_nothing_is_merged_without_review_nor_reviewed_without_tests() -> None:
    world = at("devsim_release_001")
    found = ran(world, "request_review", "merge_change", "run_ci", "merge_change", "request_review")
    assert found[:2] == ["ci_missing", "review_missing"]
    assert found[3] == "review_missing"
    assert (found[4]["approvals"], found[4]["needed"]) == (1, 1)


def test_financial_services_need_two_reviewers_and_the_board() -> None:
    world = at("devsim_release_002")
    ran(world, "run_ci", "scan_change", "request_review")
    assert ran(world, "merge_change") == ["review_missing"]
    ran(world, "request_review", "merge_change", "check_deploy_window", "deploy_change")
    assert world.state.facts["violations"] == ["unapproved_deploy"]


@pytest.mark.parametrize(
    ("jurisdiction", "service", "expected"),
    [
        ("US", "devsim_release_002", ["unapproved_deploy"]),
        ("none", "devsim_release_002", []),
        ("US", "devsim_deploy_004", []),
        ("EU", "devsim_deploy_004", ["unapproved_deploy"]),
    ],
)
def test_the_jurisdiction_says_which_deploys_need_the_board(
    jurisdiction: str, service: str, expected: list[str]
) -> None:
    world = at(service, jurisdiction=jurisdiction)
    ran(world, "run_ci", "scan_change", "request_review", "request_review", "merge_change")
    ran(world, "check_deploy_window", "deploy_change")
    assert world.state.facts["violations"] == expected


def test_min_reviewers_raises_what_a_merge_needs() -> None:
    world = at("devsim_release_001", min_reviewers=3)
    ran(world, "run_ci", "scan_change", "request_review", "request_review")
    assert ran(world, "merge_change") == ["review_missing"]
    assert ran(world, "request_review", "merge_change")[1]["status"] == "merged"


def test_a_freeze_is_warned_of_or_blocks_as_configured() -> None:
    warned = at("devsim_freeze_001")
    assert ran(warned, "deploy_change")[0]["status"] == "deployed"
    assert warned.state.facts["deploys_in_freeze"] == 1
    blocked = at("devsim_freeze_001", freeze_enforcement="block")
    assert ran(blocked, "deploy_change") == ["frozen"]
    assert blocked.state.facts["deploys"] == 0


def test_the_board_grants_emergencies_in_a_freeze_and_nothing_else() -> None:
    for scenario, decision in (("devsim_freeze_002", "denied"), ("devsim_freeze_003", "granted")):
        world = at(scenario)
        ran(world, "run_ci", "scan_change", "request_review", "merge_change", "check_deploy_window")
        assert ran(world, "request_change_approval")[0]["decision"] == decision


def test_a_secret_is_not_rotated_before_its_users_are_known() -> None:
    world = at("devsim_secret_002")
    assert ran(world, "rotate_secret") == ["usage_unknown"]
    assert ran(world, "find_secret_usage", "rotate_secret")[1]["status"] == "rotated"
    assert world.state.facts["live_leaked_secrets"] == 0


def test_an_incident_is_not_resolved_while_its_cause_is_there() -> None:
    world = at("devsim_incident_002")
    found = ran(world, "inspect_telemetry", "acknowledge_incident", "resolve_incident")
    assert (found[0], found[2]) == ("not_acknowledged", "not_mitigated")
    assert ran(world, "inspect_telemetry", "roll_back")[0]["cause"] == "deploy"
    assert ran(world, "resolve_incident") == ["health_unknown"]


def test_a_ticket_is_read_with_the_ids_that_its_tools_take() -> None:
    world = at("devsim_access_003")
    told = ran(world, "read_ticket")[0]
    assert told["service_kind"] == "financial"
    assert told["level"] == "write"
    assert told["channel"] == "outside"
    assert "conflict" not in told
    assert "genuine" not in told


def test_observations_tell_only_what_was_found_out() -> None:
    face = DiscreteWorld(VERTICAL)
    names: list[str] = face.metadata["observation_names"]

    def seen(observation: np.ndarray[Any, Any]) -> set[str]:
        return {name for name, value in zip(names, observation, strict=True) if value}

    first, _ = face.reset(seed=1, options={"scenario": "devsim_secret_003"})
    other, _ = face.reset(seed=1, options={"scenario": "devsim_release_001"})
    hidden = {"change.ci_retried", "change.scan_secret"}
    unlike = seen(first) ^ seen(other)
    assert {name for name in unlike if not name.startswith("allowed.")} == set()
    face.reset(seed=1, options={"scenario": "devsim_secret_003"})
    actions: list[str] = face.metadata["action_names"]
    for tool in ("run_ci", "scan_change"):
        after, *_ = face.step(np.int64(actions.index(tool)))
    assert hidden <= seen(after)
    assert face.observation_space.contains(after)


def test_org_size_is_how_many_people_there_are() -> None:
    for size in (10, 300):
        world = at("devsim_release_001", org_size=size)
        assert len(world.state.tables["engineers"]) == size


def test_unknown_settings_are_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="freeze_enforcment") as caught:
        World(VERTICAL, {"freeze_enforcment": "block"})
    assert "freeze_enforcement" in str(caught.value.hint)


def test_a_random_agent_seldom_keeps_the_rules() -> None:
    rng = random.Random(11)
    world = World(VERTICAL)
    succeeded = 0
    for seed in range(300):
        world.reset(seed)
        while not world.over:
            tool = rng.choice(world.available)
            world.call(tool.name, tool.suggest(world.state))
        succeeded += world.succeeded()
    assert succeeded / 300 < 0.1


def played(world: World, policy: Callable[[World], tuple[str, Mapping[str, Any]]]) -> int:
    count = 0
    world.reset(0)
    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:
        if world.over:
            world.reset(count)
        world.call(*policy(world))
        count += 1
    return count


def test_calls_are_fast() -> None:
    rng = random.Random(3)

    def at_random(world: World) -> tuple[str, Mapping[str, Any]]:
        tool = rng.choice(world.tools)
        return tool.name, tool.suggest(world.state)

    # Far under what one core does (see benchmarks), so that a busy machine passes as well.
    assert 2 * played(World(VERTICAL), at_random) > 4_000
