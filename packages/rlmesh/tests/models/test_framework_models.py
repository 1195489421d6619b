"""Models over tensors and JAX arrays: what arrives, where, and what they may answer."""

from __future__ import annotations

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
from rlcore import ConfigurationError
from rlmesh.models.conversion import converter

jax: Any = typed_jax  # Any: checkers cannot read the types of most of jax
BOX = spaces.Box(-9, 9, (2,), np.float32)


class Echo(gymnasium.Env[Any, Any]):
    """Observes what it was stepped with, in a tree of its own."""

    def __init__(self) -> None:
        self.observation_space = spaces.Dict(
            {"seen": BOX, "pair": spaces.Tuple([BOX, spaces.Discrete(5)]), "note": spaces.Text(9)}
        )
        self.action_space = spaces.Dict({"move": BOX, "gear": spaces.Discrete(3)})
        self.actions: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.actions = []
        return self.observation(np.zeros(2, np.float32)), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        return self.observation(action["move"]), 1.0, len(self.actions) == 3, False, {}

    def observation(self, seen: Any) -> Any:
        return {"seen": seen, "pair": (seen, 4), "note": "here"}


def moved(observation: Any) -> Any:
    return {"move": observation["seen"] + 1, "gear": 2}


@pytest.mark.parametrize(
    ("module", "kind"), [(rlmesh.torch, torch.Tensor), (rlmesh.jax, jax.Array)]
)
def test_a_model_sees_its_framework_s_arrays_and_answers_with_them(module: Any, kind: Any) -> None:
    seen: list[Any] = []

    def policy(observation: Any) -> Any:
        seen.append(observation)
        return moved(observation)

    env = Echo()
    result = rlmesh.run(module.Model(policy), env, seeds=[0])

    assert result.total_steps == 3
    assert isinstance(seen[0]["seen"], kind)
    assert isinstance(seen[0]["pair"][0], kind)
    assert (seen[0]["pair"][1], seen[0]["note"]) == (4, "here")
    assert [action["move"].tolist() for action in env.actions] == [[1, 1], [2, 2], [3, 3]]
    assert {type(action["move"]) for action in env.actions} == {np.ndarray}
    assert [action["gear"] for action in env.actions] == [2, 2, 2]


def test_a_torch_policy_with_gradients_plays() -> None:
    layer = torch.nn.Linear(2, 2)
    env = Echo()

    rlmesh.run(
        rlmesh.torch.Model(lambda seen: {"move": layer(seen["seen"]).clamp(-9, 9), "gear": 0}),
        env,
        episodes=1,
    )

    assert len(env.actions) == 3


def test_what_a_model_does_to_its_tensor_does_not_reach_the_environment() -> None:
    def policy(observation: Any) -> Any:
        observation["seen"].fill_(7)
        return moved({"seen": torch.zeros(2)})

    env = Echo()
    rlmesh.run(rlmesh.torch.Model(policy), env, episodes=1)

    assert [action["move"].tolist() for action in env.actions] == [[1, 1]] * 3


def test_observations_are_put_where_load_says() -> None:
    devices: list[str] = []

    class Policy(rlmesh.torch.Model):
        def load(self) -> None:
            self.device = "meta"

        def predict(self, observation: Any, /) -> Any:
            devices.append(observation["seen"].device.type)
            return {"move": [0, 0], "gear": 0}

    rlmesh.run(Policy(), Echo(), episodes=1)

    assert devices == ["meta"] * 3


@pytest.mark.parametrize("kind", [rlmesh.Model, rlmesh.numpy.Model])
def test_a_device_is_refused_where_arrays_have_none(kind: Any) -> None:
    model = kind(moved)
    model.device = "cpu"

    with pytest.raises(ValueError, match="device is 'cpu'") as caught:
        rlmesh.run(model, Echo(), episodes=1)
    assert isinstance(caught.value, ConfigurationError)


def test_an_unknown_device_is_refused_before_the_environment_is_touched() -> None:
    env = Echo()
    model = rlmesh.torch.Model(moved)
    model.device = "nonsense"

    with pytest.raises(ConfigurationError, match="nonsense"):
        rlmesh.run(model, env, episodes=1)
    assert env.actions == []


def test_conversion_takes_every_library_s_arrays_and_keeps_the_rest() -> None:
    value = {
        "torch": torch.ones(2),
        "jax": jax.numpy.ones(2),
        "native": rlmesh.Tensor(np.ones(2, np.float32), [2], "float32"),
        "scalar": np.float32(2),
        "odd": np.array(["a"]),
        "list": [np.zeros(1, ">f4"), "text", None],
    }

    made: Any = converter("torch")(value)

    for name in ("torch", "jax", "native"):
        assert torch.equal(made[name], torch.ones(2))
    assert made["scalar"] == 2.0
    assert made["odd"] is value["odd"]
    assert made["list"][0].dtype == torch.float32
    assert made["list"][1:] == ["text", None]
    numpy: Any = converter("numpy")(value)
    assert {type(numpy[name]) for name in ("torch", "jax", "native")} == {np.ndarray}
    native: Any = converter("native")({"torch": torch.ones(2), "jax": jax.numpy.ones(2)})
    assert native == dict.fromkeys(("torch", "jax"), value["native"])
