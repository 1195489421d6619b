"""Some of the episodes of a training, step by step, for people who want to see what it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import gymnasium
from gymnasium import spaces
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.results import EpisodeResult

from rleaas.evaluation.rollouts import EpisodeName, RolloutRecord, RolloutRecorder, RolloutWriter
from rleaas.training.episode_env import SCENARIO_ID
from rleaas.training.ledger import SUCCESS_KEYS
from rleaas.training.rewards.verified_env import COMPOSITE
from rleaas.verify.episode import ACTION_NAMES, action_names

MOST: Final = 200
"""Of a longer training, so many episodes are kept, evenly spread over it."""
# Observations, actions and infos are whatever the environment's spaces say.
Value = Any


class RolloutKeeper:
    """Decides which episodes are kept, and writes them. Safe in any thread.

    Args:
        job_id: what the episodes are called after.
        path: where they are written; the file is there after `close`.
        num_episodes: how many the training is of.
        begin: how many an earlier attempt has played.
    """

    def __init__(self, job_id: str, path: Path, num_episodes: int, *, begin: int = 0) -> None:
        self._job_id = job_id
        self._every = max(1, -(-num_episodes // MOST))
        self._number = begin
        self._lock = threading.Lock()
        self._writer: RolloutWriter | None = None
        self.path = path

    @property
    def rollouts(self) -> int:
        """How many were kept."""
        return 0 if self._writer is None else self._writer.rollouts

    def around(self, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        """The environment whose episodes are kept; itself, where its actions call no tools."""
        # Nodes of a cluster may do without it.
        keeps = tells_tools(env) and find_spec("pyarrow") is not None
        return KeptEnv(env, self) if keeps else env

    def next(self) -> int | None:
        """The number of the episode that begins now; None: it is not kept."""
        with self._lock:
            number = self._number
            self._number += 1
        return None if number % self._every else number

    def name(self, number: int) -> EpisodeName:
        """What the episode of a number is called."""
        return EpisodeName(id=f"{self._job_id}-{number}")

    def add(self, record: RolloutRecord) -> None:
        """Write an episode."""
        with self._lock:
            if self._writer is None:
                self._writer = RolloutWriter(self.path)
            self._writer.add(record)

    def close(self) -> None:
        """Let the file appear, if there is an episode for it."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()


def tells_tools(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment's actions are calls of tools, which people can read."""
    return ACTION_NAMES in env.metadata or isinstance(env.action_space, spaces.Text)


class KeptEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Gives each episode that is to be kept to the keeper; others cost next to nothing."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        keeper: RolloutKeeper,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(env)
        self._keeper = keeper
        self._clock = clock
        first = env.action_space.start if isinstance(env.action_space, spaces.Discrete) else 0
        self._recorder = RolloutRecorder(
            self._ended, name=keeper.name, action_names=action_names(env.metadata, int(first))
        )
        self._info: dict[str, Any] = {}
        self._seed: int | None = None
        self._begun = False
        self._number: int | None = None
        self._before: Value = None
        self._steps, self._reward, self._since = 0, 0.0, 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode; it counts from its first step on."""
        self._begun, self._number, self._seed = False, None, seed
        self._before, info = self.env.reset(seed=seed, options=options)
        return self._before, info

    def step(self, action: Value) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        """Step, and keep it where the episode is kept."""
        if not self._begun:
            self._begin()
        if self._number is None:
            found = self.env.step(action)
            return cast("tuple[Value, float, bool, bool, dict[str, Any]]", found)
        before = self._clock()
        observation, reward, terminated, truncated, info = self.env.step(action)
        if info.get("aborted"):
            self._number = None  # it is no episode: its environment was lost
        else:
            took = (self._clock() - before) * 1000
            ends = bool(terminated), bool(truncated)
            self._keep(action, observation, float(reward), ends, info, took)
        self._before = observation
        return observation, float(reward), terminated, truncated, info

    def _begin(self) -> None:
        self._begun, self._number = True, self._keeper.next()
        if self._number is not None:
            self._steps, self._reward, self._since = 0, 0.0, self._clock()
            self._recorder.on_episode_start(episode=self._number, seed=self._seed or 0)

    def _keep(
        self,
        action: Value,
        observation: Value,
        reward: float,
        ends: tuple[bool, bool],
        info: dict[str, Any],
        took: float,
    ) -> None:
        assert self._number is not None
        terminated, truncated = ends
        self._recorder.on_step(
            StepEvent(
                episode=self._number,
                seed=self._seed or 0,
                step=self._steps,
                observation=self._before,
                action=action,
                reward=reward,
                terminated=terminated,
                truncated=truncated,
                info=info,
                predict_ms=0.0,
                step_ms=took,
                next_observation=observation,
            )
        )
        self._steps += 1
        self._reward += reward
        self._info = info
        if terminated or truncated:
            said = [bool(info[key]) for key in SUCCESS_KEYS if key in info]
            self._recorder.on_episode_end(
                EpisodeResult(
                    index=self._number,
                    seed=self._seed,
                    steps=self._steps,
                    reward=self._reward,
                    terminated=terminated,
                    truncated=truncated,
                    success=said[0] if said else None,
                    duration_s=self._clock() - self._since,
                )
            )
            self._number = None

    def _ended(self, record: RolloutRecord, _: EpisodeResult) -> None:
        scenario, score = self._info.get(SCENARIO_ID), self._info.get(COMPOSITE)
        self._keeper.add(
            replace(
                record,
                scenario_id=scenario if isinstance(scenario, str) else None,
                score=score if isinstance(score, float) else None,
            )
        )
