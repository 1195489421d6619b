"""The numbers of updates, under plain names, averaged over a few hundred steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from rleaas.training.sb3.models import Diverged

# One report costs as much as some small updates, of which A2C makes thousands.
REPORT_STEPS = 250

_NAMES: Mapping[str, str] = {
    "policy_gradient_loss": "policy_loss",
    "approx_kl": "kl",
    "entropy_loss": "entropy",
}
_ENDS_IN_LOSS = "loss"
_LEFT_OUT = ("n_updates", "std")


class Updates:
    """Averages what stable-baselines3 records of its updates until it is time to tell it."""

    def __init__(
        self,
        tell: Callable[[Mapping[str, float]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._sums: dict[str, tuple[float, int]] = {}
        self._told_at = 0
        self._step_at, self._time_at = 0, clock()

    def add(self, recorded: Mapping[str, Any], timestep: int) -> None:
        """Note one update, and tell the averages where it is time.

        Raises:
            Diverged: a loss is not finite.
        """
        sums = self._sums
        for key, value in recorded.items():
            name = key.rpartition("/")[2]
            if name in _LEFT_OUT:
                continue
            number = float(value)
            if not math.isfinite(number):
                if name.endswith(_ENDS_IN_LOSS):
                    raise Diverged(f"the {name.replace('_', ' ')} is {number}")
                continue  # as the explained variance of returns that are all the same
            if name == "entropy_loss":
                number = -number
            name = _NAMES.get(name, name)
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + number, count + 1
        if timestep - self._told_at >= REPORT_STEPS:
            self._report(timestep)

    def state(self) -> dict[str, object]:
        """The unfinished averages, as an object of JSON."""
        return {"sums": dict(self._sums), "told_at": self._told_at}

    def restore(self, state: Mapping[str, object], timestep: int) -> None:
        """Go on from such an object; a malformed one raises KeyError, TypeError or ValueError."""
        sums = cast("Mapping[str, tuple[float, int]]", state["sums"])
        self._sums = {name: (float(total), int(count)) for name, (total, count) in sums.items()}
        self._told_at = int(cast("int", state["told_at"]))
        self._step_at = timestep

    def _report(self, timestep: int) -> None:
        now = self._clock()
        seconds = now - self._time_at
        numbers = {name: total / count for name, (total, count) in self._sums.items()}
        if seconds > 0:
            numbers["steps_per_second"] = (timestep - self._step_at) / seconds
        self._sums = {}
        self._told_at = self._step_at = timestep
        self._time_at = now
        self._tell(numbers)
