# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from rlcore import ConfigurationError
from rleaas.training.actor.network import ActorNetwork
from rleaas.training.actor.observations import Encoder, Observations

SPACES: dict[str, gymnasium.Space[Any]] = {
    "vector": spaces.Box(-1.0, 1.0, (3,)),
    "matrix": spaces.Box(-1.0, 1.0, (2, 3)),
    "picture": spaces.Box(0, 255, (36, 40, 3), np.uint8),
    "channels first": spaces.Box(0, 255, (1, 36, 36), np.uint8),
    "class": spaces.Discrete(4),
    "classes": spaces.MultiDiscrete(np.array([[2, 3], [4, 2]])),
    "switches": spaces.MultiBinary(3),
    "dict": spaces.Dict(
        {"a.b": spaces.Box(-1.0, 1.0, (2,)), "c": spaces.Discrete(3), "d": spaces.MultiBinary(2)}
    ),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_policy_sees_every_learnable_observation(name: str) -> None:
    space = SPACES[name]
    space.seed(1)
    network = ActorNetwork(space, spaces.Discrete(2), (8,), critic=True)

    outputs, values = network.both(network.observations.stack([space.sample() for _ in range(5)]))

    assert (outputs.shape, values.shape) == ((5, 2), (5,))


def test_classes_are_one_hot_and_numbers_are_as_they_are() -> None:
    observations = Observations(SPACES["dict"])
    seen = [{"a.b": np.array([0.5, -1.0]), "c": 2, "d": np.array([1, 0])}]

    features = Encoder(observations)(observations.stack(seen))

    assert features.tolist() == [[0.5, -1.0, 0.0, 0.0, 1.0, 1.0, 0.0]]


def test_parts_of_a_grid_of_classes_are_told_apart() -> None:
    observations = Observations(SPACES["classes"])

    features = Encoder(observations)(observations.stack([np.array([[1, 2], [0, 1]])]))

    assert features.tolist() == [[0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1]]


def test_a_small_picture_is_taken_as_numbers() -> None:
    observations = Observations(spaces.Box(0, 255, (8, 8, 3), np.uint8))

    assert Encoder(observations).width == 8 * 8 * 3


def test_observations_of_text_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Text"):
        ActorNetwork(spaces.Text(3), spaces.Discrete(2))


def test_weights_that_are_no_numbers_are_noticed() -> None:
    network = ActorNetwork(SPACES["vector"], spaces.Discrete(2))
    assert network.is_finite()

    with torch.no_grad():
        next(network.parameters())[0, 0] = float("nan")
    assert not network.is_finite()


def test_a_policy_without_a_critic_values_nothing() -> None:
    network = ActorNetwork(SPACES["vector"], spaces.Discrete(2))

    with pytest.raises(TypeError, match="critic"):
        network.values(network.observations.example(1))
