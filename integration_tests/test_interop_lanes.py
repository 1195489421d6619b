"""Several lanes between the published rlmesh and ours: lists of environments and vector ones.

The rows that a published side cannot play say why, by the fact sheets or by what it answers here.
"""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from rlmesh import run
from rlmesh.numpy import Model, RemoteEnv

Through = Callable[..., Any]  # Any: what JSON holds
Cell = Callable[..., None]

LANES, VECTOR, BARE = "lanes", "vector", "vector, no autoreset"
ARRANGEMENTS = (LANES, VECTOR, BARE)
KINDS = (
    *(f"Box {name}" for name in (
        "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
        "float16", "float32", "float64", "unbounded", "half-bounded", "bounds by element",
        "whole int64", "image", "rank 0", "zero size",
    )),
    "Discrete", "Discrete start", "MultiBinary", "MultiBinary 2-d", "MultiDiscrete",
    "MultiDiscrete 2-d", "MultiDiscrete start", "Text", "Text charset", "Text may be empty",
    "Dict", "Tuple", "nested",
)  # fmt: skip
BY_CLIENT = "refused by the published client"
BY_SERVER = "refused by the published server"
REFUSED = {
    ("Box rank 0", True): f"{BY_CLIENT} (wire 3.3, 9.16)",
    ("Box zero size", True): f"{BY_CLIENT} (wire 3.3, 9.16)",
    ("Text may be empty", True): f"{BY_CLIENT} (wire 3.3)",
    ("Text may be empty", False): f"{BY_SERVER} (wire 3.2, 9.17)",
    ("MultiDiscrete start", True): f"{BY_CLIENT}: no start (wire 1.3, 2.1)",
    ("MultiDiscrete start", False): f"{BY_SERVER}: no start (wire 3.1, 9.14)",
}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def reason_against(kind: str, arrangement: str, our_server: bool) -> str | None:
    if kind == "Tuple" and arrangement != LANES and not our_server:
        return f"{BY_SERVER}; seen here: 'expected 3 batched values, got 2' for a batched tuple"
    return REFUSED.get((kind, our_server))


def test_every_space_of_the_helpers_is_in_the_table(peer: ModuleType) -> None:
    assert set(KINDS) == set(peer.envs.SPACES)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_lanes_arrive_as_the_environments_play_them(
    through: Through,
    cell: Cell,
    peer: ModuleType,
    our_server: bool,
    kind: str,
    arrangement: str,
) -> None:
    # Lanes that do not start again by themselves are reset; the others go on over the end.
    steps, resets = (7, 1) if arrangement == VECTOR else (4, 2)
    seen = through("play_lanes", kind, steps, resets, kind=kind, arrangement=arrangement)
    reason = reason_against(kind, arrangement, our_server)
    if reason is not None:
        cell(f"{arrangement}: {kind}", reason)
        assert {"RuntimeError", "ValueError"} & set(seen["raised"])
        return
    cell(f"{arrangement}: {kind}")
    played = peer.of_lanes.play_lanes(lambda: peer.local(kind, arrangement), kind, steps, resets)
    assert seen == json.loads(json.dumps(played))


@pytest.mark.parametrize(("arrangement", "steps"), [(LANES, 2), (VECTOR, 8), (BARE, 2)])
def test_lanes_that_end_apart_do_so_on_the_other_side(
    through: Through, cell: Cell, peer: ModuleType, arrangement: str, steps: int
) -> None:
    cell(f"{arrangement}: episodes that end apart")
    seen = through("lane_ends", steps, kind="Counting", arrangement=arrangement)
    played = peer.of_lanes.lane_ends(lambda: peer.local("Counting", arrangement), steps)
    assert seen == json.loads(json.dumps(played))


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_every_lane_gets_its_seed(through: Through, cell: Cell, arrangement: str) -> None:
    cell(f"{arrangement}: seeds, one for all, none")
    # In a published pair one number reaches the first lane of a list only (wire 9.20).
    seen = through("lane_seeds", kind="Counting", arrangement=arrangement)
    assert seen == [[4, 5, 6], [7, 8, 9], [-1, -1, -1]]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_infos_of_lanes_keep_the_form_that_the_client_knows(
    through: Through, cell: Cell, our_server: bool, arrangement: str
) -> None:
    listed = our_server and arrangement == LANES
    cell(f"{arrangement}: infos", "same; one map a lane (wire 5.4)" if listed else "same; columns")
    seen = through("lane_infos", kind="Counting", arrangement=arrangement)
    if not listed:
        assert seen == [{"base": [4, 5, 6], "_base": [True, True, True]}, {}, {}]
        return
    bases = [{"base": 4}, {"base": 5}, {"base": 6}]
    assert seen[0] == {"final_info": bases, "_final_info": [True, True, True]}
    assert seen[2] == {"final_info": [{}, {}, {}], "_final_info": [True, False, False]}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_each_lane_is_rendered_where_the_server_can(
    through: Through, cell: Cell, our_server: bool, arrangement: str
) -> None:
    row = f"{arrangement}: render each lane"
    seen = through("lane_frames", kind="Counting", arrangement=arrangement)
    if our_server:
        cell(row)
        assert [frame[2][0][0][0] for frame in seen] == [0, 10, 20]
    elif arrangement == LANES:
        cell(row, f"lane 0; the others {BY_SERVER} (wire 5.9, 9.13)")
        assert seen[0][2][0][0] == [0, 0, 0]
        assert all("ValueError" in frame["raised"] for frame in seen[1:])
    else:
        cell(row, "no frames from the published server (wire 5.9, 9.13)")
        assert seen == [None, None, None]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_lane_that_fails_is_named_and_the_next_client_is_served(
    through: Through, cell: Cell, arrangement: str
) -> None:
    cell(f"{arrangement}: failing lane", "named; the next client is served")
    failure, another = through("lane_failure", kind="Counting", arrangement=arrangement)
    assert "EnvironmentException" in failure["raised"]
    assert "RuntimeError: lane 1 is stuck" in failure["text"]
    assert another == [[7, 0], [8, 0], [9, 0]]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_actions_for_another_number_of_lanes_are_refused_and_the_session_goes_on(
    through: Through, cell: Cell, arrangement: str
) -> None:
    cell(f"{arrangement}: wrong number of actions")
    refused, rewards = through("lane_arity", kind="Counting", arrangement=arrangement)
    assert "ValueError" in refused["raised"]
    assert rewards == [1, 1, 1]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_a_client_of_one_environment_does_not_drive_several(
    between: Callable[..., Any], cell: Cell, arrangement: str
) -> None:
    cell(f"{arrangement}: RemoteEnv", "refused, as in a published pair (wire 6.3)")

    def there(address: str) -> tuple[object, ...]:
        return "script", "contract", address, False, ()

    seen = between(there, RemoteEnv, kind="Counting", arrangement=arrangement)
    assert "ValueError" in seen["raised"]
    assert "serves 3 environments" in seen["text"]


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_the_published_loop_drives_our_lanes(
    between: Callable[..., Any],
    peer: ModuleType,
    cell: Cell,
    our_server: bool,
    arrangement: str,
) -> None:
    kind, row = "Discrete start", f"{arrangement}: rlmesh.run"

    def there(address: str) -> tuple[object, ...]:
        return "evaluate", address, kind

    def here(address: str) -> Any:
        return peer.evaluated(run, Model, address, kind)

    records = between(there, here, kind=kind, arrangement=arrangement)
    if arrangement == LANES or not our_server:
        cell(row)
        assert records == [[4, 5.0, True], [4, 5.0, True]]
    else:
        cell(row, "refused by the published run, as of its own server (wire 5.6, 9.33)")
        assert "RuntimeError" in records["raised"]
