"""One actor-learner: plays a segment with a copy of the weights, and steps the shared ones."""

# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rleaas.training.a3c.returns import LossParts, actor_critic_loss, n_step_returns
from rleaas.training.a3c.settings import Settings
from rleaas.training.a3c.shared_weights import SharedWeights
from rleaas.training.actor.flat_weights import FlatWeights
from rleaas.training.actor.network import ActorNetwork

# Observations are whatever the environment's spaces say.
Value = Any


class Segment:
    """What up to `t_max` steps of all sessions of one actor left behind."""

    def __init__(self, sessions: int) -> None:
        self._sessions = sessions
        self.observations: list[Value] = []
        self.actions: list[Tensor] = []
        self.rewards: list[list[float]] = []
        self.ends: list[list[bool]] = []

    def __len__(self) -> int:
        return len(self.rewards)

    def add(
        self,
        observations: Sequence[Value],
        actions: Tensor,
        rewards: list[float],
        ends: list[bool],
    ) -> None:
        """Enter one step of every session."""
        self.observations.extend(observations)
        self.actions.append(actions)
        self.rewards.append(rewards)
        self.ends.append(ends)


class Learner:
    """A network of one process that acts and learns; the shared weights are what it learns for.

    Raises of `learn`: `FloatingPointError` where the loss is no number.
    """

    def __init__(
        self, network: ActorNetwork, shared: SharedWeights, settings: Settings, seed: int
    ) -> None:
        self._network = network
        self._shared = shared
        self._settings = settings
        self._local = FlatWeights(network)
        self._generator = torch.Generator().manual_seed(seed)
        shared.fetch(self._local)

    def act(self, observations: Sequence[Value]) -> tuple[Tensor, np.ndarray[Any, Any]]:
        """Drawn actions: as they are learned from, and as the learner's space writes them."""
        network = self._network
        with torch.no_grad():
            outputs = network(network.observations.stack(observations))
            drawn = network.draw(outputs, self._generator)
            return drawn, network.actions.to_learner(drawn).numpy()

    def values(self, observations: Sequence[Value]) -> Tensor:
        """What the critic expects from these observations on."""
        with torch.no_grad():
            return self._network.values(self._network.observations.stack(observations))

    def learn(
        self, segment: Segment, after: Sequence[Value], learning_rate: float
    ) -> Mapping[str, float]:
        """Step the shared weights by a segment's gradient and fetch them; says what was seen."""
        settings = self._settings
        rewards = torch.tensor(segment.rewards, dtype=torch.float32)
        ends = torch.tensor(segment.ends, dtype=torch.float32)
        returns = n_step_returns(rewards, ends, self.values(after), settings.gamma)
        parts = self._loss(segment, returns.flatten())
        if not torch.isfinite(parts.total):
            raise FloatingPointError
        torch.autograd.backward(parts.total)
        length = self._local.clip_gradient(settings.max_grad_norm)
        self._shared.apply(self._local.gradient, learning_rate)
        self._shared.fetch(self._local)
        return {
            "policy_loss": parts.policy,
            "value_loss": parts.value,
            "loss": float(parts.total.detach()),
            "entropy": parts.entropy,
            "gradient_norm": length,
        }

    def _loss(self, segment: Segment, returns: Tensor) -> LossParts:
        network = self._network
        outputs, values = network.both(network.observations.stack(segment.observations))
        actions = torch.cat(segment.actions)
        return actor_critic_loss(
            network.actions.log_probability(outputs, actions),
            network.actions.entropy(outputs),
            values,
            returns,
            ent_coef=self._settings.ent_coef,
            vf_coef=self._settings.vf_coef,
        )
