"""The server's account of the episodes of many lanes, counted for all lanes at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from rlmesh.protocol.episodes import UNREPORTED_LIMIT, Episode


class LaneLedger:
    """Follows one episode in each lane, by the rules of `EpisodeLedger`; the clock is the caller's.

    An environment that resets itself starts an episode before anybody has named it: it is begun
    with the id None and takes the next id that the caller gives for its lane.
    """

    def __init__(self, lanes: int) -> None:
        self._episodes: list[Episode | None] = [None] * lanes
        # Steps of all lanes are counted once: a lane has those since its episode began.
        self._clock = 0
        self._began = [0] * lanes
        self._rewards = np.zeros(lanes, np.float64)
        self._nameless: set[int] = set()
        self._unreported: list[Episode] = []

    def begin(self, lane: int, episode_id: str | None, seed: int | None, now_ns: int) -> None:
        """Start an episode; one that still runs in the lane is cut off."""
        self.cut_off((lane,), now_ns)
        self._episodes[lane] = Episode(episode_id or "", seed, now_ns, lane=lane)
        self._began[lane] = self._clock
        self._rewards[lane] = 0.0
        if episode_id is None:
            self._nameless.add(lane)

    def name(self, lanes: Sequence[int], episode_ids: Sequence[str]) -> None:
        """Give the episodes that have no id yet the ids that go with these lanes."""
        if not self._nameless or len(lanes) != len(episode_ids):
            return
        for lane, episode_id in zip(lanes, episode_ids, strict=True):
            if lane in self._nameless:
                self._nameless.discard(lane)
                episode = self._episodes[lane]
                if episode is not None:
                    episode.episode_id = episode_id

    def count(self, rewards: NDArray[np.float64]) -> None:
        """Count a step of every lane."""
        self._clock += 1
        self._rewards += rewards  # what idle lanes gather is dropped when they begin

    def count_one(self, lane: int, reward: float) -> None:
        """Count a step of one lane."""
        self._began[lane] -= 1
        self._rewards[lane] += reward

    def finish(
        self, lane: int, *, terminated: bool, truncated: bool, now_ns: int
    ) -> Episode | None:
        """End a lane's episode by a terminal step and return it; None when none runs there."""
        episode = self._stop(lane, now_ns)
        if episode is not None:
            episode.terminated, episode.truncated = terminated, truncated
        return episode

    def cut_off(self, lanes: Iterable[int], now_ns: int) -> None:
        """End what runs in these lanes as truncated; it is reported later."""
        for lane in lanes:
            episode = self._stop(lane, now_ns)
            if episode is not None:
                episode.truncated = True
                self._unreported = [*self._unreported, episode][-UNREPORTED_LIMIT:]

    @property
    def has_unreported(self) -> bool:
        """Whether episodes were cut off that nobody was told of."""
        return bool(self._unreported)

    def take_unreported(self) -> list[Episode]:
        """Return the episodes that were cut off and not reported yet, oldest first, once."""
        episodes, self._unreported = self._unreported, []
        return episodes

    def close(self, now_ns: int) -> list[Episode]:
        """Cut off what runs in any lane and return everything that nobody reported."""
        self.cut_off(range(len(self._episodes)), now_ns)
        return self.take_unreported()

    def _stop(self, lane: int, now_ns: int) -> Episode | None:
        episode, self._episodes[lane] = self._episodes[lane], None
        if episode is None:
            return None
        self._nameless.discard(lane)
        episode.steps = self._clock - self._began[lane]
        episode.reward = float(self._rewards[lane])
        episode.ended_ns = now_ns
        return episode
