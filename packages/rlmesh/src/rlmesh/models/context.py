"""What a prediction may know beside the observation."""

from typing import Any, TypedDict

from rlmesh.models.seeds import seed_after, seed_prefix


class PredictContext(TypedDict):
    """The second argument of `predict`, where it is asked for by the name `context`.

    `predict_index` counts the predictions of the episode from 0, `predict_seed` is a fresh
    reproducible seed for each of them, and `state` is a dict that lives until the episode ends.
    Batched predictions get a list of these as `contexts`, in the order of the rows.
    """

    episode_id: str
    episode_seed: int | None
    predict_index: int
    predict_seed: int | None
    state: dict[str, Any]  # Any: the model's own, kept for it and never looked at


class EpisodeContext:
    """Makes the contexts of one episode's predictions.

    Attributes:
        episode_id: the episode's id; empty for a prediction outside any.
        seed: what the episode was reset with.
        predict_index: how many predictions were made, whether or not they asked for a context.
    """

    __slots__ = ("_prefix", "_state", "episode_id", "predict_index", "seed")

    def __init__(self, episode_id: str, seed: int | None) -> None:
        self.episode_id = episode_id
        self.seed = seed
        self.predict_index = 0
        self._prefix: int | None = None
        self._state: dict[str, Any] = {}  # Any: see PredictContext

    def following(self) -> PredictContext:
        """Return the context of the next prediction."""
        index = self.predict_index
        self.predict_index = index + 1
        seed = None
        if self.seed is not None:
            if self._prefix is None:
                self._prefix = seed_prefix(self.seed)
            seed = seed_after(self._prefix, index)
        return {
            "episode_id": self.episode_id,
            "episode_seed": self.seed,
            "predict_index": index,
            "predict_seed": seed,
            "state": self._state,
        }


class GivenContext(EpisodeContext):
    """Stands for the episode where a prediction is made by hand, with a context in hand."""

    __slots__ = ("_given",)

    def __init__(self, given: PredictContext) -> None:
        super().__init__(given["episode_id"], given["episode_seed"])
        self._given = given

    def following(self) -> PredictContext:
        """Return the context that was given."""
        return self._given
