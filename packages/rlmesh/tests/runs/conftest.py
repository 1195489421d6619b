from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

Observation = NDArray[np.float32]


class Corridor(gym.Env[Observation, Any]):  # Any: sent as an int, sampled as numpy's
    """Walk right (1) to the end; what goes wrong is decided by seed and step.

    `answers` is how many parts of an answer are given, as by environments of older interfaces.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own declaration

    def __init__(
        self,
        length: int = 3,
        *,
        on_step: Callable[[int | None, int], None] | None = None,
        on_reset: Callable[[int | None], None] | None = None,
        on_close: Callable[[], None] | None = None,
        info: dict[str, Any] | None = None,
        answers: int | None = None,
    ) -> None:
        self.observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.length = length
        self.closed = 0
        self.seeds: list[int | None] = []
        self.options: list[dict[str, Any] | None] = []
        self._on_step = on_step
        self._on_reset = on_reset
        self._on_close = on_close
        self._info = info or {}
        self._answers = answers
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.options.append(options)
        self.at = self.steps = 0
        if self._on_reset is not None:
            self._on_reset(seed)
        return self._part((self._observation(), {}))

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.actions.append(action)
        if self._on_step is not None:
            self._on_step(self.seeds[-1], self.steps)
        self.at += int(action)
        done = self.at >= self.length
        answer = self._observation(), float(action), done, False, dict(self._info)
        return self._part(answer)

    def close(self) -> None:
        self.closed += 1
        if self._on_close is not None:
            self._on_close()

    def _part(self, answer: tuple[Any, ...]) -> Any:
        return answer[: self._answers]

    def _observation(self) -> Observation:
        return np.array([self.at], np.float32)


@pytest.fixture
def corridor() -> type[Corridor]:
    return Corridor
