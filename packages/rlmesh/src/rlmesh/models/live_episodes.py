"""How many episodes models keep state for in this process at once."""

from __future__ import annotations

import threading
from typing import Final

from rlcore import ConfigurationError, RLMeshException
from rlcore.environ import variable

CAPACITY_VARIABLE: Final = "RLMESH_EPISODE_CAPACITY"
DEFAULT_CAPACITY: Final = 65_536


class EpisodeCapacityError(RLMeshException):
    """More episodes are open in this process than it is allowed to keep state for."""

    default_code = "episode_capacity"


class LiveEpisodes:
    """Counts open episodes against a ceiling, whichever threads open and end them."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.count = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """Count one more.

        Raises:
            EpisodeCapacityError: there are as many as there can be.
        """
        with self._lock:
            if self.count >= self.capacity:
                raise EpisodeCapacityError(
                    f"{self.count} episodes are open in this process, as many as it may have",
                    hint=f"End episodes that are over, or set {CAPACITY_VARIABLE} higher.",
                )
            self.count += 1

    def end(self) -> None:
        """Count one less."""
        with self._lock:
            self.count -= 1


def capacity(text: str | None) -> int:
    """Return how many episodes the variable's text allows.

    Raises:
        ConfigurationError: it is no positive whole number.
    """
    if text is None:
        return DEFAULT_CAPACITY
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(
            f"{CAPACITY_VARIABLE} is {text!r}", hint="Set it to a whole number from 1 on."
        )
    return int(text)


_here: list[LiveEpisodes] = []


def live_episodes() -> LiveEpisodes:
    """Return this process's count; its ceiling is read when the first episode opens."""
    if not _here:
        _here.append(LiveEpisodes(capacity(variable(CAPACITY_VARIABLE))))
    return _here[0]
