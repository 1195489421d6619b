"""The n-step returns and the loss of an actor-learner (Mnih et al. 2016, arXiv 1602.01783)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class LossParts:
    """The loss of one segment and the numbers that explain it."""

    total: Tensor
    policy: float
    value: float
    entropy: float


def n_step_returns(rewards: Tensor, ends: Tensor, after: Tensor, gamma: float) -> Tensor:
    """For every step the discounted rewards up to the segment's end, and the value `after` it.

    Args:
        rewards: steps by sessions; where an episode was cut short by its length, the value of what
            would have followed is already in its last reward.
        ends: the same shape: 1 where an episode ended in that step, else 0.
        after: the value of the state after the last step, for each session.
        gamma: the discount of one step.
    """
    returns = torch.empty_like(rewards)
    following = after
    for step in range(rewards.shape[0] - 1, -1, -1):
        following = rewards[step] + gamma * following * (1.0 - ends[step])
        returns[step] = following
    return returns


def actor_critic_loss(
    log_probabilities: Tensor,
    entropy: Tensor,
    values: Tensor,
    returns: Tensor,
    *,
    ent_coef: float,
    vf_coef: float,
) -> LossParts:
    """The mean loss of a segment's steps: policy gradient, value error, entropy bonus.

    The advantage is the return less the value, which it does not move.
    """
    advantages = returns - values.detach()
    policy = -(log_probabilities * advantages).mean()
    value = (returns - values).square().mean()
    spread = entropy.mean()
    return LossParts(
        total=policy + vf_coef * value - ent_coef * spread,
        policy=float(policy.detach()),
        value=float(value.detach()),
        entropy=float(spread.detach()),
    )
