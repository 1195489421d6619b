"""Environments for the integration tests: the server's processes import this file by its name."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Line(gymnasium.Env[Observation, Any]):
    """Two numbers that drift; an episode has 20 steps."""

    def __init__(self, width: float = 1.0, actions: int = 2) -> None:
        self.observation_space = spaces.Box(-width, width, (2,), np.float32)
        self.action_space = spaces.Discrete(actions)
        self._taken = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._taken = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._taken += 1
        return self._seen(), float(action), self._taken >= 20, False, {}

    def _seen(self) -> Observation:
        return self.np_random.uniform(-0.5, 0.5, 2).astype(np.float32)


def changing(path: str) -> gymnasium.Env[Observation, Any]:
    """A `Line` whose code changes behind its name: what it is stands in a file."""
    return Line(**json.loads(Path(path).read_text()))


def refusing() -> gymnasium.Env[Observation, Any]:
    """A factory that raises."""
    raise RuntimeError("the simulator's licence has run out")


class Crashing(Line):
    """Raises on its third step."""

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._taken == 2:
            raise ZeroDivisionError("the third step divides by zero")
        return super().step(action)


class Dying(Line):
    """Takes its whole process with it on the third step."""

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._taken == 2:
            os._exit(3)
        return super().step(action)


class Hanging(Line):
    """Never comes back from its third step."""

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._taken == 2:
            threading.Event().wait()
        return super().step(action)


class Pushing(Line):
    """Takes two numbers as its action."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        return super().step(action.sum())
