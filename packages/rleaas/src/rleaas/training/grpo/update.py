"""One update of the policy from whole groups."""

# torch leaves some of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from rleaas.training.actor.flat_weights import FlatWeights, Statistics
from rleaas.training.actor.network import ActorNetwork
from rleaas.training.grpo.advantages import outcome_advantages, reward_to_go_advantages
from rleaas.training.grpo.groups import Episode
from rleaas.training.grpo.loss import LossParts, clipped_loss, step_weights
from rleaas.training.grpo.settings import INITIAL, OUTCOME, Settings

_ADAM_EPSILON = 1e-5


class Diverged(Exception):
    """The loss or the weights are not finite; never leaves this room."""


class Updater:
    """The policy with its optimiser and the policy that it is kept near to."""

    def __init__(
        self,
        network: ActorNetwork,
        settings: Settings,
        generator: torch.Generator,
        *,
        max_steps: int,
    ) -> None:
        self._network = network
        self._settings = settings
        self._generator = generator
        self._max_steps = max_steps
        keeps = settings.kl_coef > 0 and settings.reference == INITIAL
        self._initial = copy.deepcopy(network) if keeps else None
        self._weights = FlatWeights(network)
        self._optimizer = Statistics.of(self._weights.vector)

    def state(self) -> dict[str, object]:
        """Copies of the optimiser's state and of the reference's weights."""
        reference = None if self._initial is None else self._initial.state_dict()
        return {
            "optimizer": self._optimizer.state(),
            "reference": copy.deepcopy(reference),
        }

    def restore(self, state: Mapping[str, object], *, reference: bool) -> None:
        """Go on with the saved optimiser, and with the saved `reference` if that is asked for.

        Raises:
            KeyError, TypeError, ValueError, RuntimeError: they are of another network.
        """
        self._optimizer.restore(cast("Mapping[str, Tensor]", state["optimizer"]))
        if reference and self._initial is not None:
            saved = cast("Mapping[str, Tensor]", state["reference"])
            self._initial.load_state_dict(saved)

    def update(self, groups: Sequence[Sequence[Episode]], share_left: float) -> dict[str, float]:
        """Learn from all steps of these groups; says what was seen.

        Raises:
            Diverged: the loss or the weights are not finite any more.
        """
        settings = self._settings
        learning_rate = settings.learning_rate * (share_left if settings.linear else 1.0)
        advantages, unanimous = self._advantages(groups)
        episodes = [episode for group in groups for episode in group]
        batch = _Batch(self._network, episodes, advantages, self._weigh(episodes))
        batch.before = self._log_probabilities(self._network, batch)
        reference = self._reference(batch)
        seen = [
            self._step(batch, rows, reference, learning_rate)
            for _ in range(settings.n_epochs)
            for rows in torch.split(
                torch.randperm(len(batch), generator=self._generator), settings.batch_size
            )
        ]
        if not self._network.is_finite():
            raise Diverged
        returns = [sum(episode.rewards) for episode in episodes]
        return {
            **_means(seen),
            "advantage_std": float(batch.advantages.std(correction=0)),
            "return_mean": float(np.mean(returns)),
            "return_std_within_groups": _spread_within(groups),
            "groups_without_difference": float(unanimous),
            "learning_rate": learning_rate,
        }

    def _advantages(self, groups: Sequence[Sequence[Episode]]) -> tuple[list[float], int]:
        settings = self._settings
        found: list[float] = []
        unanimous = 0
        for group in groups:
            rewards = [np.array(episode.rewards) for episode in group]
            if settings.credit == OUTCOME:
                own = outcome_advantages(rewards, std_normalization=settings.std_normalization)
            else:
                own = reward_to_go_advantages(
                    rewards, gamma=settings.gamma, std_normalization=settings.std_normalization
                )
            unanimous += not any(one.any() for one in own)
            found.extend(float(advantage) for one in own for advantage in one)
        return found, unanimous

    def _weigh(self, episodes: Sequence[Episode]) -> Tensor:
        lengths = [len(episode.rewards) for episode in episodes]
        return step_weights(lengths, self._settings.length_normalization, self._max_steps)

    def _reference(self, batch: _Batch) -> Tensor | None:
        if self._settings.kl_coef == 0:
            return None
        if self._initial is None:
            return batch.before
        return self._log_probabilities(self._initial, batch)

    def _log_probabilities(self, network: ActorNetwork, batch: _Batch) -> Tensor:
        with torch.no_grad():
            parts = [
                network.actions.log_probability(network(inputs), actions)
                for inputs, actions in batch.slices(4096)
            ]
        return torch.cat(parts)

    def _step(
        self, batch: _Batch, rows: Tensor, reference: Tensor | None, learning_rate: float
    ) -> LossParts:
        network, settings = self._network, self._settings
        outputs = network({name: values[rows] for name, values in batch.inputs.items()})
        parts = clipped_loss(
            network.actions.log_probability(outputs, batch.actions[rows]),
            batch.before[rows],
            batch.advantages[rows],
            # A part of the steps stands for all of them.
            batch.weights[rows] * (len(batch) / len(rows)),
            network.actions.entropy(outputs),
            reference=None if reference is None else reference[rows],
            clip_low=settings.clip_range,
            clip_high=settings.clip_range_high,
            kl_coef=settings.kl_coef,
            ent_coef=settings.ent_coef,
        )
        if not torch.isfinite(parts.total):
            raise Diverged
        self._weights.gradient.zero_()
        torch.autograd.backward(parts.total)
        self._weights.clip_gradient(settings.max_grad_norm)
        self._optimizer.adam(
            self._weights.vector,
            self._weights.gradient,
            learning_rate=learning_rate,
            epsilon=_ADAM_EPSILON,
        )
        return parts


class _Batch:
    """All steps of an update, one episode's after another's."""

    def __init__(
        self,
        network: ActorNetwork,
        episodes: Sequence[Episode],
        advantages: Sequence[float],
        weights: Tensor,
    ) -> None:
        self.inputs = network.observations.stack(
            [seen for episode in episodes for seen in episode.observations]
        )
        self.actions = torch.stack([one for episode in episodes for one in episode.actions])
        self.advantages = torch.tensor(advantages, dtype=torch.float32)
        self.weights = weights
        self.before = torch.zeros(0)

    def __len__(self) -> int:
        return len(self.actions)

    def slices(self, size: int) -> list[tuple[dict[str, Tensor], Tensor]]:
        """The steps in their order, so many at a time."""
        return [
            (
                {name: values[start : start + size] for name, values in self.inputs.items()},
                self.actions[start : start + size],
            )
            for start in range(0, len(self), size)
        ]


def _means(seen: Sequence[LossParts]) -> dict[str, float]:
    return {
        "loss": float(np.mean([parts.total.item() for parts in seen])),
        "policy_loss": float(np.mean([parts.policy for parts in seen])),
        "kl": float(np.mean([parts.kl for parts in seen])),
        "entropy": float(np.mean([parts.entropy for parts in seen])),
        "clip_fraction": float(np.mean([parts.clip_fraction for parts in seen])),
        "approx_kl": seen[-1].approximate_kl,
    }


def _spread_within(groups: Sequence[Sequence[Episode]]) -> float:
    spreads = [np.std([sum(episode.rewards) for episode in group]) for group in groups]
    return float(np.mean(spreads))
