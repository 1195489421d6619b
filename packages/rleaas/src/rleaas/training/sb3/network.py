"""A policy of stable-baselines3 as one function of a batch: its best actions, ready to export."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, BasePolicy
from stable_baselines3.common.preprocessing import preprocess_obs
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import SACPolicy

BATCH = 2


def deterministic_network(policy: BasePolicy) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The module, and an example of its inputs in the order of its arguments."""
    space = policy.observation_space
    if isinstance(space, spaces.Dict):
        names = list(space.spaces)
        examples = {name: _example(part) for name, part in space.spaces.items()}
    else:
        names = []
        examples = {"observation": _example(space)}
    return _Best(policy, names).eval(), examples


class _Best(torch.nn.Module):
    """Observations in, best actions out; with `names`, an argument for each part of a Dict."""

    def __init__(self, policy: BasePolicy, names: Sequence[str]) -> None:
        super().__init__()
        self._policy = policy
        self._names = tuple(names)
        self._actions = policy.action_space
        if isinstance(self._actions, spaces.Box):
            kind = torch.float32
            self.register_buffer("_low", torch.as_tensor(self._actions.low, dtype=kind))
            self.register_buffer("_high", torch.as_tensor(self._actions.high, dtype=kind))

    def forward(self, *observations: torch.Tensor) -> torch.Tensor:
        """The best action for each observation of the batch."""
        seen = dict(zip(self._names, observations, strict=True)) if self._names else observations[0]
        policy = cast("Any", self._policy)
        if isinstance(self._policy, ActorCriticPolicy):
            return self._chosen(self._preferences(policy, seen))
        if isinstance(self._policy, DQNPolicy):
            values = policy.q_net.q_net(self._features(policy.q_net, seen))
            return cast("torch.Tensor", values.argmax(dim=1))
        features = self._features(policy.actor, seen)
        if isinstance(self._policy, SACPolicy):
            squashed = torch.tanh(policy.actor.mu(policy.actor.latent_pi(features)))
        else:
            squashed = policy.actor.mu(features)
        return self._scaled(squashed)

    def _features(self, part: Any, seen: Any) -> torch.Tensor:
        # As BaseModel.extract_features, which cannot be traced: it checks the kind of its input.
        space = self._policy.observation_space
        ready = preprocess_obs(seen, space, normalize_images=self._policy.normalize_images)
        return cast("torch.Tensor", part.features_extractor(ready))

    def _preferences(self, policy: Any, seen: Any) -> torch.Tensor:
        ready = preprocess_obs(
            seen, policy.observation_space, normalize_images=policy.normalize_images
        )
        features = policy.pi_features_extractor(ready)
        return cast("torch.Tensor", policy.action_net(policy.mlp_extractor.forward_actor(features)))

    def _chosen(self, preferences: torch.Tensor) -> torch.Tensor:
        match self._actions:
            case spaces.Discrete():
                return preferences.argmax(dim=1)
            case spaces.MultiDiscrete():
                sizes = [int(count) for count in self._actions.nvec]
                parts = torch.split(preferences, sizes, dim=1)
                return torch.stack([part.argmax(dim=1) for part in parts], dim=1)
            case spaces.MultiBinary():
                return (preferences > 0).to(torch.int8)
            case _:
                shaped = preferences.reshape(-1, *cast("Any", self._actions).shape)
                return torch.clamp(shaped, cast("Any", self._low), cast("Any", self._high))

    def _scaled(self, squashed: torch.Tensor) -> torch.Tensor:
        low, high = cast("torch.Tensor", self._low), cast("torch.Tensor", self._high)
        shaped = squashed.reshape(-1, *low.shape)
        return low + 0.5 * (shaped + 1.0) * (high - low)


def _example(space: Any) -> torch.Tensor:  # a gymnasium space
    return torch.as_tensor(np.stack([np.asarray(space.sample()) for _ in range(BATCH)]))
