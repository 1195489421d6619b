"""The PPO model of stable-baselines3 and the settings that it is built from."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from rlcore import ConfigurationError
from stable_baselines3 import PPO
from stable_baselines3.common.utils import FloatSchedule, LinearSchedule

from rleaas.training.checkpoint_file import (
    Manifest,
)
from rleaas.training.config import (
    PPO_ROLLOUT,
    TrainingConfig,
)
from rleaas.training.learner_spaces import policy_name
from rleaas.training.sessions import GuardedEnv, SessionVecEnv

NET_ARCH = (64, 64)


class Diverged(Exception):
    """The weights are not finite; never leaves this room."""


class EpisodePPO(PPO):
    """PPO whose schedules run with the episodes that are left."""

    budget_left: Callable[[], float] = staticmethod(lambda: 1.0)

    def train(self) -> None:
        """Update the policy.

        Raises:
            Diverged: its weights are not finite any more.
        """
        try:
            super().train()
        except ValueError as error:
            # torch's distributions refuse NaN in the middle of an update.
            if self._is_finite():
                raise
            raise Diverged from error
        if not self._is_finite():
            raise Diverged

    def _is_finite(self) -> bool:
        return all(bool(torch.isfinite(weight).all()) for weight in self.policy.parameters())

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        self._current_progress_remaining = self.budget_left()

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "budget_left"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The request with every default of this algorithm filled in."""

    config: TrainingConfig
    seed: int
    num_envs: int
    n_steps: int
    batch_size: int
    policy: str
    net_arch: tuple[int, ...]

    @classmethod
    def settle(
        cls, config: TrainingConfig, sessions: list[GuardedEnv], seed: int, resumed: Manifest | None
    ) -> Settings:
        """Fill in the defaults for the sessions that there are.

        Raises:
            ConfigurationError: the request does not fit them, or the checkpoint to resume from.
        """
        num_envs = len(sessions)
        n_steps = config.n_steps or max(2, PPO_ROLLOUT // num_envs)
        rollout = n_steps * num_envs
        if rollout < 2 or (config.batch_size or 2) > rollout:
            raise ConfigurationError(
                f"batch_size {config.batch_size} does not fit a rollout of {n_steps} steps in "
                f"{num_envs} sessions",
                hint="Lower batch_size or raise n_steps",
            )
        given = config.net_arch
        arch = given or NET_ARCH
        if resumed is not None:
            arch = tuple(cast("list[int]", resumed.policy_kwargs["net_arch"]))
            if given not in (None, arch):
                raise ConfigurationError(
                    f"net_arch {list(given or ())} is not the checkpoint's {list(arch)}",
                    hint="Leave net_arch out when resuming",
                )
        return cls(
            config=config,
            seed=seed,
            num_envs=num_envs,
            n_steps=n_steps,
            batch_size=config.batch_size or _whole_batch(rollout),
            policy=policy_name(sessions[0].observation_space, config.policy),
            net_arch=arch,
        )

    def build(self, sessions: SessionVecEnv) -> EpisodePPO:
        """A fresh model."""
        asked = self.config
        rate = _or(asked.learning_rate, 1e-3)
        linear = asked.learning_rate_schedule == "linear"
        return EpisodePPO(
            self.policy,
            sessions,
            learning_rate=FloatSchedule(LinearSchedule(rate, 0.0, 1.0)) if linear else rate,
            n_steps=self.n_steps,
            batch_size=self.batch_size,
            n_epochs=asked.n_epochs or 20,
            gamma=_or(asked.gamma, 0.98),
            gae_lambda=_or(asked.gae_lambda, 0.8),
            clip_range=_or(asked.clip_range, 0.2),
            ent_coef=_or(asked.ent_coef, 0.0),
            vf_coef=_or(asked.vf_coef, 0.5),
            max_grad_norm=_or(asked.max_grad_norm, 0.5),
            policy_kwargs={"net_arch": list(self.net_arch)},
            seed=self.seed,
            device="cpu",
        )


def _whole_batch(rollout: int) -> int:
    """The largest batch of at most 256 that divides the rollout."""
    sizes = range(min(PPO_ROLLOUT, rollout), 1, -1)
    return next((size for size in sizes if rollout % size == 0), min(PPO_ROLLOUT, rollout))


def _or(asked: float | None, default: float) -> float:
    return default if asked is None else asked
