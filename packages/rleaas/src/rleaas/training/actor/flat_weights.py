"""A network's weights and gradients as one vector each, and how optimisers step such a vector.

A step is then a handful of operations however many layers there are. torch's own optimisers import
torch's compiler when the first of them steps, which takes longer than some trainings.
"""

# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn


class FlatWeights:
    """Makes the parameters of a network parts of one vector, and their gradients of another."""

    def __init__(self, network: nn.Module) -> None:
        parameters = list(network.parameters())
        self.vector = nn.utils.parameters_to_vector(parameters).detach().clone()
        self.gradient = torch.zeros_like(self.vector)
        start = 0
        for parameter in parameters:
            end = start + parameter.numel()
            parameter.data = self.vector[start:end].view_as(parameter)
            parameter.grad = self.gradient[start:end].view_as(parameter)
            start = end

    def clip_gradient(self, longest: float) -> float:
        """Shorten the gradient to this length; says how long it was."""
        length = float(self.gradient.norm())
        if length > longest:
            self.gradient.mul_(longest / length)
        return length


@dataclass(slots=True)
class Statistics:
    """What an optimiser remembers of earlier gradients: their moving averages, and how many."""

    means: Tensor
    squares: Tensor
    updates: Tensor

    @classmethod
    def of(cls, vector: Tensor, *, means: bool = True) -> Statistics:
        """Those of an optimiser that has not stepped yet; `means` are Adam's alone."""
        return cls(
            means=torch.zeros_like(vector if means else vector[:0]),
            squares=torch.zeros_like(vector),
            updates=torch.zeros(1, dtype=torch.int64),
        )

    def share(self) -> Statistics:
        """Move them into memory that other processes have too."""
        for part in (self.means, self.squares, self.updates):
            cast("Any", part).share_memory_()
        return self

    def state(self) -> dict[str, Tensor]:
        """Copies of all of them."""
        return {
            "means": self.means.clone(),
            "squares": self.squares.clone(),
            "updates": self.updates.clone(),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on with such copies.

        Raises:
            KeyError, ValueError: they are of another network or optimiser.
        """
        parts = {"means": self.means, "squares": self.squares, "updates": self.updates}
        for name, own in parts.items():
            if state[name].shape != own.shape:
                raise ValueError(f"{name} are {tuple(state[name].shape)}, not {tuple(own.shape)}")
            own.copy_(state[name])

    def adam(
        self, vector: Tensor, gradient: Tensor, *, learning_rate: float, epsilon: float
    ) -> None:
        """Step a vector as Adam does (Kingma and Ba 2015, arXiv 1412.6980)."""
        self.updates += 1
        count = int(self.updates)
        self.means.mul_(0.9).add_(gradient, alpha=1.0 - 0.9)
        self.squares.mul_(0.999).addcmul_(gradient, gradient, value=1.0 - 0.999)
        spread = (self.squares / (1.0 - 0.999**count)).sqrt_().add_(epsilon)
        vector.addcdiv_(self.means, spread, value=-learning_rate / (1.0 - 0.9**count))

    def rmsprop(
        self, vector: Tensor, gradient: Tensor, *, learning_rate: float, epsilon: float
    ) -> None:
        """Step a vector as the RMSprop of Mnih et al. 2016 does: `epsilon` is within the root."""
        self.updates += 1
        self.squares.mul_(0.99).addcmul_(gradient, gradient, value=1.0 - 0.99)
        vector.addcdiv_(gradient, (self.squares + epsilon).sqrt_(), value=-learning_rate)
