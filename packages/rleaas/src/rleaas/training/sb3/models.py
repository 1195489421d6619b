"""The six algorithms of stable-baselines3, as a job runs them: watched between their updates."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

import numpy as np
import torch
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn

# To look at all weights costs as much as some small updates.
LOOK_STEPS = 250


class Diverged(Exception):
    """Weights or losses are not finite; never leaves this family."""


class Watch(Protocol):
    """What a job does between the parts of an algorithm."""

    def before_rollout(self) -> bool:
        """Nothing is under way: the last update is done and no step of the next one was taken.

        Returns whether to go on.
        """
        ...

    def before_update(self) -> None:
        """The weights are about to change."""
        ...

    def after_update(self, numbers: Mapping[str, Any]) -> None:
        """They have changed; the numbers are what stable-baselines3 recorded."""
        ...

    def remaining(self) -> float:
        """The share of the budget of episodes that is left."""
        ...


class WatchedModel(BaseAlgorithm):
    """Tells a watch where it is; its schedules run with the episodes that are left."""

    watch: Watch
    _looked_at = 0

    def collect_rollouts(self, *args: Any, **kwargs: Any) -> Any:  # whatever the algorithm's are
        """Step the sessions until the next update is due."""
        if self.watch.before_rollout():
            return cast("Any", super()).collect_rollouts(*args, **kwargs)
        if isinstance(self, OffPolicyAlgorithm):
            return RolloutReturn(0, 0, continue_training=False)
        return False

    def train(self, *args: Any, **kwargs: Any) -> None:  # whatever the algorithm's are
        """Update the networks.

        Raises:
            Diverged: their weights are not finite any more; it is looked at now and then.
        """
        self.watch.before_update()
        try:
            # Numbers that overflow are told below, with what to do about them.
            with np.errstate(over="ignore", invalid="ignore"):
                cast("Any", super()).train(*args, **kwargs)
        except ValueError as error:
            # torch's distributions refuse NaN in the middle of an update.
            try:
                self.require_finite()
            except Diverged as diverged:
                raise diverged from error
            raise
        if self.num_timesteps - self._looked_at >= LOOK_STEPS:
            self._looked_at = self.num_timesteps
            self.require_finite()
        recorded = self.logger.name_to_value
        self.watch.after_update(recorded)
        # What is recorded next is of the next update only.
        recorded.clear()

    def require_finite(self) -> None:
        """Do nothing where all weights are numbers.

        Raises:
            Diverged: they are not.
        """
        if not self.is_finite():
            raise Diverged("the policy's weights are not finite")

    def is_finite(self) -> bool:
        """Whether all weights are numbers."""
        return all(bool(torch.isfinite(one).all()) for one in self.policy.parameters())

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        self._current_progress_remaining = self.watch.remaining()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "watch", "_looked_at"]


class WatchedPPO(WatchedModel, PPO):
    """PPO."""


class WatchedA2C(WatchedModel, A2C):
    """A2C."""


class WatchedDQN(WatchedModel, DQN):
    """DQN."""


class WatchedSAC(WatchedModel, SAC):
    """SAC."""


class WatchedTD3(WatchedModel, TD3):
    """TD3."""


class WatchedDDPG(WatchedModel, DDPG):
    """DDPG."""


MODELS: Mapping[str, type[WatchedModel]] = {
    "PPO": WatchedPPO,
    "A2C": WatchedA2C,
    "DQN": WatchedDQN,
    "SAC": WatchedSAC,
    "TD3": WatchedTD3,
    "DDPG": WatchedDDPG,
}
"""By the algorithm's name."""
