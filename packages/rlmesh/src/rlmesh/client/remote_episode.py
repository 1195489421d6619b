"""One episode as a client of a served model knows it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from rlmesh.protocol.identifiers import time_ordered_id

if TYPE_CHECKING:
    from rlcore import Error

    from rlmesh.protocol.model_requests import Timing
    from rlmesh.transport.model_lane import ModelLane


class RemoteEpisode:
    """One episode of one environment, for which a served model is asked.

    Attributes:
        episode_id: its id, on both sides.
        seed: what it was reset with.
        predicted_now: False where the last action is from a chunk that came before.
        predict_index: how often the model was asked.
        queue: actions that have come and are not used yet.
        lane: the stream over which it was asked; what the model knows of the episode goes with it.
        coming: whether actions were asked for that have not come yet.
        error: why they will not.
        timing: what the server told of how long the last answer took it.
    """

    __slots__ = (
        "coming",
        "episode_id",
        "error",
        "lane",
        "predict_index",
        "predicted_now",
        "queue",
        "seed",
        "timing",
    )

    def __init__(self, episode_id: str, seed: int | None) -> None:
        self.episode_id = episode_id or time_ordered_id()
        self.seed = seed
        self.predicted_now = True
        self.predict_index = 0
        self.queue: deque[Any] = deque()  # Any: actions of whichever space
        self.lane: ModelLane | None = None
        self.coming = False
        self.error: Error | None = None
        self.timing: Timing | None = None

    def raise_error(self) -> None:
        """Raise why no actions come, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error
