# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from typing import Any

import pytest
import torch
from rleaas.training.actor.flat_weights import FlatWeights, Statistics
from torch import nn

GRADIENTS = ([0.1, -0.4, 0.0], [0.3, 0.2, -1.0], [-0.2, 0.1, 0.5])
# What torch.optim.Adam(lr=0.1, eps=1e-5) and RMSprop(lr=0.1, alpha=0.99, eps=1e-12) of torch 2.13
# make of the start after these gradients; to run them here costs the import of torch's compiler.
START = [1.0, -2.0, 0.5]
ADAM = [0.782447, -1.867231, 0.597276]
RMSPROP = [-0.412525, -1.669117, 1.050987]


@pytest.mark.parametrize(
    ("optimizer", "epsilon", "expected"),
    # Ours has epsilon within the root, where the square of torch's is.
    [("adam", 1e-5, ADAM), ("rmsprop", 1e-24, RMSPROP)],
)
def test_steps_are_those_of_torch(optimizer: str, epsilon: float, expected: list[float]) -> None:
    vector = torch.tensor(START)
    statistics = Statistics.of(vector, means=optimizer == "adam")

    for gradient in GRADIENTS:
        step: Any = getattr(statistics, optimizer)
        step(vector, torch.tensor(gradient), learning_rate=0.1, epsilon=epsilon)

    assert vector.tolist() == pytest.approx(expected, abs=1e-5)
    assert int(statistics.updates) == 3


def test_statistics_go_on_where_their_copy_was_taken() -> None:
    one, other = Statistics.of(torch.zeros(3)), Statistics.of(torch.zeros(3))
    vector = torch.tensor(START)
    for gradient in GRADIENTS[:2]:
        one.adam(vector, torch.tensor(gradient), learning_rate=0.1, epsilon=1e-5)
    other.restore(one.state())
    other.adam(vector, torch.tensor(GRADIENTS[2]), learning_rate=0.1, epsilon=1e-5)

    assert vector.tolist() == pytest.approx(ADAM, abs=1e-5)
    with pytest.raises(ValueError, match="means"):
        Statistics.of(torch.zeros(3), means=False).restore(one.state())


def test_a_network_learns_through_its_vector() -> None:
    last = nn.Linear(3, 1)
    network = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), last)
    before = [parameter.detach().clone() for parameter in network.parameters()]
    flat = FlatWeights(network)
    assert all(
        bool((one == other).all()) for one, other in zip(before, network.parameters(), strict=True)
    )

    network(torch.ones(1, 2)).sum().backward()
    flat.vector.sub_(flat.gradient)

    # The bias of the last layer has the gradient 1.
    assert float(last.bias.detach()) == pytest.approx(float(before[-1]) - 1)


def test_a_long_gradient_is_shortened() -> None:
    flat = FlatWeights(nn.Linear(1, 1))
    flat.gradient.copy_(torch.tensor([3.0, 4.0]))

    assert flat.clip_gradient(10.0) == 5.0
    assert flat.gradient.tolist() == [3.0, 4.0]
    assert flat.clip_gradient(1.0) == 5.0
    assert flat.gradient.tolist() == pytest.approx([0.6, 0.8])
