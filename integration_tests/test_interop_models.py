"""Models served by the published rlmesh 0.1.0 and by ours, each asked by the other's RemoteModel.

As in `test_interop_published`: the published package is only run, and every test is a cell of the
table that is printed at the end.
"""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from rlmesh import ModelServer, ServeOptions, UnsupportedError
from rlmesh.numpy import Model, RemoteModel
from rlmesh.specs import contract_of

Cell = Callable[..., None]
Ask = Callable[..., Any]  # Any, in this file: what JSON holds

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

KINDS = (
    "Box float32", "Box uint8", "Box float64", "Box image", "Discrete", "Discrete start",
    "MultiBinary", "MultiDiscrete", "Text", "Text charset", "Dict", "Tuple", "nested",
)  # fmt: skip
# Published table: predict_seed of seed 7 is 915059860, then 1098514101; the action is modulo 300.
SEED_7 = [160, 201]


@pytest.fixture
def ours() -> list[str]:
    """The episodes that ended for a model of ours."""
    return []


@pytest.fixture
def asked(
    hub: Any, peer: ModuleType, our_server: bool, transport: str, ours: list[str]
) -> Iterator[Ask]:
    """Serve a model on one side and play a script with the other's RemoteModel."""
    with tempfile.TemporaryDirectory(prefix="rlm-") as folder:

        def play(model: str, script: str, *arguments: object, **limits: Any) -> Any:
            if our_server:
                place = "127.0.0.1:0" if transport == "tcp" else f"unix://{folder}/model.sock"
                made = peer.of_models.made_model(model, Model, ours)
                with ModelServer(made, place, options=ServeOptions(**limits)) as server:
                    return hub.ask("play", script, server.address, arguments)
            address = free_place(folder, transport)
            limits = {"allow_remote_shutdown": True, **limits}
            served = hub.ask("serve_model", model, address, limits)
            assert served == address, served
            remote = RemoteModel(address)
            try:
                with peer.Sessions(remote) as sessions:
                    played = peer.outcome(
                        lambda: peer.of_models.MODEL_SCRIPTS[script](sessions, *arguments)
                    )
                    return json.loads(json.dumps(played))
            finally:
                assert remote.shutdown("the test is over")

        yield play


def free_place(folder: str, transport: str) -> str:
    if transport == "unix":
        return f"unix://{folder}/model.sock"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _only_where_both_can(our_server: bool, transport: str, cell: Cell) -> None:
    if our_server and transport == "unix":
        cell("served models", "the published RemoteModel knows no unix sockets (wire 9.31)")
        pytest.skip("the published RemoteModel knows no unix sockets (wire 9.31)")


@pytest.mark.parametrize("kind", KINDS)
def test_observations_and_actions_of_every_space_arrive(
    asked: Ask, cell: Cell, peer: ModuleType, kind: str
) -> None:
    cell(f"model: {kind}")
    space = peer.envs.SPACES[kind]
    env = peer.envs.Mirror(kind)
    expected: list[Any] = []
    for seed in (7, 11):
        observation, _ = env.reset(seed=seed)
        expected += [peer.of_models.told(observation, space)] * peer.envs.STEPS

    assert asked("Mirror", "play_model", kind) == json.loads(json.dumps(expected))


def test_chunks_are_used_as_far_as_was_asked_for(asked: Ask, cell: Cell) -> None:
    cell("model: native_chunk 3, horizon 2")
    assert asked("Chunked", "play_chunks") == [10, 11, 10, 10, 11, 10]


def test_contexts_tell_of_the_episode(asked: Ask, cell: Cell) -> None:
    cell("model: contexts, predict_seed")
    first = asked("Told", "play_contexts")
    assert first[:2] == SEED_7
    assert first[3:] == [0, 1, 2]


def test_what_a_model_raises_is_named_and_the_next_session_works(
    asked: Ask, cell: Cell, our_server: bool
) -> None:
    cell("model: predict raises", "named" if our_server else "ModelException, named")
    first, failure, after = asked("Stumbling", "play_failure")

    assert (first, after) == (1, 1)
    assert "RuntimeError" in failure["raised"]
    assert "KeyError" in failure["text"]
    assert "the gripper" in failure["text"]
    if not our_server:
        assert "ModelException" in failure["raised"]


def test_an_answer_that_is_no_action_is_an_error(asked: Ask, cell: Cell) -> None:
    cell("model: an answer that is no action")
    failure = asked("Wrong", "play_wrong_action")
    assert {"RuntimeError", "ValueError"} & set(failure["raised"])


def test_sessions_of_one_model_do_not_disturb_each_other(asked: Ask, cell: Cell) -> None:
    cell("model: two sessions at once, one leaves")
    *both, after = asked("Told", "play_two_sessions")
    assert both == [SEED_7[0], SEED_7[0], SEED_7[1], SEED_7[1]]
    assert isinstance(after, int)


def test_a_batched_model_serves_single_sessions(asked: Ask, cell: Cell, peer: ModuleType) -> None:
    cell("model: a batched corner only")
    kind = "Box float32"
    space = peer.envs.SPACES[kind]
    seen = asked("Batched", "play_model", kind)
    env = peer.envs.Mirror(kind)
    observation, _ = env.reset(seed=7)
    assert seen[0] == json.loads(json.dumps(peer.of_models.told(observation, space)))


def test_the_model_hears_of_episodes_that_ended(
    asked: Ask, cell: Cell, hub: Any, our_server: bool, ours: list[str]
) -> None:
    cell("model: on_episode_end")
    asked("Mirror", "play_model", "Discrete")
    assert (len(ours) if our_server else hub.ask("episodes_ended")) == 2


def test_evaluations_of_served_models_agree(asked: Ask, cell: Cell) -> None:
    cell("model: rlmesh.run")
    assert asked("Mirror", "play_run") == [[4, 5.0, True], [4, 5.0, True]]


def test_lanes_of_ours_are_rows_that_a_published_model_keeps_apart(
    hub: Any, peer: ModuleType, cell: Cell, our_server: bool, transport: str
) -> None:
    cell("model: lanes, each with its context")
    if our_server:
        pytest.skip("the published RemoteModel drives no lanes (api 10)")
    with tempfile.TemporaryDirectory(prefix="rlm-") as folder:
        address = free_place(folder, transport)
        limits = {"allow_remote_shutdown": True}
        assert hub.ask("serve_model", "Told", address, limits) == address
        remote = RemoteModel(address)
        policy = remote.policy()
        policy.bind(contract_of(peer.envs.Mirror("Discrete")), num_envs=3)
        episodes = [policy.begin(str(lane), 7 if lane == 1 else None) for lane in range(3)]
        seen = [
            np.asarray(policy.predict_batch(np.zeros(3, np.int64), episodes)).tolist()
            for _ in range(2)
        ]
        with pytest.raises(UnsupportedError, match="takes no instruction"):
            remote.policy(instruction="fold the towel")
        for episode in episodes:
            policy.end(episode)
        policy.close()
        assert remote.shutdown("the test is over")
    assert seen == [[0, SEED_7[0], 0], [1, SEED_7[1], 1]]


def test_a_published_model_that_goes_away_is_named(
    peer: ModuleType, cell: Cell, our_server: bool, transport: str
) -> None:
    cell("model: the server goes away", "SessionClosed, with the address")
    if our_server:
        pytest.skip("what a published client says of it is its own (wire 6.3)")
    module = import_module("interop_hub")
    with (
        tempfile.TemporaryDirectory(prefix="rlm-") as folder,
        module.Hub(module.published_python()) as another,
    ):
        address = free_place(folder, transport)
        assert another.ask("serve_model", "Mirror", address, {}) == address
        with peer.Sessions(RemoteModel(address)) as sessions:
            _, failure = peer.of_models.play_gone(sessions, another.kill)
    assert "SessionClosed" in failure["raised"]
    assert address in failure["text"]


def test_a_token_keeps_published_clients_out(
    hub: Any, peer: ModuleType, cell: Cell, our_server: bool, ours: list[str]
) -> None:
    cell("model: token", "refused: a published client sends none (wire 7.1)")
    if not our_server:
        pytest.skip("a published server asks for none (wire 7.1)")
    made = peer.of_models.made_model("Mirror", Model, ours)
    with ModelServer(made, token="the-one-token-there-is") as server:
        seen = hub.ask("play", "play_model", server.address, ["Discrete"])
    assert "ConnectionError" in seen["raised"]
