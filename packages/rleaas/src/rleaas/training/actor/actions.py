"""How a network of ours acts: the distribution over each kind of action space.

The outputs of the network's last layer are the parameters of the distribution. A batch of actions
is one tensor: whole numbers for Discrete (rows) and MultiDiscrete (rows by parts), zeros and ones
for MultiBinary, and for Box numbers where -1 and 1 are the bounds.
"""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, cast

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from rlcore import ConfigurationError
from torch import Tensor, nn

_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


class Actions(Protocol):
    """The distribution over the actions of one space."""

    @property
    def outputs(self) -> int:
        """How many numbers of the network's last layer one distribution takes."""
        ...

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """An action drawn for every row."""
        ...

    def best(self, outputs: Tensor) -> Tensor:
        """The most likely action of every row."""
        ...

    def log_probability(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """The logarithm of every action's probability (density, for Box)."""
        ...

    def entropy(self, outputs: Tensor) -> Tensor:
        """The entropy of every row's distribution."""
        ...

    def to_learner(self, actions: Tensor) -> Tensor:
        """The actions as the learner's space writes them: Box within its bounds."""
        ...


class Categories:
    """One of n classes."""

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See `Actions`."""
        return torch.multinomial(outputs.softmax(1), 1, generator=generator)[:, 0]

    def best(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return outputs.argmax(1)

    def log_probability(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See `Actions`."""
        return outputs.log_softmax(1).gather(1, actions[:, None])[:, 0]

    def entropy(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        logs = outputs.log_softmax(1)
        return -(logs.exp() * logs).sum(1)

    def to_learner(self, actions: Tensor) -> Tensor:
        """See `Actions`."""
        return actions


class ManyCategories:
    """One class for each of several parts."""

    def __init__(self, sizes: Sequence[int], shape: Sequence[int]) -> None:
        self._parts = [Categories(size) for size in sizes]
        self._sizes = list(sizes)
        self._shape = tuple(shape)
        self.outputs = sum(sizes)

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See `Actions`."""
        drawn = [part.sample(own, generator) for part, own in self._split(outputs)]
        return torch.stack(drawn, dim=1)

    def best(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return torch.stack([part.best(own) for part, own in self._split(outputs)], dim=1)

    def log_probability(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See `Actions`."""
        logs = [
            part.log_probability(own, actions[:, index])
            for index, (part, own) in enumerate(self._split(outputs))
        ]
        return torch.stack(logs, dim=1).sum(1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return torch.stack([part.entropy(own) for part, own in self._split(outputs)], 1).sum(1)

    def to_learner(self, actions: Tensor) -> Tensor:
        """See `Actions`."""
        return actions.reshape(-1, *self._shape)

    def _split(self, outputs: Tensor) -> list[tuple[Categories, Tensor]]:
        return list(zip(self._parts, torch.split(outputs, self._sizes, dim=1), strict=True))


class Switches:
    """Zero or one for each of several parts."""

    def __init__(self, count: int) -> None:
        self.outputs = count

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See `Actions`."""
        return torch.bernoulli(outputs.sigmoid(), generator=generator)

    def best(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return (outputs > 0).to(torch.float32)

    def log_probability(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See `Actions`."""
        softplus = nn.functional.softplus
        return -(actions * softplus(-outputs) + (1 - actions) * softplus(outputs)).sum(1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return (nn.functional.softplus(outputs) - outputs * outputs.sigmoid()).sum(1)

    def to_learner(self, actions: Tensor) -> Tensor:
        """See `Actions`."""
        return actions


class Numbers:
    """Independent normal distributions; one half of the outputs are means, the other log widths.

    -1 and 1 are the bounds of the space. What is drawn beyond a bound is given to the environment
    as the bound, and is learned from as it was drawn.
    """

    def __init__(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        self._low = torch.from_numpy(low.astype(np.float32))
        self._high = torch.from_numpy(high.astype(np.float32))
        self._count = int(low.size)
        self.outputs = 2 * self._count

    def sample(self, outputs: Tensor, generator: torch.Generator) -> Tensor:
        """See `Actions`."""
        mean, log_width = self._split(outputs)
        return mean + log_width.exp() * torch.randn(mean.shape, generator=generator)

    def best(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return self._split(outputs)[0]

    def log_probability(self, outputs: Tensor, actions: Tensor) -> Tensor:
        """See `Actions`."""
        mean, log_width = self._split(outputs)
        distance = (actions - mean) * (-log_width).exp()
        return -(0.5 * distance.square() + log_width + _HALF_LOG_TAU).sum(1)

    def entropy(self, outputs: Tensor) -> Tensor:
        """See `Actions`."""
        return (self._split(outputs)[1] + 0.5 + _HALF_LOG_TAU).sum(1)

    def to_learner(self, actions: Tensor) -> Tensor:
        """See `Actions`."""
        share = (actions.clamp(-1.0, 1.0) + 1.0) / 2.0
        share = share.reshape(-1, *self._low.shape)
        return self._low + share * (self._high - self._low)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        return outputs[:, : self._count], outputs[:, self._count :]


def actions_of(space: gymnasium.Space[Any]) -> Actions:
    """The distribution over the actions of a learner's space.

    Raises:
        ConfigurationError: no distribution of ours covers the space.
    """
    match space:
        case spaces.Discrete():
            return Categories(int(space.n))
        case spaces.MultiDiscrete():
            return ManyCategories([int(size) for size in space.nvec.flat], space.nvec.shape)
        case spaces.MultiBinary():
            return Switches(int(np.prod(space.shape)))
        case spaces.Box():
            return Numbers(cast("Any", space.low), cast("Any", space.high))
        case _:
            raise ConfigurationError(
                f"no policy of ours takes actions of {space}",
                code="space_not_learnable",
                hint="It takes Discrete, MultiDiscrete, flat MultiBinary and bounded float Box",
            )
