import math
from typing import Any

import numpy as np
import pytest
from rlmesh.protocol.outcome import Given, checked_outcome, checked_reset


def parts(given: Given) -> tuple[object, ...]:
    return given.observation, given.reward, given.terminated, given.truncated, given.info


def test_five_values_are_an_outcome_in_pythons_own_types() -> None:
    given = checked_outcome((7, np.float32(0.5), np.True_, False, {"a": 1}))
    assert parts(given) == (7, 0.5, True, False, {"a": 1})
    assert type(given.reward) is float
    assert type(given.terminated) is bool


def test_no_info_is_an_empty_one() -> None:
    assert checked_outcome((7, 1, False, False, None)).info == {}
    assert checked_reset((7, None)) == (7, {})


@pytest.mark.parametrize(
    ("done", "info", "flags"),
    [
        (False, {"TimeLimit.truncated": True}, (False, False)),
        (True, {}, (True, False)),
        (True, None, (True, False)),
        (True, {"TimeLimit.truncated": True}, (False, True)),
    ],
)
def test_four_values_are_an_older_outcome(done: bool, info: Any, flags: tuple[bool, bool]) -> None:
    given = checked_outcome((7, 1, done, info))
    assert (given.terminated, given.truncated) == flags


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, np.float32("nan")])
@pytest.mark.parametrize("rest", [(False, False, {}), (False, {})])
def test_a_reward_that_is_not_finite_is_refused_by_name(
    reward: float, rest: tuple[object, ...]
) -> None:
    with pytest.raises(ValueError, match=f"reward is {float(reward)}"):
        checked_outcome((7, reward, *rest))


class Broken:
    def __len__(self) -> int:
        raise OSError("gone")

    def __repr__(self) -> str:
        raise OSError("gone")

    def __float__(self) -> float:
        raise RuntimeError("a tensor of two elements")


WRONG: list[tuple[object, str]] = [
    (7, "step returned 7, not "),
    ((7, 1.0), "not enough values"),
    ((7, "much", False, False, {}), "the reward is the text"),
    ((7, 10**400, False, False, {}), "too large"),
    ((7, Broken(), False, False, {}), "a tensor of two elements"),
    ((7, 1.0, 1, False, {}), "terminated must be a bool, not int"),
    ((7, 1.0, False, None, {}), "truncated must be a bool, not NoneType"),
    ((7, 1.0, 1, {}), "done must be a bool, not int"),
    ((7, 1.0, False, False, ["info"]), "info must be a dict, not list"),
    (Broken(), "step returned <Broken>, not "),
]


@pytest.mark.parametrize(("answer", "words"), WRONG)
def test_what_is_no_outcome_is_a_type_error_that_says_why(answer: object, words: str) -> None:
    with pytest.raises(TypeError, match="step returned") as caught:
        checked_outcome(answer)
    assert words in str(caught.value)


@pytest.mark.parametrize("answer", [7, (7,), (7, 8), (7, 8, 9), [7, {}]])
def test_a_reset_that_gives_no_info_gives_the_observation_alone(answer: object) -> None:
    assert checked_reset(answer) == (answer, {})


def test_a_reset_gives_an_observation_and_an_info() -> None:
    assert checked_reset((7, {"a": 1})) == (7, {"a": 1})
