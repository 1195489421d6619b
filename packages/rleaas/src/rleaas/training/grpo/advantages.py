"""Group-relative advantages: how much better an episode went than others from the same start.

From DeepSeekMath (Shao et al. 2024, arXiv 2402.03300), section 4.1: the baseline of an episode is
the mean of its group, so that no value function is learned. With `std_normalization` the difference
is divided by the group's standard deviation, as there; without it is Dr. GRPO (Liu et al. 2025,
"Understanding R1-Zero-Like Training", arXiv 2503.20783), section 3, which takes the division for a
bias: it makes much of groups that hardly differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SAME = 1e-8
# Returns that differ by no more than rounding teach nothing.
_TO_DIVIDE = 1e-4

Rewards = NDArray[np.float64]
"""The rewards of one episode, step by step."""


def outcome_advantages(
    group: Sequence[Rewards], *, std_normalization: bool
) -> list[NDArray[np.float64]]:
    """One number for all steps of an episode: its return against its group's (outcome supervision).

    A group in which all returns are the same gets zeros.
    """
    returns = np.array([rewards.sum() for rewards in group])
    differences = returns - returns.mean()
    spread = returns.std(ddof=1) if len(group) > 1 else 0.0
    if spread < _SAME:
        differences = np.zeros_like(differences)
    elif std_normalization:
        differences = differences / (spread + _TO_DIVIDE)
    return [np.full(len(rewards), own) for rewards, own in zip(group, differences, strict=True)]


def reward_to_go_advantages(
    group: Sequence[Rewards], *, gamma: float, std_normalization: bool
) -> list[NDArray[np.float64]]:
    """A number for every step: the discounted reward from there on, against the group's then.

    The paper's process supervision (section 4.1.3) gives a step the rewards that follow it. The
    baseline of step t here is the mean over the group of what followed step t, where an episode
    that was over by then counts as zero. A group in which nothing differs gets zeros.
    """
    longest = max(len(rewards) for rewards in group)
    follows = np.zeros((len(group), longest))
    for row, rewards in zip(follows, group, strict=True):
        row[: len(rewards)] = rewards_to_go(rewards, gamma)
    differences = follows - follows.mean(axis=0)
    lived = [row[: len(rewards)] for row, rewards in zip(differences, group, strict=True)]
    spread = float(np.sqrt(np.mean(np.square(np.concatenate(lived))))) if lived else 0.0
    if spread < _SAME:
        return [np.zeros(len(rewards)) for rewards in group]
    if std_normalization:
        return [own / (spread + _TO_DIVIDE) for own in lived]
    return [own.copy() for own in lived]


def rewards_to_go(rewards: Rewards, gamma: float) -> NDArray[np.float64]:
    """The discounted sum of the rewards from each step on."""
    sums = np.empty(len(rewards))
    following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        following = rewards[step] + gamma * following
        sums[step] = following
    return sums
