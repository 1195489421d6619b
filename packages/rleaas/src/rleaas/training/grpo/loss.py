"""The loss of GRPO (Shao et al. 2024, arXiv 2402.03300, equations 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

EPISODE = "episode"
CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class LossParts:
    """The loss of a batch of steps and the numbers that explain it."""

    total: Tensor
    policy: float
    kl: float
    entropy: float
    clip_fraction: float
    approximate_kl: float


def step_weights(lengths: Sequence[int], how: str, longest: int) -> Tensor:
    """How much each step counts in the mean over episodes, one episode's steps after another's.

    `episode`: every episode counts the same, its steps share one part (DeepSeekMath). `constant`:
    every step counts one part in `longest`, the most steps an episode may have (Dr. GRPO, arXiv
    2503.20783: the mean over an episode's own steps favours short successes and long failures).
    """
    parts = [1.0 / (length if how == EPISODE else longest) for length in lengths]
    repeated = torch.repeat_interleave(
        torch.tensor(parts, dtype=torch.float32), torch.tensor(list(lengths))
    )
    return repeated / len(lengths)


def k3(log_probabilities: Tensor, reference: Tensor) -> Tensor:
    """An estimate of KL(policy || reference) for each drawn action: r - 1 - log r.

    r is the reference's probability over the policy's. Unbiased and never below zero (Schulman
    2020, "Approximating KL divergence", estimator k3; the paper's equation 4).
    """
    log_ratio = reference - log_probabilities
    return torch.expm1(log_ratio) - log_ratio


def clipped_loss(
    log_probabilities: Tensor,
    before: Tensor,
    advantages: Tensor,
    weights: Tensor,
    entropy: Tensor,
    *,
    reference: Tensor | None,
    clip_low: float,
    clip_high: float,
    kl_coef: float,
    ent_coef: float,
) -> LossParts:
    """The weighted loss of a batch of steps, ready to be differentiated.

    `before` are the log-probabilities under the policy that acted, `reference` those under the
    policy to stay near to, or None where there is none.
    """
    log_ratio = log_probabilities - before
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_low, 1.0 + clip_high)
    gain = (weights * torch.minimum(ratio * advantages, clipped * advantages)).sum()
    spread = (weights * entropy).sum()
    total = -gain - ent_coef * spread
    apart = torch.zeros(())
    if reference is not None:
        apart = (weights * k3(log_probabilities, reference)).sum()
        total = total + kl_coef * apart
    with torch.no_grad():
        moved = float(k3(before, log_probabilities).mean())
        outside = float(((ratio < 1.0 - clip_low) | (ratio > 1.0 + clip_high)).float().mean())
    return LossParts(
        total=total,
        policy=-float(gain.detach()),
        kl=float(apart.detach()),
        entropy=float(entropy.detach().mean()),
        clip_fraction=outside,
        approximate_kl=moved,
    )
