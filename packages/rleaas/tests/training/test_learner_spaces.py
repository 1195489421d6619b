# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false

import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ConfigurationError
from rleaas.training.learner_spaces import (
    check_learnable,
    learner_space,
    policy_name,
    to_environment,
    to_learner,
)
from rleaas.training.space_json import space_from_json, space_to_json

DISCRETE = spaces.Discrete(2)
LEARNABLE = st.one_of(
    st.builds(spaces.Discrete, st.integers(1, 50), start=st.integers(-5, 5)),
    st.builds(spaces.MultiBinary, st.integers(1, 6)),
    st.builds(
        lambda nvec, start: spaces.MultiDiscrete(nvec, start=np.full(len(nvec), start)),
        st.lists(st.integers(1, 9), min_size=1, max_size=3),
        st.integers(-3, 3),
    ),
    st.builds(
        lambda low, shape, dtype: spaces.Box(low, low + 7, shape, dtype),
        st.integers(0, 100),
        st.lists(st.integers(1, 3), max_size=3).map(tuple),
        st.sampled_from([np.float32, np.float64, np.uint8, np.int16]),
    ),
)


@given(space=LEARNABLE)
def test_a_space_survives_json(space: gymnasium.Space[Any]) -> None:
    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


def test_bounds_that_differ_and_have_no_end_survive_json() -> None:
    limits = np.array([1.5, np.inf], dtype=np.float32)
    space = spaces.Dict({"a": spaces.Box(-limits, limits), "b": spaces.Discrete(3)})

    assert space_from_json(json.loads(json.dumps(space_to_json(space)))) == space


def test_a_space_without_a_network_cannot_be_written() -> None:
    with pytest.raises(ConfigurationError, match="Sequence"):
        space_to_json(spaces.Sequence(spaces.Discrete(2)))


@given(space=LEARNABLE)
def test_what_a_policy_sees_is_in_the_learners_space(space: gymnasium.Space[Any]) -> None:
    space.seed(0)

    assert learner_space(space).contains(to_learner(space, space.sample()))


@given(space=LEARNABLE)
def test_what_a_policy_does_is_in_the_environments_space(space: gymnasium.Space[Any]) -> None:
    inner = learner_space(space)
    inner.seed(0)
    action = to_environment(space, inner.sample())

    assert space.contains(action)


@pytest.mark.parametrize(
    ("space", "name"),
    [
        (spaces.Box(-1, 1, (4,)), "MlpPolicy"),
        (spaces.Box(0, 255, (84, 84, 3), np.uint8), "CnnPolicy"),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "MlpPolicy"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "MultiInputPolicy"),
    ],
)
def test_the_network_follows_from_the_observations(space: gymnasium.Space[Any], name: str) -> None:
    assert policy_name(space, None) == name


def test_a_network_that_cannot_see_the_observations_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="MlpPolicy"):
        policy_name(spaces.Box(-1, 1, (4,)), "CnnPolicy")


@pytest.mark.parametrize(
    "actions",
    [
        spaces.Text(3),
        spaces.Tuple([DISCRETE]),
        spaces.MultiBinary([2, 2]),
        spaces.Box(-np.inf, np.inf, (1,)),
        spaces.Box(0, 9, (1,), np.int32),
    ],
)
def test_actions_that_nothing_learns_are_refused(actions: gymnasium.Space[Any]) -> None:
    with pytest.raises(ConfigurationError, match="PPO cannot learn actions"):
        check_learnable(spaces.Box(-1, 1, (4,)), actions, "PPO")


@pytest.mark.parametrize(
    "observations",
    [spaces.Text(3), spaces.Dict({"a": spaces.Dict({"b": DISCRETE})}), spaces.Box(0, 1, (0,))],
)
def test_observations_that_nothing_learns_from_are_refused(
    observations: gymnasium.Space[Any],
) -> None:
    with pytest.raises(ConfigurationError, match="PPO cannot learn from"):
        check_learnable(observations, DISCRETE, "PPO")
