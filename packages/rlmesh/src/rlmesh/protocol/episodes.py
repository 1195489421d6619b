"""The server's account of episodes: which one runs, what it has gathered, what to report.

An episode starts with a reset and ends with a terminal step. One that is cut off by the next
reset, or by the end of the session, ends truncated, and is reported with the next answer that can
carry it.
"""

from __future__ import annotations

from dataclasses import dataclass

# A caller that only ever resets must not make the server grow.
UNREPORTED_LIMIT = 100


@dataclass(slots=True)
class Episode:
    """One episode of one environment; times are Unix nanoseconds."""

    episode_id: str
    seed: int | None
    started_ns: int
    steps: int = 0
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    ended_ns: int = 0
    lane: int = 0


class EpisodeLedger:
    """Follows the episodes of one environment; the clock is the caller's."""

    def __init__(self) -> None:
        self.running: Episode | None = None
        self._unreported: list[Episode] = []

    def begin(self, episode_id: str, seed: int | None, now_ns: int, lane: int = 0) -> None:
        """Start an episode; one that still runs is cut off."""
        self._cut_off(now_ns)
        self.running = Episode(episode_id, seed, now_ns, lane=lane)

    def end(self, episode: Episode, *, terminated: bool, truncated: bool, now_ns: int) -> None:
        """Finish the running episode by a terminal step."""
        episode.terminated, episode.truncated, episode.ended_ns = terminated, truncated, now_ns
        self.running = None

    @property
    def has_unreported(self) -> bool:
        """Whether episodes were cut off that nobody was told of."""
        return bool(self._unreported)

    def take_unreported(self) -> list[Episode]:
        """Return the episodes that were cut off and not reported yet, oldest first, once."""
        episodes, self._unreported = self._unreported, []
        return episodes

    def close(self, now_ns: int) -> list[Episode]:
        """Cut off what runs and return everything that nobody reported."""
        self._cut_off(now_ns)
        return self.take_unreported()

    def _cut_off(self, now_ns: int) -> None:
        episode = self.running
        if episode is None:
            return
        episode.truncated, episode.ended_ns = True, now_ns
        self.running = None
        self._unreported = [*self._unreported, episode][-UNREPORTED_LIMIT:]
