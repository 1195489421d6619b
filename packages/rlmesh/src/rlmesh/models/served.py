"""A model as its server calls it: whole chunks, rows with their episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlcore import InvalidActionError, UnsupportedError

from rlmesh.backends.content import Content
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.adapting import is_adapter_spec
from rlmesh.models.batching import unstack
from rlmesh.models.chunks import frames_of
from rlmesh.models.context import EpisodeContext
from rlmesh.models.conversion import converter
from rlmesh.models.horizon import refuse_instruction
from rlmesh.models.live_episodes import live_episodes
from rlmesh.models.local_policy import LocalPolicy

if TYPE_CHECKING:
    from rlmesh.models.model import Model
    from rlmesh.specs import EnvContract

# Any, in this room: observations and actions of whichever space and framework.


class Served:
    """A `Model` as a server needs it; see `rlmesh.server.served_model`."""

    def __init__(self, model: Model) -> None:
        if is_adapter_spec(model.spec):
            raise UnsupportedError(
                f"{model.name!r} has a spec, and served models are not adapted",
                hint="Serve it with spec=rlmesh.NO_ADAPTER, or run it where it is.",
            )
        self._model = model
        self.name = model.name
        self.digest = model.digest
        self.content: Content | None = model.content()
        self.framework: FrameworkName = model.backend
        self.corners: tuple[str, ...] = model.corners.given
        self.native_chunk = model.native_chunk
        self.takes_batches = model.corners.predict_batch is not None
        self.allows_fusion = model.allow_fusion

    def resolve(self, contract: EnvContract, *, horizon: int, instruction: str | None) -> Bound:
        """Return the model bound to a kind of environment.

        Raises:
            ConfigurationError: the model does not fit it.
        """
        refuse_instruction(instruction, self.name)
        return Bound(self._model, contract, horizon)

    def close(self) -> None:
        """Close the model."""
        self._model.close()


class Bound:
    """A model for one kind of environment, with so many actions wanted of each chunk."""

    def __init__(self, model: Model, contract: EnvContract, horizon: int) -> None:
        # What may be asked of a model, and how its batches are made, is as in a run.
        self._policy = LocalPolicy(model)
        self._policy.bind(contract, num_envs=2)
        self._model = model
        self._corners = self._policy.corners
        self._convert = converter(model.backend, model.device)
        # A model without chunks answers one action at a time, whatever is asked for.
        self._horizon = horizon

    def begin(self, episode_id: str, seed: int | None) -> EpisodeContext:
        """Return the episode at its first prediction.

        Raises:
            EpisodeCapacityError: too many are open in this process.
        """
        live_episodes().open()
        return EpisodeContext(episode_id, seed)

    def predict(self, observation: Any, episode: EpisodeContext) -> list[Any]:
        """Return the actions for one observation."""
        observation = self._convert(observation)
        chunk = self._corners.predict_chunk
        if self._horizon == 1 or chunk is None:
            return [self._corners.predict(observation, episode)]
        return self._frames(chunk(observation, self._horizon, episode))

    def predict_batch(self, observations: Any, episodes: Sequence[EpisodeContext]) -> list[Any]:
        """Return batches of actions over time."""
        rows = len(episodes)
        observations = self._policy.as_batch(observations, rows)
        whole, batch = self._corners.predict_chunk_batch, self._corners.predict_batch
        if self._horizon > 1 and whole is not None:
            chunks = unstack(whole(observations, self._horizon, episodes), rows)
            lanes = [self._frames(chunk) for chunk in chunks]
            return [[lane[at] for lane in lanes] for at in range(min(map(len, lanes)))]
        assert batch is not None  # the server asks models for batches that take them
        return [batch(observations, episodes)]

    def mark(self, episodes: Sequence[EpisodeContext]) -> list[int]:
        """Return how many predictions each episode has had."""
        return [episode.predict_index for episode in episodes]

    def rewind(self, episodes: Sequence[EpisodeContext], mark: Sequence[int]) -> None:
        """Forget predictions: their contexts are made again."""
        for episode, index in zip(episodes, mark, strict=True):
            episode.predict_index = index

    def end(self, episode_id: str, episode: EpisodeContext | None) -> None:
        """Tell the model that an episode is over."""
        if episode is not None:
            live_episodes().end()
        self._model.end_episode(episode_id)

    def _frames(self, chunk: object) -> list[Any]:
        frames, native = frames_of(chunk), self._model.native_chunk
        if native is not None and len(frames) != native:
            raise InvalidActionError(
                f"the chunk holds {len(frames)} actions, and native_chunk says {native}"
            )
        return frames[: self._horizon]
