"""Sequences, graphs and alternatives between our own peers, and what others are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import grpc
import gymnasium
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from gymnasium import spaces
from rlcore import InvalidActionError
from rlmesh.server.env_server import EnvServer
from rlmesh.transport.methods import HANDSHAKE
from rlmesh.wire.core.v1 import core_pb2
from rlmesh.wire.env.v1 import env_pb2

Serve = Callable[..., EnvServer]


def item() -> spaces.Box:
    """Return a space with a generator of its own."""
    return spaces.Box(-1, 1, (2,), np.float32)


class Molecules(gymnasium.Env[Any, Any]):
    """Answers with samples, and tells in its info what it was asked to do."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {
                "molecule": spaces.Graph(item(), spaces.Discrete(4)),
                "chain": spaces.Sequence(item()),
                "stack": spaces.Sequence(spaces.Dict({"item": item()}), stack=True),
            }
        )
        self.action_space = spaces.OneOf([spaces.Discrete(3, dtype=np.int32), item()])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), float(action[0]), False, False, {}


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = np.asarray(cast("Any", value))
        return array.dtype.name, array.shape, array.tobytes()
    if isinstance(value, dict):
        return {key: plain(child) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple | list):
        return type(cast("Any", value)), [plain(one) for one in cast("list[Any]", value)]
    return value


def test_an_episode_over_the_wire_is_the_local_one(serve: Serve) -> None:
    local = Molecules()
    with rlmesh.numpy.RemoteEnv(serve(Molecules)) as env:
        assert env.observation_space == local.observation_space
        assert env.action_space == local.action_space
        assert plain(env.reset(seed=7)[0]) == plain(local.reset(seed=7)[0])
        for action in [(0, 2), (1, np.full(2, 0.5, np.float32)), (0, 1)]:
            observation, reward, *_ = env.step(action)
            expected, _, *_ = local.step(action)
            assert env.observation_space.contains(observation)
            assert plain(observation) == plain(expected)
            assert reward == action[0]


def test_native_graphs_and_sequences_hold_tensors(serve: Serve) -> None:
    local = Molecules()
    with rlmesh.RemoteEnv(serve(Molecules)) as env:
        seen, _ = env.reset(seed=7)
        meant, _ = local.reset(seed=7)
        assert isinstance(seen["molecule"], rlmesh.spaces.GraphInstance)
        assert isinstance(seen["chain"][0], rlmesh.Tensor)
        np.testing.assert_array_equal(np.asarray(seen["molecule"].nodes), meant["molecule"].nodes)
        np.testing.assert_array_equal(np.asarray(seen["stack"]["item"]), meant["stack"]["item"])


def test_an_action_of_no_alternative_is_refused_and_the_session_goes_on(serve: Serve) -> None:
    with rlmesh.numpy.RemoteEnv(serve(Molecules)) as env:
        env.reset(seed=7)
        with pytest.raises(InvalidActionError) as caught:
            env.step((2, 0))
        assert caught.value.path == "$[0]"
        env.step((0, 0))


def test_a_client_that_does_not_know_them_is_told_so_at_the_handshake() -> None:
    with (
        EnvServer(Molecules, "127.0.0.1:0") as server,
        grpc.insecure_channel(server.address.removeprefix("tcp://")) as channel,
    ):
        handshake = channel.unary_unary(
            HANDSHAKE,
            env_pb2.HandshakeRequest.SerializeToString,
            env_pb2.HandshakeResponse.FromString,
        )
        base = core_pb2.HandshakeRequest(protocol_generation="rlmesh-wire-v1")
        response: Any = handshake(env_pb2.HandshakeRequest(base=base), timeout=10)
    assert not response.base.compatible
    assert "Sequence, Graph or OneOf" in response.base.error_message
    assert not response.HasField("env_contract")
