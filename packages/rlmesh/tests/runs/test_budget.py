from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from rlcore import ConfigurationError
from rlmesh.runs.budget import SEED_CEILING, Plan, limits, plans


def planned(**budget: Any) -> tuple[Plan, ...]:  # Any: wrong ones as well
    defaults: dict[str, Any] = {"seeds": None, "episodes": None, "seed": 0}
    return plans(**{**defaults, "trial_index_base": 0, **budget})


def test_without_a_budget_one_episode_is_played() -> None:
    assert planned() == (Plan(index=0, seed=0, trial=0),)


def test_episode_seeds_count_from_the_run_seed() -> None:
    assert [plan.seed for plan in planned(episodes=3, seed=40)] == [40, 41, 42]


def test_given_seeds_are_played_in_their_order() -> None:
    assert [plan.seed for plan in planned(seeds=np.array([7, 3]))] == [7, 3]
    assert [plan.seed for plan in planned(seeds=islice(count(5), 2))] == [5, 6]


def test_of_endless_seeds_as_many_are_read_as_there_are_episodes() -> None:
    endless = count(5)

    assert [plan.seed for plan in planned(seeds=endless, episodes=2)] == [5, 6]
    assert next(endless) == 7


def test_endless_seeds_without_episodes_are_refused_at_the_ceiling() -> None:
    endless = count()

    with pytest.raises(ConfigurationError, match="seeds holds more than 1000000 seeds"):
        planned(seeds=endless)
    assert next(endless) == SEED_CEILING + 1


def test_trials_count_from_their_base() -> None:
    assert [plan.trial for plan in planned(episodes=2, trial_index_base=100)] == [100, 101]


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ({"episodes": -1}, "episodes is -1"),
        ({"episodes": 1.5}, "episodes is 1.5"),
        ({"episodes": 3, "seeds": [1, 2]}, "episodes is 3, but there are 2 seeds"),
        ({"episodes": 3, "seeds": iter([1, 2])}, "episodes is 3, but there are 2 seeds"),
        ({"episodes": 2, "seed": (1 << 63) - 1}, "seed is 9223372036854775807, and seed"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"seeds": np.zeros((1, 2), int)}, "a seed is array"),
        ({"seeds": "12"}, "seeds is '12'"),
        ({"seeds": 5}, "seeds is 5"),
        ({"seeds": [True]}, "a seed is True"),
        ({"seeds": [1 << 63]}, "does not fit into 64 bits"),
    ],
)
def test_an_impossible_budget_is_refused(budget: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        planned(**budget)


def test_no_limit_is_above_the_ceiling() -> None:
    assert limits(max_episode_steps=10**9, max_episode_seconds=None).steps == 100_000


@pytest.mark.parametrize(("steps", "seconds"), [(0, None), (-3, None), (None, 0), (None, -1.0)])
def test_a_limit_that_allows_nothing_is_refused(steps: int | None, seconds: float | None) -> None:
    with pytest.raises(ConfigurationError, match="max_episode_"):
        limits(max_episode_steps=steps, max_episode_seconds=seconds)
