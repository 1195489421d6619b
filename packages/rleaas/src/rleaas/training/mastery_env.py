"""The outermost wrapper of a session with a curriculum: counts what its episodes came to."""

from __future__ import annotations

from typing import Any

import gymnasium

from rleaas.training.curriculum import Curriculum
from rleaas.training.episode_env import TIER
from rleaas.training.ledger import SUCCESS_KEYS

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any


class MasteryEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells the curriculum whether each episode was a success.

    The info of its last step tells; else, the return that the environment's specification calls
    solved.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], curriculum: Curriculum) -> None:
        super().__init__(env)
        self._curriculum = curriculum
        self._return = 0.0
        known = env.spec
        self._threshold = None if known is None else known.reward_threshold

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode."""
        self._return = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step, and count the episode when that ended it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        if (terminated or truncated) and not info.get("aborted"):
            self._curriculum.record(info[TIER], self._success(info))
        return observation, float(reward), terminated, truncated, info

    def _success(self, info: dict[str, Any]) -> bool | None:
        for key in SUCCESS_KEYS:
            if key in info:
                return bool(info[key])
        return None if self._threshold is None else self._return >= self._threshold
