"""From what networks put out to actions of every kind of space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from rlcore import ConfigurationError, InvalidActionError
from rlmesh.models.context import EpisodeContext, PredictContext
from rlmesh.models.outputs import checked_option, decider
from rlmesh.spaces import from_gymnasium_space


def decide(
    space: Any, outputs: Any, option: Any = "auto", *, deterministic: bool = True, seed: int = 0
) -> Any:
    make = decider(option, from_gymnasium_space(space), deterministic=deterministic, model="net")
    return make(outputs, contexts(1, seed))


def contexts(count: int, first: int = 0) -> list[PredictContext]:
    return [EpisodeContext("e", first + at).following() for at in range(count)]


@pytest.mark.parametrize(
    ("space", "outputs", "action"),
    [
        (spaces.Discrete(3), [[0.1, 0.7, 0.2]], [1]),
        (spaces.Discrete(3, start=5), [[0.1, 0.7, 0.2]], [6]),
        (spaces.Discrete(3), np.array([2]), [2]),
        (spaces.Discrete(3), np.array([[2]]), [2]),
        (spaces.MultiDiscrete([2, 3]), [[0, 1, 5, 1, 2]], [[1, 0]]),
        (spaces.MultiDiscrete([2, 3]), np.array([[1, 2]]), [[1, 2]]),
        (spaces.MultiBinary(3), [[-1.0, 0.5, 2.0]], [[0, 1, 1]]),
        (spaces.Box(-1, 1, (2,), np.float32), [[0.5, 3.0]], [[0.5, 1.0]]),
        (spaces.Box(-1, 1, (1,), np.float32), np.array([0.25]), [[0.25]]),
        (spaces.Box(-1, 1, (2, 2), np.float64), [[0, 0.25, 0.5, 2]], [[[0, 0.25], [0.5, 1]]]),
    ],
)
def test_outputs_become_actions_by_the_space(space: Any, outputs: Any, action: Any) -> None:
    assert decide(space, np.asarray(outputs)).tolist() == action
    assert decide(space, torch.tensor(outputs)).tolist() == action


def test_the_first_of_several_outputs_is_the_action() -> None:
    scores, value = np.array([[0.0, 1.0]]), np.array([0.3])
    for outputs in ((scores, value), [scores, value], {"value": value, "logits": scores}):
        assert decide(spaces.Discrete(2), outputs).tolist() == [1]
    assert decide(spaces.Discrete(2), {"q": scores}).tolist() == [1]


def test_parts_of_an_action_are_made_of_the_outputs_of_their_names() -> None:
    space = spaces.Dict(
        {
            "go": spaces.Discrete(2),
            "to": spaces.Tuple([spaces.Box(0, 1, (1,), np.float32), spaces.Discrete(2)]),
        }
    )
    outputs = {"go": np.array([[0, 1]]), "to": (np.array([[3.0]]), np.array([1]))}
    action = decide(space, outputs)
    assert action["go"].tolist() == [1]
    assert [part.tolist() for part in action["to"]] == [[[1.0]], [1]]
    with pytest.raises(InvalidActionError, match="without 'to'"):
        decide(space, {"go": outputs["go"]})


def test_tanh_brings_numbers_into_the_bounds() -> None:
    space = spaces.Box(np.array([-2.0, 0.0]), np.array([2.0, 10.0]), dtype=np.float64)
    action = decide(space, np.array([[0.0, 100.0]]), "tanh")
    assert action.tolist() == [[0.0, 10.0]]
    exact = decide(space, np.array([[0.5, 0.5]]), "tanh")
    np.testing.assert_allclose(exact, [[2 * np.tanh(0.5), 5 + 5 * np.tanh(0.5)]])


def test_nan_is_not_hidden() -> None:
    assert np.isnan(decide(spaces.Box(-1, 1, (1,), np.float32), np.array([[np.nan]]))).all()
    for space in (spaces.Discrete(2), spaces.MultiBinary(2)):
        with pytest.raises(InvalidActionError, match="NaN"):
            decide(space, np.array([[np.nan, 1]]))


def test_a_function_and_raw_outputs_are_taken_as_they_are() -> None:
    outputs = object()
    assert decide(spaces.Discrete(2), outputs, "raw") is outputs
    assert decide(spaces.Discrete(2), 4, int.bit_count) == 1


@pytest.mark.parametrize(
    ("space", "option", "deterministic"),
    [
        (spaces.Box(-1, 1, (1,), np.float32), "argmax", True),
        (spaces.Discrete(2), "tanh", True),
        (spaces.Box(-np.inf, 1, (1,), np.float32), "tanh", True),
        (spaces.Box(0, 9, (1,), np.uint8), "tanh", True),
        (spaces.Text(3), "auto", True),
        (spaces.Box(-1, 1, (1,), np.float32), "auto", False),
        (spaces.MultiBinary(2), "auto", False),
    ],
)
def test_what_makes_no_actions_of_a_space_is_refused_at_once(
    space: Any, option: str, deterministic: bool
) -> None:
    with pytest.raises(ConfigurationError):
        decide(space, None, option, deterministic=deterministic)


@pytest.mark.parametrize("option", ["softmax", 3, None])
def test_an_unknown_way_is_refused(option: Any) -> None:
    with pytest.raises(ConfigurationError, match="'argmax'"):
        checked_option(option)


def test_scores_of_another_number_of_choices_are_refused() -> None:
    with pytest.raises(InvalidActionError, match=r"shape \[1, 3\].*for 2 choices"):
        decide(spaces.Discrete(2), np.zeros((1, 3)))


def test_samples_have_the_chances_of_a_softmax_and_follow_from_the_seed() -> None:
    scores = np.array([1.0, 0.0, 2.0])
    make = decider(
        "auto", from_gymnasium_space(spaces.Discrete(3)), deterministic=False, model="net"
    )
    count = 4000
    drawn = make(np.tile(scores, (count, 1)), contexts(count))

    shares = np.bincount(drawn, minlength=3) / count
    # Four standard errors of a share of one half.
    np.testing.assert_allclose(
        shares, torch.tensor(scores).softmax(0), atol=4 * 0.5 / np.sqrt(count)
    )
    assert make(np.tile(scores, (count, 1)), contexts(count)).tolist() == drawn.tolist()
