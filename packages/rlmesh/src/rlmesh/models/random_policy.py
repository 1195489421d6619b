"""The baseline that samples the action space, reproducibly for every episode seed."""

from typing import Any

from rlcore import ConfigurationError, Error

from rlmesh.models.context import EpisodeContext
from rlmesh.models.conversion import to_numpy
from rlmesh.models.seeds import predict_seed
from rlmesh.spaces import Space, from_gymnasium_space


class RandomPolicy:
    """Samples actions of one space; two episodes with one seed get the same actions.

    Raises:
        ConfigurationError: the space is of a kind that cannot be sampled here.
    """

    name = "RANDOM_SAMPLE"

    def __init__(self, action_space: object) -> None:
        self._space = _own(action_space)
        self._episode: EpisodeContext | None = None

    def predict(self, observation: object, episode: EpisodeContext) -> object:
        """Return a sample; the first of an episode restarts the sequence from its seed."""
        if episode is not self._episode:
            self._episode = episode
            if episode.seed is not None:
                self._space.seed(predict_seed(episode.seed, 0))
        return to_numpy(self._space.sample())


def _own(action_space: Any) -> Space:  # Any: gymnasium's or ours
    """A space of our own, so that seeding it leaves the environment's generator alone."""
    if isinstance(action_space, Space):
        return action_space.spec
    try:
        return from_gymnasium_space(action_space)
    except (Error, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"RANDOM_SAMPLE cannot sample {action_space!r}: {error}"
        ) from error
