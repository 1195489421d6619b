"""How long the start of a server command took, phase by phase, since its process began."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

PREFIX: Final = "rlmesh.startup."
# The kernel counts the start of a process in clock ticks since boot; it is this field, after the
# name of the program, which ends with the last parenthesis.
START_FIELD: Final = 19


class Startup:
    """The phases that have passed: `process`, `imports`, `env` or `model`, and `listen`."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._passed: dict[str, float] = {}

    def begin(self) -> None:
        """Count from the start of this process; nothing is counted before."""
        if self._began is None:
            self._began = process_start()

    def mark(self, phase: str, at: float | None = None) -> None:
        """Say that a phase has passed, now or at a time; only the first time counts."""
        if self._began is not None:
            self._passed.setdefault(phase, (time.time() if at is None else at) - self._began)

    def marks(self) -> dict[str, str]:
        """Return the milliseconds from the start of the process to the end of each phase."""
        return {
            f"{PREFIX}{phase}_ms": f"{max(seconds, 0.0) * 1000:.1f}"
            for phase, seconds in self._passed.items()
        }


def process_start() -> float:
    """Return when this process began, as `time.time` has it; now, where no system tells."""
    now = time.time()
    if sys.platform != "linux":
        return now
    text = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(text.rpartition(")")[2].split()[START_FIELD])
    running = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return now - running


STARTUP: Final = Startup()
