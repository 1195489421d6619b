# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false

import pytest
import torch
from rleaas.training.a3c.returns import actor_critic_loss, n_step_returns


def test_returns_are_the_rewards_to_the_segments_end_and_the_value_after_it() -> None:
    rewards = torch.tensor([[1.0], [2.0], [3.0]])
    returns = n_step_returns(rewards, torch.zeros(3, 1), torch.tensor([8.0]), 0.5)

    # 3 + 8 / 2 = 7, 2 + 7 / 2 = 5.5, 1 + 5.5 / 2 = 3.75
    assert returns[:, 0].tolist() == [3.75, 5.5, 7.0]


def test_nothing_is_carried_over_the_end_of_an_episode() -> None:
    rewards = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    ends = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    returns = n_step_returns(rewards, ends, torch.tensor([8.0, 8.0]), 0.5)

    # The first session ends in its second step, the second one in its last.
    assert returns[:, 0].tolist() == [2.0, 2.0, 7.0]
    assert returns[:, 1].tolist() == [2.75, 3.5, 3.0]


def test_the_loss_of_a_worked_example() -> None:
    parts = actor_critic_loss(
        torch.tensor([-1.0, -2.0]),
        torch.tensor([0.6, 0.2]),
        torch.tensor([1.0, 3.0]),
        torch.tensor([2.0, 1.0]),
        ent_coef=0.1,
        vf_coef=0.5,
    )

    # Advantages 1 and -2: the policy's loss is the mean of 1 and -4, the error that of 1 and 4.
    assert (parts.policy, parts.value) == pytest.approx((-1.5, 2.5))
    assert parts.entropy == pytest.approx(0.4)
    assert float(parts.total) == pytest.approx(-1.5 + 0.5 * 2.5 - 0.1 * 0.4)


def test_the_advantage_moves_the_policy_and_not_the_critic() -> None:
    values = torch.tensor([1.0], requires_grad=True)
    logs = torch.tensor([-1.0], requires_grad=True)
    parts = actor_critic_loss(
        logs, torch.zeros(1), values, torch.tensor([3.0]), ent_coef=0.0, vf_coef=0.5
    )
    torch.autograd.backward(parts.total)

    assert logs.grad is not None
    assert values.grad is not None
    # The critic's gradient is that of 0.5 * (3 - v)^2 alone.
    assert (float(logs.grad), float(values.grad)) == (-2.0, -2.0)
