"""The published rlmesh 0.1.0 and ours drive each other's servers: every cell of a table.

The published package is installed into an environment of its own, and only run, never read. What
it does by itself, and is expected to, stands in the fact sheets that the cells name. The table is
printed after the tests; RLMESH_INTEROP_TABLE names a file that it is written to as well.
"""

import json
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

import pytest
from rlmesh import run
from rlmesh.client.visit import Visit
from rlmesh.numpy import Model, RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.spaces.text import ALPHANUMERIC

Through = Callable[..., Any]  # Any: what JSON holds
Cell = Callable[..., None]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


# Spaces: whatever is sent has to arrive as the environment gave it.

REFUSED_BY_PUBLISHED_CLIENT = {
    "Box rank 0": "refused by the published client (wire 3.3, 9.16)",
    "Box zero size": "refused by the published client (wire 3.3, 9.16)",
    "Text may be empty": "refused by the published client (wire 3.3)",
}
REFUSED_BY_PUBLISHED_SERVER = {
    "Text may be empty": "refused by the published server (wire 3.2, 9.17)",
}
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


def test_every_space_of_the_helpers_is_in_the_table(peer: ModuleType) -> None:
    assert set(KINDS) == set(peer.envs.SPACES)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "MultiDiscrete start"])
def test_episodes_arrive_as_the_environment_plays_them(
    through: Through, cell: Cell, peer: ModuleType, our_server: bool, kind: str
) -> None:
    refused = REFUSED_BY_PUBLISHED_CLIENT if our_server else REFUSED_BY_PUBLISHED_SERVER
    seen = through("play", kind, kind=kind)
    if kind in refused:
        cell(kind, refused[kind])
        assert seen["raised"][0] in ("RuntimeError", "ValueError")
        return
    cell(kind)
    assert seen == json.loads(json.dumps(peer.of_one.play(lambda: peer.envs.Mirror(kind), kind)))


def test_a_published_side_counts_the_categories_of_multi_discrete_from_zero(
    through: Through, cell: Cell, our_server: bool
) -> None:
    seen = through("zero_based", kind="MultiDiscrete start")
    if our_server:
        cell("MultiDiscrete start", "counted from 0 by the published client (wire 1.3, 2.1)")
        assert seen == [[[0, 0], True], [[2, 299], True]]
    else:
        cell("MultiDiscrete start", "refused by the published server: no start (wire 3.1, 9.14)")
        assert "EnvironmentException" in seen["raised"]
        assert "range" in seen["text"]


# One environment: what clients are told of it, and what it is told by them.


def test_both_sides_read_the_same_contract(
    through: Through, cell: Cell, peer: ModuleType, our_server: bool
) -> None:
    cell("contract, metadata", "same; gymnasium's own charset as none (wire 3.1)")
    seen = through("contract", kind="nested")
    seen.pop("autoreset_mode", None)  # a published client does not show it

    with EnvServer(peer.made("nested", "scalar")) as server:
        promised = server.env_contract.to_dict()
    promised.pop("autoreset_mode", None)
    told = json.dumps(peer.of_one.plain(promised)).replace(ALPHANUMERIC, "")
    assert seen == json.loads(told)


def test_every_kind_of_value_in_an_info_arrives(
    through: Through, cell: Cell, peer: ModuleType
) -> None:
    cell("info of every kind", "same; arrays as lists (wire 5.4)")
    assert through("infos") == json.loads(json.dumps(peer.of_one.plain(dict(peer.envs.INFO))))


def test_seeds_reach_the_environment(through: Through, cell: Cell) -> None:
    cell("seeds, and none")
    assert through("seeds") == [0, 7, 2**63 - 1, 5, None]


def test_options_reach_the_environment(through: Through, cell: Cell) -> None:
    cell("options, empty and none")
    deep = {"level": [1, "two"], "map": {"none": None, "on": True, "raw": "bytes fe", "x": 2.5}}
    assert through("options") == [None, {}, deep]


def test_frames_of_every_form_arrive(through: Through, cell: Cell, peer: ModuleType) -> None:
    cell("render: RGB, RGBA, grey, CHW, none")
    rgb, rgba, grey = (
        peer.of_one.typed(peer.envs.FRAMES[name]) for name in ("rgb", "rgba", "grey")
    )
    expected = {"rgb": rgb, "rgba": rgba, "grey": grey, "channels first": rgb, "none": None}
    assert through("frames") == expected


# Failures


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("failing_step", "step failed: RuntimeError: the gripper is stuck"),
        ("failing_reset", "reset failed: KeyError: 'no such level'"),
        ("failing_render", "render failed: ValueError: no display"),
        ("wrong_observation", "step failed: "),
    ],
)
def test_what_fails_in_the_environment_is_named_and_the_next_session_works(
    through: Through, cell: Cell, our_server: bool, script: str, said: str
) -> None:
    dead = our_server and script != "failing_render"
    cell(
        script.replace("_", " "),
        "named; this client is of no use after (wire 9.6)" if dead else "named; client goes on",
    )
    failure, same_client, another_client = through(script)

    assert "EnvironmentException" in failure["raised"]
    assert said in failure["text"]
    if dead:
        assert same_client["raised"][0] == "ConnectionError"
        assert same_client["text"] == "connection closed"
    else:
        assert same_client == {"options": None, "seed": 3}
    assert another_client == {"options": None, "seed": 4}


def test_an_action_that_is_none_of_the_space_is_refused_and_the_session_goes_on(
    through: Through, cell: Cell
) -> None:
    cell("bad action")
    *refused, total = through("bad_action")

    for one in refused:
        assert {"ValueError", "TypeError"} & set(one["raised"])
    assert total == 1


def test_a_step_before_the_first_reset_is_refused(
    through: Through, cell: Cell, our_server: bool
) -> None:
    cell("step before reset", "refused by ours; a published pair steps (wire 5.2)")
    refused, after = through("step_before_reset")

    assert "EnvironmentException" in refused["raised"]
    assert after == {"options": None, "seed": 3}


def test_a_step_after_the_end_reaches_the_environment(through: Through, cell: Cell) -> None:
    cell("step after the end")
    going_on = [1.5, False, False]
    assert through("step_after_end") == [[1.5, True, False], going_on, [1.5, False, True], going_on]


# Sessions


def test_a_second_client_is_refused_until_the_first_has_left(through: Through, cell: Cell) -> None:
    cell("second client")
    refused, total, admitted = through("second_client")

    assert "ConnectionError" in refused["raised"]
    assert total == 1
    assert admitted == {"options": None, "seed": 2}


def test_a_client_that_left_is_of_no_use_and_another_one_is(through: Through, cell: Cell) -> None:
    cell("close, and again")
    unusable, another = through("leaving")

    assert "ConnectionError" in unusable["raised"]
    assert another == {"options": None, "seed": 5}


def test_a_client_that_waited_too_long_can_be_used_again(through: Through, cell: Cell) -> None:
    cell("timeout, then reset")
    late, after = through("timeouts")

    assert "TimeoutError" in late["raised"]
    assert after == {"options": None, "seed": 6}


@pytest.mark.parametrize("allowed", [True, False])
def test_a_client_stops_a_server_that_lets_it(through: Through, cell: Cell, allowed: bool) -> None:
    cell("shutdown, allowed" if allowed else "shutdown, not allowed")
    assert through("shutdown", allow_remote_shutdown=allowed) is allowed


def test_an_idle_server_stops_though_a_client_is_attached(through: Through, cell: Cell) -> None:
    cell("idle timeout")
    seen = through("idle", idle_timeout_seconds=0.3, drain_timeout_seconds=0.2)
    assert "ConnectionError" in seen["raised"]


# The loop


def test_evaluations_end_every_episode(
    between: Callable[..., Any], peer: ModuleType, cell: Cell
) -> None:
    cell("rlmesh.run")
    kind = "Discrete start"

    def there(address: str) -> tuple[object, ...]:
        return "evaluate", address, kind

    def here(address: str) -> Any:
        return peer.evaluated(run, Model, address, kind)

    records = between(there, here, kind=kind, arrangement="scalar")
    assert records == [[4, 5.0, True], [4, 5.0, True]]


# What one side does not have


@pytest.mark.parametrize("kind", ["Sequence", "Graph", "OneOf"])
def test_spaces_that_the_published_side_has_no_words_for_are_refused(
    through: Through, cell: Cell, our_server: bool, kind: str
) -> None:
    by = "our server: the client does not know it" if our_server else "the published server"
    cell(kind, f"refused by {by} (wire 3.2)")
    seen = through("contract", kind=kind)
    if our_server:
        assert "RuntimeError" in seen["raised"]
        assert kind in seen["text"]
    else:
        assert "TypeError" in seen["raised"]


def test_a_server_that_wants_a_token_lets_no_published_client_in(
    through: Through, cell: Cell, our_server: bool
) -> None:
    cell("token", "refused: a published client sends none (wire 7.1)")
    if not our_server:
        pytest.skip("a published server asks for none (wire 7.1)")
    seen = through("contract", protection={"token": "the-one-token-there-is"})
    assert "ConnectionError" in seen["raised"]


def test_a_server_with_tls_lets_no_published_client_in(
    through: Through, cell: Cell, our_server: bool, transport: str
) -> None:
    cell("TLS", "refused: a published client speaks none (wire 7.2)")
    if not our_server:
        pytest.skip("a published server has none (wire 7.2)")
    if transport == "unix":
        pytest.skip("our server has TLS on TCP only, and says so; seen over TCP (wire 7.2)")
    seen = through("contract", protection={"tls": "auto"})
    assert "ConnectionError" in seen["raised"]


def test_each_client_of_a_factory_has_an_environment_of_its_own(
    through: Through, cell: Cell, our_server: bool
) -> None:
    cell("factory: two clients at once")
    if not our_server:
        pytest.skip("a published server has one environment (api 20.35)")
    assert through("both_at_once", arrangement="factory") == [2, 1]


def test_a_published_server_is_not_inspected(
    between: Callable[..., Any], cell: Cell, our_server: bool
) -> None:
    cell("rlmesh inspect", "says that the server does not tell")
    if our_server:
        pytest.skip("the published package does not look into servers (api 12, 20.35)")

    def here(address: str) -> Any:
        with Visit(address) as visit:
            return visit.status(timeout=10)

    def there(address: str) -> tuple[object, ...]:
        raise AssertionError(address)

    seen = between(there, here, kind="Trouble", arrangement="scalar")
    assert "UnsupportedError" in seen["raised"]
    assert "rlmesh 0.1.0) does not tell about its sessions" in seen["text"]


@pytest.mark.parametrize("lane", ["local", "tcp"])
def test_a_lane_that_is_insisted_on_is_missed_in_a_published_server(
    between: Callable[..., Any], cell: Cell, our_server: bool, lane: str
) -> None:
    cell(f"lane={lane!r}", "says that there is none")
    if our_server:
        pytest.skip("a published client knows gRPC only (wire 1.1)")

    def here(address: str) -> Any:
        env: Any = RemoteEnv(address, lane=cast("Any", lane))
        with env:
            return env.reset()

    def there(address: str) -> tuple[object, ...]:
        raise AssertionError(address)

    seen = between(there, here, kind="Trouble", arrangement="scalar")
    assert "UnsupportedError" in seen["raised"]


@pytest.mark.timeout(300)
def test_a_client_may_be_silent_for_minutes(through: Through, cell: Cell) -> None:
    cell("silent for 170 s")
    if not os.environ.get("RLMESH_INTEROP_LONG"):
        pytest.skip("takes 170 s (wire 0.2); set RLMESH_INTEROP_LONG")
    assert through("long_silence", 170) == 1
