"""Environments that tests of workers send to processes, which import them from here."""

import os
import signal
import time
from typing import Any

import gymnasium as gym
import numpy as np


class Walk(gym.Env[Any, Any]):
    """Walk right (1) for five steps; some seeds have something in store.

    From 1000 on, the second step ends the process; from 2000 on it never returns; from 3000 on it
    raises. `seconds` is how long each step takes.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own declaration
    observation_space = gym.spaces.Box(0.0, 2.0**32, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.seed = seed or 0
        self.steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        if self.steps == 2:
            self._surprise()
        if self.seconds:
            time.sleep(self.seconds)
        return self._seen(), float(self.np_random.random()), self.steps == 5, False, {}

    def _surprise(self) -> None:
        if 1000 <= self.seed < 2000:
            os.kill(os.getpid(), signal.SIGKILL)
        if 2000 <= self.seed < 3000:
            time.sleep(600)
        if 3000 <= self.seed < 4000:
            raise RuntimeError("fell")

    def _seen(self) -> Any:
        return np.array([self.steps, os.getpid() % 2**16], np.float32)


class SlowWalk(Walk):
    def __init__(self) -> None:
        super().__init__(0.002)


class Unclosed(Walk):
    """Does not close in good order, by raising or by not coming back."""

    how = ""

    def close(self) -> None:
        if self.how == "raises":
            raise OSError("still in use")
        time.sleep(600)


class RaisesAtClose(Unclosed):
    how = "raises"
