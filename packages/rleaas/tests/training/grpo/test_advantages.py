import numpy as np
import pytest
from rleaas.training.grpo.advantages import (
    outcome_advantages,
    reward_to_go_advantages,
    rewards_to_go,
)

# Returns 3, 1 and 2: their mean is 2, their deviation (of a sample) is 1.
GROUP = [np.array([1.0, 1.0, 1.0]), np.array([1.0]), np.array([0.0, 2.0])]


def test_an_outcome_is_compared_with_the_mean_of_its_group() -> None:
    found = outcome_advantages(GROUP, std_normalization=False)

    assert [list(one) for one in found] == [[1.0, 1.0, 1.0], [-1.0], [0.0, 0.0]]


def test_an_outcome_is_divided_by_the_deviation_of_its_group() -> None:
    # Five times as large: mean 10, deviation 5.
    found = outcome_advantages([5 * one for one in GROUP], std_normalization=True)

    assert [one[0] for one in found] == pytest.approx([1.0, -1.0, 0.0], abs=1e-4)


def test_a_group_without_difference_teaches_nothing() -> None:
    same = [np.array([0.1, 0.2]), np.array([0.3])]

    assert not any(one.any() for one in outcome_advantages(same, std_normalization=True))
    # What follows the first step differs all the same: 0.3 and 0.3, but 0.2 and 0 after it.
    assert any(
        one.any() for one in reward_to_go_advantages(same, gamma=1.0, std_normalization=True)
    )


def test_an_episode_alone_in_its_group_teaches_nothing() -> None:
    alone = [np.array([1.0, 5.0])]

    assert not outcome_advantages(alone, std_normalization=True)[0].any()
    assert not reward_to_go_advantages(alone, gamma=0.9, std_normalization=True)[0].any()


def test_rewards_to_go_are_discounted() -> None:
    # 1 + 0.5 * (2 + 0.5 * 4) = 3
    assert list(rewards_to_go(np.array([1.0, 2.0, 4.0]), 0.5)) == [3.0, 4.0, 4.0]


def test_what_follows_a_step_is_compared_with_what_followed_it_in_the_group() -> None:
    found = reward_to_go_advantages(GROUP, gamma=1.0, std_normalization=False)

    # To go: 3 2 1 | 1 0 0 | 2 2 0, with means 2, 4/3 and 1/3.
    assert list(found[0]) == pytest.approx([1.0, 2 / 3, 2 / 3])
    assert list(found[1]) == pytest.approx([-1.0])
    assert list(found[2]) == pytest.approx([0.0, 2 / 3])


def test_what_follows_is_divided_by_its_root_mean_square() -> None:
    found = reward_to_go_advantages(GROUP, gamma=1.0, std_normalization=True)

    together = np.concatenate(found)
    assert np.sqrt(np.mean(together**2)) == pytest.approx(1.0, abs=1e-3)
