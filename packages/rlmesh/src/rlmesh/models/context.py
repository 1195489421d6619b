"""What a prediction may know beside the observation."""

from typing import Any, TypedDict

from rlmesh.models.seeds import predict_seed


class PredictContext(TypedDict):
    """The second argument of `predict`, where it is asked for by the name `context`.

    `predict_index` counts the predictions of the episode from 0, `predict_seed` is a fresh
    reproducible seed for each of them, and `state` is a dict that lives until the episode ends.
    """

    episode_id: str
    episode_seed: int | None
    predict_index: int
    predict_seed: int | None
    state: dict[str, Any]  # Any: the model's own, kept for it and never looked at


class EpisodeContext:
    """Makes the contexts of one episode's predictions."""

    def __init__(self, episode_id: str, seed: int | None) -> None:
        self.episode_id = episode_id
        self.seed = seed
        self._count = 0
        self._state: dict[str, Any] = {}  # Any: see PredictContext

    def following(self) -> PredictContext:
        """Return the context of the next prediction."""
        index = self._count
        self._count += 1
        return {
            "episode_id": self.episode_id,
            "episode_seed": self.seed,
            "predict_index": index,
            "predict_seed": None if self.seed is None else predict_seed(self.seed, index),
            "state": self._state,
        }
