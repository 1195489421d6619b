"""Environments and clients whose arrays are torch's or JAX's, over a real server."""

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
from gymnasium.wrappers import vector
from rlcore import ConfigurationError, EnvironmentException, InvalidActionError
from rlmesh.server.framework import action_backend

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
jnp: Any = jax.numpy
Serve = Callable[..., rlmesh.EnvServer]

ARRAYS = {"numpy": np.ndarray, "torch": torch.Tensor, "jax": jax.Array}
MODULES = {"numpy": rlmesh.numpy, "torch": rlmesh.torch, "jax": rlmesh.jax}
LISTS: dict[str, Callable[[Any], Any]] = {
    "numpy": np.array,
    "torch": torch.tensor,
    "jax": jnp.array,
}


class Mirror(gymnasium.Env[Any, Any]):
    """Observes its action; everything that it returns is made by `array`."""

    render_mode = "rgb_array"

    def __init__(self, array: Callable[[Any], Any] = np.array) -> None:
        box = spaces.Box(-9, 9, (2,), np.float32)
        tree = spaces.Dict({"box": box, "both": spaces.Tuple([box, spaces.MultiBinary(2)])})
        self.observation_space, self.action_space = tree, tree
        self.array = array
        self.actions: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation([0.0, 0.5]), {}

    def step(self, action: Any) -> Any:
        self.actions.append(action)
        seen = self.observation(np.asarray(action["box"]).tolist())
        over = self.array(len(self.actions) == 2)
        return seen, self.array(1.5), over, self.array(False), {}

    def observation(self, numbers: list[float]) -> Any:
        return {
            "box": self.array(numbers),
            "both": (self.array(numbers), self.array([True, False])),
        }

    def render(self) -> Any:
        return np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


class Boxed(Mirror):
    """Takes a row of numbers between -1 and 1, and shows it above zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)
        self.observation_space = spaces.Box(-9, 9, (2, 2), np.float32)

    def step(self, action: Any) -> Any:
        return np.array([action, [0, 0]], np.float32), 0.0, False, False, {}

    def observation(self, numbers: list[float]) -> Any:
        return np.zeros((2, 2), np.float32)


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("named", [True, False])
def test_an_environment_of_any_framework_is_served(
    serve: Serve, framework: str, named: bool
) -> None:
    env = Mirror(LISTS[framework])
    server = serve(env, framework=framework if named else None)

    with rlmesh.numpy.RemoteEnv(server.address) as client:
        observation, _ = client.reset(seed=1)
        assert observation["box"].tolist() == [0, 0.5]
        action = {"box": [1, -1], "both": ([0, 0], [1, 0])}
        observation, reward, terminated, truncated, _ = client.step(action)
        assert (reward, terminated, truncated) == (1.5, False, False)
        assert observation["both"][1].tolist() == [1, 0]
        *_, terminated, truncated, _ = client.step(action)
        assert (terminated, truncated) == (True, False)

    kind = ARRAYS[framework if named else "numpy"]
    assert isinstance(env.actions[0]["box"], kind)
    assert isinstance(env.actions[0]["both"][1], kind)


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_a_client_sees_its_framework_s_arrays_and_acts_with_them(
    serve: Serve, framework: str
) -> None:
    env = Mirror()
    server = serve(env)
    kind, array = ARRAYS[framework], LISTS[framework]

    with MODULES[framework].RemoteEnv(server.address) as client:
        observation, _ = client.reset()
        assert isinstance(observation["both"][0], kind)
        assert observation["box"].tolist() == [0, 0.5]
        assert client.action_space == Mirror().action_space
        sample = MODULES[framework].space_from_spec(client.action_space_spec).sample()
        assert isinstance(sample["box"], kind)
        client.step(sample)
        mixed = {"box": array([2.0, 3.0]), "both": [np.array([1, 2]), array([True, False])]}
        observation, reward, *_ = client.step(mixed)
        assert isinstance(observation["box"], kind)
        assert observation["box"].tolist() == [2, 3]
        assert (type(reward), reward) == (float, 1.5)
        frame = client.render()
        assert isinstance(frame, kind)
        assert np.asarray(frame).tolist() == env.render().tolist()


def test_observations_in_torch_can_be_written_to(serve: Serve) -> None:
    with rlmesh.torch.RemoteEnv(serve(Mirror()).address) as client:
        observation, _ = client.reset()
        observation["box"] += 1

        assert observation["box"].tolist() == [1, 1.5]


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_client_of_a_framework_is_a_gymnasium_env(serve: Serve, framework: str) -> None:
    client = MODULES[framework].RemoteEnv(serve(Mirror).address)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.TimeLimit(client, 1))

    env.reset(seed=3)
    *_, truncated, info = env.step(client.action_space.sample())

    assert truncated
    assert info["episode"]["r"] == 1.5
    assert client.spec is not None
    twin: Any = client.spec.make()
    assert type(twin.unwrapped) is MODULES[framework].RemoteEnv
    twin.close()
    env.close()


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_wrappers_that_read_spaces_take_a_client_of_a_framework(
    serve: Serve, framework: str
) -> None:
    client = MODULES[framework].RemoteEnv(serve(Boxed()).address)
    env = gymnasium.wrappers.FlattenObservation(gymnasium.wrappers.ClipAction(client))

    observation, _ = env.reset()
    assert observation.tolist() == [0, 0, 0, 0]
    observation, *_ = env.step(np.array([5.0, -0.5]))
    assert observation.tolist() == [1, -0.5, 0, 0]
    env.close()


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_vector_wrappers_that_read_spaces_take_a_client_of_a_framework(
    serve: Serve, framework: str
) -> None:
    lanes = MODULES[framework].RemoteVectorEnv(serve([Boxed(), Boxed()]).address)
    env: Any = vector.FlattenObservation(vector.ClipAction(lanes))

    assert env.observation_space.shape == (2, 4)
    env.reset()
    observations, *_ = env.step(np.array([[5.0, -0.5], [0.25, 0.0]]))
    assert observations.tolist() == [[1, -0.5, 0, 0], [0.25, 0, 0, 0]]
    env.close()


def test_values_are_put_on_the_client_s_device(serve: Serve) -> None:
    server = serve(Mirror)

    with rlmesh.torch.RemoteEnv(server.address, device="meta") as client:
        assert client.reset()[0]["box"].device.type == "meta"
        space = rlmesh.torch.space_from_spec(client.action_space_spec, device="meta")
        assert space.sample()["box"].device.type == "meta"
    with rlmesh.jax.RemoteEnv(server.address, device="cpu") as client:
        assert client.reset()[0]["box"].devices() == {jax.devices("cpu")[0]}
    for module in (rlmesh.torch, rlmesh.jax):
        with pytest.raises(ConfigurationError, match="nonsense"):
            module.RemoteEnv(server.address, device="nonsense")


def test_actions_are_put_on_the_server_s_device(serve: Serve) -> None:
    devices: list[str] = []

    class Placed(Mirror):
        def step(self, action: Any) -> Any:
            devices.append(action["box"].device.type)
            return self.observation([0.0, 0.0]), 0.0, False, False, {}

    with rlmesh.RemoteEnv(serve(Placed, framework="torch", device="meta").address) as client:
        client.reset()
        client.step({"box": [1, 1], "both": ([1, 1], [0, 0])})

    assert devices == ["meta"]


def test_actions_with_gradients_are_detached(serve: Serve) -> None:
    env = Mirror()
    with rlmesh.torch.RemoteEnv(serve(env).address) as client:
        client.reset()
        weights = torch.tensor([1.0, 2.0], requires_grad=True)
        client.step({"box": weights * 2, "both": (weights, torch.zeros(2))})

    assert env.actions[0]["box"].tolist() == [2, 4]


def short(values: Any) -> torch.Tensor:
    made = torch.tensor(values)
    return made.to(torch.bfloat16) if made.is_floating_point() else made


def test_bfloat16_is_widened(serve: Serve) -> None:
    env = Mirror(short)
    with rlmesh.jax.RemoteEnv(serve(env).address) as client:
        observation, _ = client.reset()
        assert observation["box"].tolist() == [0, 0.5]
        action = {"box": jnp.array([1.5, 2], jnp.bfloat16), "both": ([0, 0], [0, 0])}
        assert client.step(action)[1] == 1.5

    assert env.actions[0]["box"].tolist() == [1.5, 2]


@pytest.mark.parametrize(
    ("framework", "device", "said"),
    [
        ("tensorflow", None, "framework is 'tensorflow'"),
        (3, None, "framework is 3"),
        (None, "cpu", "no framework was named"),
        ("numpy", "cpu", "numpy values have no device"),
        ("torch", "nonsense", "nonsense"),
        ("jax", "nonsense", "nonsense"),
    ],
)
def test_a_wrong_framework_or_device_is_a_value_error(
    framework: Any, device: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        rlmesh.EnvServer(Mirror(), framework=framework, device=device)
    assert isinstance(caught.value, ConfigurationError)


@pytest.mark.parametrize("name", ["torch", " Torch ", "TORCH"])
def test_a_framework_is_named_in_any_case(name: str) -> None:
    assert action_backend(name, None).name == "torch"
    assert action_backend("NP", None).name == "numpy"


@pytest.mark.filterwarnings("ignore:jax holds:UserWarning")
def test_an_action_that_jax_cannot_hold_is_refused_and_the_session_goes_on(serve: Serve) -> None:
    class Wide(Mirror):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = spaces.MultiDiscrete([2**40])
            self.observation_space = spaces.Discrete(2)

        def reset(self, **_: Any) -> Any:
            return 0, {}

        def step(self, action: Any) -> Any:
            assert isinstance(action, jax.Array)
            return int(action[0]), 0.0, False, False, {}

    with rlmesh.numpy.RemoteEnv(serve(Wide, framework="jax").address) as client:
        client.reset()
        with pytest.raises(InvalidActionError, match="jax_enable_x64"):
            client.step([2**35])
        assert client.step([1])[0] == 1


@pytest.mark.parametrize(
    "flag", [torch.tensor([True, False]), torch.tensor(1), jnp.array(0.0), np.array([True, True])]
)
def test_what_is_no_flag_is_still_refused(serve: Serve, flag: Any) -> None:
    class Odd(Mirror):
        def step(self, action: Any) -> Any:
            return self.observation([0, 0]), 0.0, flag, False, {}

    with rlmesh.numpy.RemoteEnv(serve(Odd).address) as client:
        client.reset()
        with pytest.raises(EnvironmentException, match="terminated must be a bool"):
            client.step(client.action_space.sample())


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_a_model_of_a_framework_is_run_on_a_served_environment(
    serve: Serve, framework: str
) -> None:
    env = Mirror()
    seen: list[Any] = []

    def policy(observation: Any) -> Any:
        seen.append(observation)
        return {"box": observation["box"] + 1, "both": observation["both"]}

    model = MODULES[framework].Model(policy)
    result = rlmesh.run(model, serve(env).address, seeds=[3])

    assert (result.total_steps, result.mean_reward) == (2, 3.0)
    assert {type(part) for value in seen for part in (value["box"], *value["both"])} == {
        type(LISTS[framework]([1.0]))
    }
    assert [action["box"].tolist() for action in env.actions] == [[1, 1.5], [2, 2.5]]


def test_a_session_gives_a_model_its_framework_s_arrays_too(serve: Serve) -> None:
    kinds: list[Any] = []

    def policy(observation: Any) -> Any:
        kinds.append(type(observation["box"]))
        return observation

    with rlmesh.session(rlmesh.torch.Model(policy), serve(Mirror()).address) as session:
        observation, _ = session.reset()
        session.step(session.predict(observation))

    assert kinds == [torch.Tensor]
