"""Guarded sessions side by side, as one VecEnv of stable-baselines3."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from rleaas.training.guarded import GuardedEnv
from rleaas.training.lockstep import begin_all, step_all


class SessionVecEnv(DummyVecEnv):
    """Sessions stepped one after another; their infos are handed on uncopied.

    Those that live in other processes work at the same time: all actions are sent first.
    """

    def __init__(self, sessions: Sequence[GuardedEnv]) -> None:
        super().__init__([_giver(session) for session in sessions])
        self._resumed: list[Any] | None = None  # observations, as the spaces say

    def go_on_from(self, observations: list[Any]) -> None:
        """Let the next reset give these instead: the sessions are in the middle of episodes."""
        self._resumed = observations

    def reset(self) -> VecEnvObs:
        """Start an episode in every session, with the seeds that belong to them."""
        resumed, self._resumed = self._resumed, None
        for index, env in enumerate(self.envs):
            if resumed is not None:
                observation = resumed[index]
            else:
                observation, self.reset_infos[index] = env.reset()
            self._save_obs(index, observation)
        return self._obs_from_buf()

    def step_wait(self) -> VecEnvStepReturn:
        """Step every session, starting the next episode where one ended."""
        infos: list[dict[str, Any]] = []
        sessions = cast("list[GuardedEnv]", self.envs)
        begin_all(sessions, self.actions)
        outcomes = zip(sessions, step_all(sessions, self.actions), strict=True)
        for index, (env, outcome) in enumerate(outcomes):
            observation, reward, terminated, truncated, info = outcome
            info["TimeLimit.truncated"] = truncated and not terminated
            done = terminated or truncated
            if done:
                info["terminal_observation"] = observation
                observation, self.reset_infos[index] = env.reset()
            self.buf_rews[index] = reward
            self.buf_dones[index] = done
            infos.append(info)
            self._save_obs(index, observation)
        return self._obs_from_buf(), self.buf_rews.copy(), self.buf_dones.copy(), infos


def _giver(session: GuardedEnv) -> Callable[[], GuardedEnv]:
    return lambda: session
