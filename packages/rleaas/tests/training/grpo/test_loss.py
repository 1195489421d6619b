# torch's distributions leave their arguments untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import math
from typing import Any

import pytest
import torch
from rleaas.training.grpo.loss import clipped_loss, k3, step_weights
from torch.distributions import Categorical, kl_divergence


def loss(**changed: Any) -> Any:
    """Two episodes, of two steps and of one; each ratio of probabilities by hand."""
    ratios = torch.tensor([1.5, 0.9, 0.5])
    given: dict[str, Any] = {
        "log_probabilities": ratios.log(),
        "before": torch.zeros(3),
        "advantages": torch.tensor([1.0, 1.0, -1.0]),
        "weights": step_weights([2, 1], "episode", 10),
        "entropy": torch.tensor([0.6, 0.4, 0.2]),
        "reference": None,
        "clip_low": 0.2,
        "clip_high": 0.2,
        "kl_coef": 0.0,
        "ent_coef": 0.0,
        **changed,
    }
    return clipped_loss(**given)


def test_the_loss_of_a_worked_example() -> None:
    parts = loss()

    # min(1.5, 1.2) and min(0.9, 0.9) share a half; min(-0.5, -0.8) is the other half.
    assert parts.policy == pytest.approx(-((1.2 + 0.9) / 4 - 0.8 / 2))
    assert float(parts.total) == pytest.approx(parts.policy)
    assert parts.clip_fraction == pytest.approx(2 / 3)


def test_gains_may_be_clipped_higher_than_losses() -> None:
    assert loss(clip_high=0.4).policy == pytest.approx(-((1.4 + 0.9) / 4 - 0.8 / 2))


def test_entropy_is_rewarded() -> None:
    # (0.6 + 0.4) / 4 + 0.2 / 2 = 0.35, of which a tenth
    assert float(loss(ent_coef=0.1).total) == pytest.approx(float(loss().total) - 0.035)


def test_distance_to_the_reference_is_punished() -> None:
    reference = torch.log(torch.tensor([1.5, 1.8, 0.5]))

    # Only the second step is away: r = 1.8 / 0.9 = 2, and r - 1 - log r = 1 - log 2.
    expected = (1 - math.log(2)) / 4
    parts = loss(reference=reference, kl_coef=2.0)
    assert parts.kl == pytest.approx(expected)
    assert float(parts.total) == pytest.approx(float(loss().total) + 2 * expected)


def test_k3_is_the_divergence_on_the_average_and_never_below_zero() -> None:
    policy: Any = Categorical(logits=torch.tensor([0.3, -0.2, 0.9]))
    reference: Any = Categorical(logits=torch.tensor([0.0, 0.4, 0.1]))
    every = torch.arange(3)

    estimates = k3(policy.log_prob(every), reference.log_prob(every))

    # The mean over the policy's own actions, weighted as it draws them.
    mean = float((policy.probs * estimates).sum())
    assert mean == pytest.approx(float(kl_divergence(policy, reference)), abs=1e-6)
    assert (estimates >= 0).all()


def test_steps_share_their_episodes_part_or_count_the_same() -> None:
    assert step_weights([2, 1], "episode", 10).tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert step_weights([2, 1], "constant", 10).tolist() == pytest.approx([0.05, 0.05, 0.05])


def test_a_better_than_usual_action_becomes_more_likely() -> None:
    logits = torch.zeros(1, 2, requires_grad=True)
    chosen = logits.log_softmax(1)[:, 0]
    parts = loss(
        log_probabilities=chosen,
        before=chosen.detach(),
        advantages=torch.tensor([2.0]),
        weights=torch.tensor([1.0]),
        entropy=torch.zeros(1),
    )
    parts.total.backward()

    # The gradient of the policy gradient: -A * (1 - p) for what was chosen, +A * p for the other.
    assert logits.grad is not None
    assert logits.grad[0].tolist() == pytest.approx([-1.0, 1.0])
