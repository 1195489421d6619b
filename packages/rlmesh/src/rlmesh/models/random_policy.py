"""The baseline that samples the action space, reproducibly for every episode seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rlcore import ConfigurationError, Error

from rlmesh.backends.content import Content
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.policy import PolicyEpisode
from rlmesh.models.seeds import predict_seed
from rlmesh.spaces import Space, from_gymnasium_space
from rlmesh.values import NUMPY

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


class RandomEpisode(PolicyEpisode):
    """An episode with the generator of its samples."""

    __slots__ = ("generator",)

    def __init__(self, episode_id: str, seed: int | None) -> None:
        super().__init__(episode_id, seed)
        start = None if seed is None else predict_seed(seed, 0)
        self.generator = np.random.default_rng(start)


class RandomPolicy:
    """Samples actions of one space; two episodes with one seed get the same actions."""

    name = "RANDOM_SAMPLE"
    digest: str | None = None
    framework: FrameworkName = "numpy"
    content: Content | None = Content("RANDOM_SAMPLE")

    def __init__(self) -> None:
        self._space: Space | None = None

    def bind(
        self, contract: EnvContract | None, *, num_envs: int, action_space: object = None
    ) -> None:
        """Learn what to sample.

        Raises:
            ConfigurationError: the space is of a kind that cannot be sampled here, or unknown.
        """
        self._space = _own(action_space) if contract is None else contract.action_space

    def begin(self, episode_id: str, seed: int | None) -> RandomEpisode:
        """Open an episode, whose samples follow from its seed."""
        return RandomEpisode(episode_id, seed)

    def predict(self, observation: object, episode: PolicyEpisode) -> object:
        """Return a sample.

        Raises:
            ConfigurationError: no environment was bound, or the episode is another policy's.
        """
        if self._space is None or not isinstance(episode, RandomEpisode):
            raise ConfigurationError(
                "RANDOM_SAMPLE has no space to sample", hint="bind() it, and begin() an episode"
            )
        episode.predict_index += 1
        sample: object = self._space.draw(episode.generator, NUMPY)
        return sample

    def predict_batch(self, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        """Return a list with a sample of each episode."""
        return [self.predict(None, episode) for episode in episodes]

    def end(self, episode: PolicyEpisode) -> None:
        """Do nothing: there is nobody to tell."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _own(action_space: Any) -> Space:  # Any: gymnasium's or ours
    if isinstance(action_space, Space):
        return action_space
    try:
        return from_gymnasium_space(action_space)
    except (Error, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"RANDOM_SAMPLE cannot sample {action_space!r}: {error}"
        ) from error
