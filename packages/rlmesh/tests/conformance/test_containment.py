"""Values are judged by the letter of their space."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rlmesh import Tensor, spaces
from rlmesh.conformance.containment import compile_judge

BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
PAIR = gym.spaces.Dict({"a": BOX, "b": gym.spaces.Tuple([gym.spaces.Discrete(3, start=1)])})


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (BOX, np.zeros(2, np.float32)),
        (spaces.from_gymnasium_space(BOX), Tensor(bytes(8), [2], "float32")),
        (gym.spaces.Box(0, 1, ()), np.float32(0.5)),
        (gym.spaces.Discrete(3), 2),
        (gym.spaces.Discrete(3), np.int64(2)),
        (gym.spaces.Discrete(3), np.array(2)),
        (gym.spaces.MultiBinary(3), np.array([0, 1, 1], np.int8)),
        (gym.spaces.MultiDiscrete([2, 3]), np.array([1, 2])),
        (gym.spaces.MultiDiscrete([2, 3], dtype=np.int32), np.array([1, 2], np.int32)),
        (gym.spaces.Text(4), "abc"),
        (PAIR, {"a": np.ones(2, np.float32), "b": (3,)}),
        (gym.spaces.OneOf([BOX, gym.spaces.Discrete(2)]), (np.int64(1), np.int64(0))),
        (gym.spaces.Sequence(gym.spaces.Discrete(2)), (0, 1, 1)),
    ],
)
def test_a_value_of_the_space_is_accepted(space: Any, value: Any) -> None:
    assert compile_judge(space)(value) is None


@pytest.mark.parametrize(
    ("space", "value", "text"),
    [
        (BOX, np.zeros(2), "$ has the element type float64, declared is float32"),
        (BOX, np.zeros((1, 2), np.float32), "$ has the shape (1, 2), declared is (2,)"),
        (BOX, np.full(2, 1.5, np.float32), "$ holds 1.5"),
        (BOX, np.full(2, np.nan, np.float32), "$ holds NaN"),
        (BOX, [0.0, 0.0], "$ is a list, not an array of float32"),
        (gym.spaces.Box(0, 1, ()), 0.5, "$ is a float, not an array"),
        (gym.spaces.Discrete(3), 3, "$"),
        (gym.spaces.Discrete(3), 1.0, "$ is the float 1.0, not an integer"),
        (gym.spaces.Discrete(3), True, "$ is the bool True, not an integer"),
        (gym.spaces.Discrete(3), np.array([1]), "$ is the ndarray array([1]), not an integer"),
        (gym.spaces.MultiBinary(2), np.array([0, 2], np.int8), "$"),
        (gym.spaces.MultiDiscrete([2, 3]), np.array([2, 0]), "$"),
        (gym.spaces.Text(2), "abc", "$"),
        (PAIR, {"a": np.ones(2, np.float32)}, "$ lacks ['b']"),
        (PAIR, {"a": np.ones(2, np.float32), "b": (1,), "c": 0}, "$ has the undeclared ['c']"),
        (PAIR, {"a": np.ones(2, np.float32), "b": [1]}, "$.b is [1], not a tuple"),
        (PAIR, {"a": np.ones(2, np.float32), "b": (0,)}, "$.b[0]"),
        (PAIR, {"a": np.ones(2, np.float32), "b": (1, 1)}, "$.b has 2 items; the space has 1"),
        (PAIR, None, "$ is None, not a dict"),
        (gym.spaces.Sequence(gym.spaces.Discrete(2)), (0, 2), "$ is (0, 2), not in Sequence"),
    ],
)
def test_anything_else_is_told_by_its_place(space: Any, value: Any, text: str) -> None:
    told = compile_judge(space)(value)

    assert told is not None
    assert told.startswith(text)


def test_a_space_that_raises_is_told() -> None:
    class Odd(gym.spaces.Space[Any]):
        def contains(self, x: Any) -> bool:
            raise KeyError("x")

    assert compile_judge(Odd())(1) == "$: Odd.contains raised KeyError: 'x'"
