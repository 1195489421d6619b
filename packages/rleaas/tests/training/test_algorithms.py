import json
from typing import Any, cast

import numpy as np
import pytest
from gymnasium import spaces
from rlcore import ConfigurationError
from rleaas.training.algorithms import (
    ALGORITHMS,
    SUPPORTED_ALGORITHMS,
    fitting,
    misfit,
    require_fit,
)
from rleaas.training.hyperparameters import HYPERPARAMETERS
from rlmesh.spaces import from_gymnasium_space

Described = dict[str, object]


def described(space: Any) -> Described:
    return cast("Described", json.loads(json.dumps(from_gymnasium_space(space).to_dict())))


FLAT = described(spaces.Box(-1, 1, (3,)))
CHOICE = described(spaces.Discrete(2))


def test_every_algorithm_names_settings_that_have_a_rule() -> None:
    assert set(ALGORITHMS) <= set(SUPPORTED_ALGORITHMS)
    for algorithm in ALGORITHMS.values():
        assert set(algorithm.hyperparameters) <= set(HYPERPARAMETERS)
        assert algorithm.reproducible == (algorithm.why_not is None)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(3),
        spaces.MultiDiscrete([2, 2]),
        spaces.MultiBinary(4),
        spaces.Box(-1, 1, (2,)),
        spaces.Box(-1, 1, ()),
    ],
)
def test_ppo_takes_bounded_and_discrete_actions(space: Any) -> None:
    assert misfit("PPO", FLAT, described(space)) is None


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (spaces.Box(-float("inf"), float("inf"), (2,)), "finite bounds"),
        (spaces.Box(0, 4, (2,), dtype=np.int32), "finite bounds"),
        (spaces.MultiBinary([2, 2]), "flat ones"),
        (spaces.Text(5), "a Text space"),
        (spaces.Dict({"a": spaces.Discrete(2)}), "a Dict space"),
        (spaces.Box(-1, 1, (0,)), "nothing in it"),
    ],
)
def test_actions_that_ppo_cannot_take_are_named(space: Any, said: str) -> None:
    assert said in str(misfit("PPO", FLAT, described(space)))


def test_an_observation_that_no_network_takes_is_named_with_its_part() -> None:
    space = described(spaces.Dict({"board": spaces.Box(0, 1), "talk": spaces.Text(9)}))

    assert "'talk' is a Text space" in str(misfit("PPO", space, CHOICE))
    assert misfit("PPO", described(spaces.Dict({"board": spaces.Box(0, 1)})), CHOICE) is None


def test_a_misfit_is_refused_with_what_fits() -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_fit("PPO", FLAT, described(spaces.Tuple([spaces.Discrete(2)])))

    assert caught.value.code == "space_not_learnable"
    assert fitting(FLAT, described(spaces.Tuple([spaces.Discrete(2)]))) == []
    assert "PPO" in fitting(FLAT, CHOICE)
