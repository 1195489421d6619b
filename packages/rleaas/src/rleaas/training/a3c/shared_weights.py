"""The weights that all actors learn, and the statistics of their optimiser, in shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from rleaas.training.actor.flat_weights import FlatWeights, Statistics

RMSPROP = "rmsprop"
ADAM = "adam"


class SharedWeights:
    """A network's weights and an optimiser that any process may step, at the same time as others.

    The optimisers are those of Mnih et al. 2016 (arXiv 1602.01783), section 4: RMSprop whose moving
    average of squared gradients is shared by all actors, updated without locks; and Adam, shared
    likewise. Without `lock` two processes that write at once may each undo a part of what the other
    wrote (Hogwild); with it they take turns.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        optimizer: str,
        epsilon: float,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.vector = nn.utils.parameters_to_vector(network.parameters()).detach().clone()
        cast("Any", self.vector).share_memory_()  # torch leaves it untyped
        self.statistics = Statistics.of(self.vector, means=optimizer == ADAM).share()
        self._optimizer = optimizer
        self._epsilon = epsilon
        self._lock = lock

    @property
    def updates(self) -> int:
        """How many gradients were applied; without a lock a few may be missing."""
        return int(self.statistics.updates)

    def apply(self, gradient: Tensor, learning_rate: float) -> None:
        """Step the shared weights by this gradient."""
        step = self.statistics.adam if self._optimizer == ADAM else self.statistics.rmsprop
        with self._lock or nullcontext():
            step(self.vector, gradient, learning_rate=learning_rate, epsilon=self._epsilon)

    def fetch(self, local: FlatWeights) -> None:
        """Give a process the weights as they are now, and a gradient of zeros."""
        local.vector.copy_(self.vector)
        local.gradient.zero_()

    def is_finite(self) -> bool:
        """Whether every weight is a number."""
        return bool(torch.isfinite(self.vector).all())

    def state(self) -> dict[str, Tensor]:
        """A copy of the optimiser's statistics; the weights are the network's."""
        return self.statistics.state()

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on with these statistics.

        Raises:
            KeyError, ValueError: they are of another network or optimiser.
        """
        self.statistics.restore(state)
