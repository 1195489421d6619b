"""The environment with another reward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium

from rleaas.training.episode_env import EpisodeEnv
from rleaas.training.ledger import SUCCESS_KEYS
from rleaas.training.rewards.function import Moment, RewardFunction, failed
from rleaas.training.rewards.spec import RewardSpec

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any

GIVEN_REWARD = "given_reward"
"""The info key with the reward as the environment gave it."""
GIVEN_RETURN = "given_return"
"""The same of an episode's end: the sum."""


class RewardEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Steps whose reward a function of the job says.

    Whether an episode is a success is still said by the environment: by its info, or, with
    `judges_success`, by the return that its specification calls solved, taken over the rewards that
    it gave itself.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        spec: RewardSpec,
        function: RewardFunction,
        episodes: EpisodeEnv,
        *,
        judges_success: bool = True,
    ) -> None:
        super().__init__(env)
        self._spec_of_reward = spec
        self._function = function
        self._episodes = episodes
        self._return = 0.0
        known = env.spec if judges_success else None
        self._threshold = None if known is None else known.reward_threshold

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode."""
        self._return = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step, and ask the function what that is worth.

        Raises:
            RLEaaSError: it failed, or said something that is no finite number.
        """
        observation, given, terminated, truncated, info = self.env.step(action)
        if info.get("aborted"):
            return observation, 0.0, terminated, truncated, info
        self._return += float(given)
        moment = Moment(
            float(given),
            observation,
            action,
            info,
            bool(terminated),
            bool(truncated),
            self._episodes.step_number,
            self._episodes.episode + 1,
            self._episodes.seed,
        )
        reward = self._finite(self._function(moment), moment)
        told: dict[str, Any] = {**info, GIVEN_REWARD: float(given)}
        if terminated or truncated:
            told[GIVEN_RETURN] = self._return
            if self._threshold is not None and not _tells_success(info):
                told["is_success"] = self._return >= self._threshold
        return observation, reward, terminated, truncated, told

    def _finite(self, said: Value, moment: Moment) -> float:
        try:
            reward = float(said)
        except (TypeError, ValueError, OverflowError) as error:
            what = f"it said {_shortened(said)}, which is no number"
            raise failed(self._spec_of_reward, what, moment) from error
        if not math.isfinite(reward):
            raise failed(
                self._spec_of_reward, f"it said {reward}, which is no finite number", moment
            )
        return reward


def _tells_success(info: Mapping[str, object]) -> bool:
    return any(key in info for key in SUCCESS_KEYS)


def _shortened(said: object) -> str:
    text = repr(said)
    return text if len(text) <= 80 else f"{text[:80]}…"
