# torch's distributions and gymnasium leave their arguments untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from rlcore import ConfigurationError
from rleaas.training.actor.actions import actions_of
from torch.distributions import Bernoulli, Categorical, Independent, Normal

OUTPUTS = torch.tensor([[0.3, -1.2, 0.7, 0.1], [2.0, 0.0, -0.5, 1.5]])


def their(space: gymnasium.Space[Any]) -> list[Any]:
    """The distribution over the same space as torch has it, in independent parts."""
    match space:
        case spaces.Discrete():
            return [Categorical(logits=OUTPUTS)]
        case spaces.MultiDiscrete():
            return [Categorical(logits=OUTPUTS[:, :2]), Categorical(logits=OUTPUTS[:, 2:])]
        case spaces.MultiBinary():
            return [Independent(Bernoulli(logits=OUTPUTS), 1)]
        case _:
            return [Independent(Normal(OUTPUTS[:, :2], OUTPUTS[:, 2:].exp()), 1)]


SPACES: list[gymnasium.Space[Any]] = [
    spaces.Discrete(4),
    spaces.MultiDiscrete([2, 2]),
    spaces.MultiBinary(4),
    spaces.Box(-2.0, 6.0, (2,)),
]
KINDS = ["Discrete", "MultiDiscrete", "MultiBinary", "Box"]


@pytest.mark.parametrize("space", SPACES, ids=KINDS)
def test_probabilities_and_entropies_are_those_of_torch(space: gymnasium.Space[Any]) -> None:
    actions = actions_of(space)
    drawn = actions.sample(OUTPUTS, torch.Generator().manual_seed(1))
    parts = their(space)
    columns = [drawn[:, i] for i in range(len(parts))] if len(parts) > 1 else [drawn]

    logs = [one.log_prob(column) for one, column in zip(parts, columns, strict=True)]
    expected = torch.stack(logs).sum(0)
    assert torch.allclose(actions.log_probability(OUTPUTS, drawn), expected, atol=1e-5)
    entropy = torch.stack([one.entropy() for one in parts]).sum(0)
    assert torch.allclose(actions.entropy(OUTPUTS), entropy, atol=1e-5)


@pytest.mark.parametrize("space", SPACES, ids=KINDS)
def test_what_is_drawn_is_of_the_space(space: gymnasium.Space[Any]) -> None:
    actions = actions_of(space)
    drawn = actions.sample(OUTPUTS.repeat(50, 1), torch.Generator().manual_seed(1))

    for action in actions.to_learner(drawn).numpy():
        assert space.contains(np.asarray(action, dtype=space.dtype))


@pytest.mark.parametrize("space", SPACES, ids=KINDS)
def test_draws_come_as_often_as_their_probability_says(space: gymnasium.Space[Any]) -> None:
    actions = actions_of(space)
    rows = OUTPUTS[:1].repeat(20_000, 1)
    drawn = actions.sample(rows, torch.Generator().manual_seed(1)).double()

    if isinstance(space, spaces.Discrete):
        shares = torch.bincount(drawn.long(), minlength=4) / len(drawn)
        assert torch.allclose(shares.float(), OUTPUTS[0].softmax(0), atol=0.02)
    else:
        # The mean of every column is that of torch's distribution.
        parts = their(space)
        means = (
            torch.stack([one.probs[0, 1] for one in parts]) if len(parts) > 1 else parts[0].mean[0]
        )
        assert torch.allclose(drawn.mean(0).float(), means, atol=0.05)


def test_the_best_action_is_the_most_likely_one() -> None:
    best = [actions_of(space).best(OUTPUTS).tolist() for space in SPACES]

    assert best[0] == [2, 0]
    assert best[1] == [[0, 0], [0, 1]]
    assert best[2] == [[1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
    assert best[3] == [pytest.approx([0.3, -1.2]), pytest.approx([2.0, 0.0])]


def test_numbers_between_minus_one_and_one_span_the_bounds() -> None:
    actions = actions_of(spaces.Box(-2.0, 6.0, (2,)))

    given = actions.to_learner(torch.tensor([[-1.0, 1.0], [0.0, 7.0]]))
    assert given.tolist() == [[-2.0, 6.0], [2.0, 6.0]]


def test_other_spaces_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Text"):
        actions_of(spaces.Text(3))
