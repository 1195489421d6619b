"""Many lanes whose arrays are torch's or JAX's, and values out of range in some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax as typed_jax
import numpy as np
import pytest
import rlmesh
import rlmesh.jax
import rlmesh.numpy
import rlmesh.torch
import torch
from gymnasium import spaces
from rlcore import EnvironmentException, InvalidActionError
from rlmesh.server.validation import POLICY_VARIABLE, WARNING_KEY

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
jnp: Any = jax.numpy
Serve = Callable[..., rlmesh.EnvServer]
BOX = spaces.Box(-1, 1, (2,), np.float32)
LISTS: dict[str, Callable[[Any], Any]] = {"torch": torch.tensor, "jax": jnp.array}
KINDS = {"torch": torch.Tensor, "jax": jax.Array}
MODULES = {"torch": rlmesh.torch, "jax": rlmesh.jax}

# Rewards are float64 in every framework; JAX says that it narrows them.
pytestmark = pytest.mark.filterwarnings("ignore:jax holds float64:UserWarning")


class Lane(gymnasium.Env[Any, Any]):
    """Observes its action; made of `array` from end to end."""

    def __init__(self, array: Callable[[Any], Any] = np.array) -> None:
        self.observation_space = self.action_space = BOX
        self.array = array
        self.actions: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.array([0.0, 0.5]), {}

    def step(self, action: Any) -> Any:
        self.actions.append(action)
        seen = self.array(np.asarray(action).tolist())
        return seen, self.array(2.5), self.array(False), self.array(False), {}


class Together:
    """Steps three lanes at once, in one framework."""

    num_envs = 3
    single_observation_space = single_action_space = BOX
    metadata: dict[str, Any] = {}  # noqa: RUF012  # as environments have it

    def __init__(self, array: Callable[[Any], Any]) -> None:
        self.array = array
        self.actions: list[Any] = []

    @property
    def observation_space(self) -> Any:
        return gymnasium.vector.utils.batch_space(BOX, 3)

    @property
    def action_space(self) -> Any:
        return self.observation_space

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return self.array([[0.0, 0.5]] * 3), {}

    def step(self, actions: Any) -> Any:
        self.actions.append(actions)
        flags = self.array([False, False, True])
        return actions, self.array([0.0, 1.0, 2.0]), flags, ~flags & False, {}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_lanes_of_a_framework_are_stepped_together(serve: Serve, framework: str) -> None:
    envs = [Lane(LISTS[framework]) for _ in range(2)]
    server = serve(envs, framework=framework)

    with MODULES[framework].RemoteVectorEnv(server.address) as client:
        observations, _ = client.reset(seed=1)
        assert isinstance(observations, KINDS[framework])
        assert observations.tolist() == [[0, 0.5]] * 2
        actions = LISTS[framework]([[0.25, 0.5], [-1.0, 1.0]])
        observations, rewards, terminated, *_ = client.step(actions)

    assert observations.tolist() == [[0.25, 0.5], [-1, 1]]
    assert isinstance(rewards, KINDS[framework])
    assert (rewards.tolist(), terminated.tolist()) == ([2.5, 2.5], [False, False])
    assert isinstance(envs[1].actions[0], KINDS[framework])


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_vector_environment_of_a_framework_gets_one_batch(serve: Serve, framework: str) -> None:
    env = Together(LISTS[framework])
    server = serve(env, framework=framework)

    with rlmesh.numpy.RemoteVectorEnv(server.address) as client:
        client.reset()
        observations, rewards, terminated, truncated, _ = client.step([BOX.low] * 3)

    assert observations.tolist() == [[-1, -1]] * 3
    assert rewards.tolist() == [0, 1, 2]
    assert (terminated.tolist(), truncated.tolist()) == ([False, False, True], [False] * 3)
    (batch,) = env.actions
    assert isinstance(batch, KINDS[framework])
    assert tuple(batch.shape) == (3, 2)


def test_the_values_of_lanes_are_put_on_the_client_s_device(serve: Serve) -> None:
    server = serve([Lane(), Lane()])

    with rlmesh.torch.RemoteVectorEnv(server.address, device="meta") as client:
        assert client.reset()[0].device.type == "meta"
        observations, rewards, *_ = client.step(np.zeros((2, 2), np.float32))

    assert (observations.device.type, rewards.device.type) == ("meta", "meta")


@pytest.mark.parametrize("together", [True, False])
def test_a_lane_out_of_range_is_named_once(serve: Serve, together: bool) -> None:
    server = serve(Together(np.array) if together else [Lane() for _ in range(3)])
    actions = np.array([[0, 0], [0, 0], [0, 7]], np.float32)

    with rlmesh.numpy.RemoteVectorEnv(server.address) as client:
        client.reset()
        first, second = client.step(actions)[-1], client.step(actions)[-1]

    told = {"path": "$", "detail": "holds 7.0 at [1] in lane 2, outside -1.0 to 1.0"}
    assert list(first[WARNING_KEY]) == [
        {"kind": "observation", **told},
        {"kind": "action", **told},
    ]
    assert WARNING_KEY not in second


def test_a_strict_server_steps_no_lane_when_one_action_is_out_of_range(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLICY_VARIABLE, "strict")
    envs = [Lane(), Lane()]
    with rlmesh.numpy.RemoteVectorEnv(serve(envs).address) as client:
        client.reset()
        with pytest.raises(InvalidActionError, match="in lane 1"):
            client.step(np.array([[0, 0], [0, 7]], np.float32))
        assert envs[0].actions == []
        client.step(np.zeros((2, 2), np.float32))


def test_a_strict_server_refuses_the_observation_of_a_lane(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wide(Lane):
        def step(self, action: Any) -> Any:
            return [5, 5], 0.0, False, False, {}

    monkeypatch.setenv(POLICY_VARIABLE, "strict")
    with rlmesh.numpy.RemoteVectorEnv(serve([Lane(), Wide()]).address) as client:
        client.reset()
        with pytest.raises(EnvironmentException, match=r"observation at .* in lane 1"):
            client.step(np.zeros((2, 2), np.float32))


def test_strict_dtypes_hold_for_batches_and_for_lists_of_actions(serve: Serve) -> None:
    envs = [Lane(), Lane()]
    with rlmesh.torch.RemoteVectorEnv(serve(envs).address, strict_dtypes=True) as client:
        client.reset()
        for wrong in (np.zeros((2, 2)), [np.zeros(2), np.zeros(2)], torch.zeros(2, 2).double()):
            with pytest.raises(InvalidActionError, match="strict_dtypes"):
                client.step(wrong)
        assert envs[0].actions == []
        for right in (torch.zeros(2, 2), [torch.zeros(2), [0.0, 0.0]]):
            client.step(right)

    assert len(envs[0].actions) == 2
