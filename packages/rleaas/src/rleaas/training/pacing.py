"""Environments that live in real time: how fast they step, and how `simulation.speed` changes it.

An environment is paced when its metadata says so: by `steps_per_second`, a number, or by
`real_time: true` beside Gymnasium's `render_fps`. `render_fps` alone is only how fast frames are
shown; such an environment steps as fast as it can.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

import gymnasium

RATE_KEY = "steps_per_second"
REAL_TIME_KEY = "real_time"
FRAMES_KEY = "render_fps"


def natural_rate(metadata: object) -> float | None:
    """The steps per second at which an environment lives; None: it is not paced."""
    if not isinstance(metadata, Mapping):
        return None
    said = cast("Mapping[str, object]", metadata)
    rate = said.get(RATE_KEY)
    if rate is None and said.get(REAL_TIME_KEY) is True:
        rate = said.get(FRAMES_KEY)
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        return None
    return float(rate) if math.isfinite(rate) and rate > 0 else None


class PacedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Steps no faster than `rate` a second; each session keeps its own time."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        rate: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(env)
        self._seconds = 1.0 / rate
        self._clock = clock
        self._sleep = sleep
        self._due = -math.inf
        self._begun = False
        if env.has_wrapper_attr("begin_step"):
            # Who steps us asks whether actions can be sent ahead.
            self.begin_step = self._send_ahead

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and its time."""
        self._begun = False
        found = super().reset(seed=seed, options=options)
        self._due = self._clock() + self._seconds
        return found

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step when the last one's time is over."""
        begun, self._begun = self._begun, False
        if not begun:
            self._wait()
        return super().step(action)

    def _send_ahead(self, action: Any) -> None:
        self._wait()
        self.env.get_wrapper_attr("begin_step")(action)
        self._begun = True

    def _wait(self) -> None:
        wait = self._due - self._clock()
        if wait > 0:
            self._sleep(wait)
        # Time that an environment lost is not made up for by stepping faster.
        self._due = max(self._due, self._clock() - self._seconds) + self._seconds
