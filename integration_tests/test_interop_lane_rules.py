"""What clients and servers of several lanes agree on beside values: the published rlmesh and ours.

Cells are rows of the same table as `test_interop_lanes.py` fills.
"""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rlmesh import EnvServer

Through = Callable[..., Any]  # Any: what JSON holds
Cell = Callable[..., None]

LANES, VECTOR, BARE = "lanes", "vector", "vector, no autoreset"
SAME_STEP = "vector, same step"
ARRANGEMENTS = (LANES, VECTOR, BARE)
ALL_FRESH = [[7, 0], [8, 0], [9, 0]]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_vectors_that_reset_in_the_same_step_are_played_where_they_are_served(
    through: Through, cell: Cell, peer: ModuleType, our_server: bool
) -> None:
    row = f"{SAME_STEP}: episodes that end apart"
    seen = through("lane_ends", 8, kind="Counting", arrangement=SAME_STEP)
    if not our_server:
        cell(row, "refused by the published server (api 5)")
        assert "ValueError" in seen["raised"]
        assert "SAME_STEP" in seen["text"]
        return
    cell(row)
    played = peer.of_lanes.lane_ends(lambda: peer.local("Counting", SAME_STEP), 8)
    assert seen == json.loads(json.dumps(played))


@pytest.mark.parametrize(("mode", "like"), [("next_step", VECTOR), ("same_step", SAME_STEP)])
def test_lanes_that_our_server_resets_look_like_a_vector_to_a_published_client(
    through: Through, cell: Cell, peer: ModuleType, our_server: bool, mode: str, like: str
) -> None:
    cell(f"lanes, {mode}: episodes that end apart")
    if not our_server:
        pytest.skip("lanes of a published server do not reset themselves (wire 5.7)")
    more = {"autoreset_mode": mode}
    seen = through("lane_ends", 8, kind="Counting", arrangement=LANES, protection=more)
    played = peer.of_lanes.lane_ends(lambda: peer.local("Counting", like), 8)
    assert seen == json.loads(json.dumps(played))


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_mask_resets_some_lanes(
    through: Through, cell: Cell, our_server: bool, arrangement: str
) -> None:
    row = f"{arrangement}: reset_mask"
    reset, stepped = through("lane_mask", kind="Counting", arrangement=arrangement)
    if arrangement != LANES and not our_server:
        cell(row, "our client says that the server has no subset_step (wire 5.6)")
        assert "UnsupportedError" in reset["raised"]
        assert stepped == [2, 2, 2]
        return
    cell(row)
    assert reset == [0, 1, 1]
    assert stepped == [1, 2, 2]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_options_reach_every_lane(through: Through, cell: Cell, arrangement: str) -> None:
    cell(f"{arrangement}: options, empty and none")
    seen = through("lane_options", kind="Counting", arrangement=arrangement)
    assert seen == [[42, 42, 42], [-1, -1, -1], [-1, -1, -1]]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("allowed", [True, False])
def test_a_client_of_lanes_stops_a_server_that_lets_it(
    through: Through, cell: Cell, arrangement: str, allowed: bool
) -> None:
    cell(f"{arrangement}: shutdown, {'allowed' if allowed else 'not allowed'}")
    limits = {"allow_remote_shutdown": allowed}
    seen = through("lane_shutdown", kind="Counting", arrangement=arrangement, **limits)
    assert seen is allowed


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_client_of_lanes_that_waited_too_long_can_be_used_again(
    through: Through, cell: Cell, arrangement: str
) -> None:
    cell(f"{arrangement}: timeout, then reset")
    late, after = through("lane_timeout", kind="Counting", arrangement=arrangement)
    assert "TimeoutError" in late["raised"]
    assert after == ALL_FRESH


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_lanes_are_not_stepped_before_their_first_reset(
    through: Through, cell: Cell, arrangement: str
) -> None:
    cell(f"{arrangement}: step before reset", "refused by ours; a published pair steps (wire 5.2)")
    refused, after = through("lane_too_early", kind="Counting", arrangement=arrangement)
    assert "EnvironmentException" in refused["raised"]
    assert after == ALL_FRESH


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_both_sides_read_the_same_contract_of_lanes(
    through: Through, cell: Cell, peer: ModuleType, arrangement: str
) -> None:
    cell(f"{arrangement}: contract, metadata")
    seen = through("contract", kind="Counting", arrangement=arrangement)
    seen.pop("autoreset_mode", None)  # a published client does not show it
    with EnvServer(peer.made("Counting", arrangement)) as server:
        promised = server.env_contract.to_dict()
    promised.pop("autoreset_mode", None)
    assert seen == json.loads(json.dumps(peer.of_one.plain(promised)))
    assert seen["num_envs"] == 3


@pytest.mark.parametrize("arrangement", ["scalar", *ARRANGEMENTS])
def test_values_out_of_bounds_are_reported_in_the_info(
    through: Through, cell: Cell, our_server: bool, arrangement: str
) -> None:
    key = "rlmesh.conformance.warning"
    lane_by_lane = arrangement == LANES and not our_server
    says = "reported, in the lane's place" if lane_by_lane else "reported"
    prefix = "" if arrangement == "scalar" else f"{arrangement}: "
    cell(f"{prefix}values out of bounds", f"{says} (wire 5.5)")
    lanes = 0 if arrangement == "scalar" else 3
    info = through("warnings", lanes, kind="Box float32", arrangement=arrangement)
    told = info[key]
    if lane_by_lane:
        told, *others = told
        assert info[f"_{key}"] == [True, False, False]
        assert others == [None, None]
    assert {(one["kind"], one["path"]) for one in told} == {("action", "$"), ("observation", "$")}
