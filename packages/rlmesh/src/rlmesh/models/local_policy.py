"""A model in this process as a run drives it: every action predicted when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from rlcore import ConfigurationError

from rlmesh.backends.content import Content
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.codec import NUMPY
from rlmesh.codec.batch import BatchCodec, compile_batch_codec
from rlmesh.models.answers import Answers, summary
from rlmesh.models.batching import stack, unstack
from rlmesh.models.conversion import converter
from rlmesh.models.live_episodes import live_episodes
from rlmesh.models.model import Model
from rlmesh.models.policy import PolicyEpisode
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.box import Box
from rlmesh.spaces.discrete import Discrete
from rlmesh.spaces.multi import MultiBinary, MultiDiscrete

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: observations and actions of whichever space and framework.

ENV_TAGS_KEY: Final = "rlmesh.adapters.v1.env_tags"


class LocalPolicy:
    """Calls the model for every action.

    Args:
        model: it stays the caller's, unless `owns_model`.
        owns_model: `close` closes the model too.
    """

    def __init__(self, model: Model, *, owns_model: bool = False) -> None:
        self.model = model
        self.name = model.name
        self.digest = model.digest
        self.framework: FrameworkName = model.backend
        self.corners = model.corners
        self._owns_model = owns_model
        self._native = model.backend == "native"
        self._convert = converter(model.backend, model.device)
        self._single = self.corners.predict
        self._answers = Answers(self.name, None)
        self._fits: Callable[[Any], bool] = self._answers.fits
        self._lanes: BatchCodec | None = None
        self._listed: Callable[[Any], Any] | None = None
        self._open: set[PolicyEpisode] = set()

    @property
    def content(self) -> Content:
        """What the model is made of now."""
        return self.model.content()

    @property
    def fuses(self) -> bool:
        """Whether observations of several environments may share one call: see `predict_each`."""
        return self.corners.predict_batch is not None and self.model.allow_fusion

    def bind(
        self, contract: EnvContract | None, *, num_envs: int, action_space: object = None
    ) -> None:
        """Learn what can be observed and done.

        Raises:
            ConfigurationError: the environment is tagged for adapters, and the model has not said
                whether it wants one.
        """
        if (
            contract is not None
            and self.model.spec is None
            and ENV_TAGS_KEY in (contract.metadata or {})
        ):
            raise ConfigurationError(
                f"{contract.id!r} is tagged for adapters, and {self.name!r} has no spec",
                hint="Give the model spec=rlmesh.NO_ADAPTER to use observations as they are.",
            )
        self.corners = self.model.corners_for(contract)
        self._single = self.corners.predict
        self._answers = Answers(self.name, contract)
        self._fits = self._answers.fits
        self.bind_lanes(contract, num_envs=num_envs)

    def bind_lanes(self, contract: EnvContract | None, *, num_envs: int) -> None:
        """Learn how observations of several lanes come apart, and nothing else."""
        if contract is not None and num_envs > 1:
            space = contract.observation_space
            self._lanes = compile_batch_codec(space, backend=NUMPY)
            self._listed = _lister(space)

    def begin(self, episode_id: str, seed: int | None) -> PolicyEpisode:
        """Open an episode.

        Raises:
            EpisodeCapacityError: too many are open in this process.
        """
        live_episodes().open()
        episode = PolicyEpisode(episode_id, seed)
        self._open.add(episode)
        return episode

    def predict(self, observation: object, episode: PolicyEpisode) -> object:
        """Return the model's action."""
        try:
            action = self._single(self._convert(observation), episode)
        except Exception as error:
            self._note(error, observation)
            raise
        if not self._fits(action):
            self._answers.check(action, observation, episode, episode.predict_index)
        return action

    def predict_batch(self, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        """Return the model's actions, by one call where it predicts batches.

        A model that does not is asked once for each lane, with that lane's own context: what it
        keeps for an episode stays apart.
        """
        if self.corners.predict_batch is None:
            rows = self._split(observation, len(episodes))
            return [self.predict(row, each) for row, each in zip(rows, episodes, strict=True)]
        return self._whole(self.as_batch(observation, len(episodes)), observation, episodes)

    def predict_each(
        self, observations: Sequence[object], episodes: Sequence[PolicyEpisode]
    ) -> list[object]:
        """Return the actions for single observations, by one call where the model can.

        Raises:
            InvalidValueError: the observations are not all of one structure and shape.
        """
        if self.corners.predict_batch is None:
            return [self.predict(*pair) for pair in zip(observations, episodes, strict=True)]
        given = [self._convert(observation) for observation in observations]
        batch = stack(given, native=self._native, leaf=self.model.leaf)
        actions = self._whole(batch, observations, episodes)
        return self.split_actions(actions, len(episodes))

    def end(self, episode: PolicyEpisode) -> None:
        """Close the episode; the model is told the first time."""
        if episode not in self._open:
            return
        self._forget(episode)
        self.model.end_episode(episode.episode_id)

    def close(self) -> None:
        """Forget what is open, and close the model where the policy made it."""
        for episode in list(self._open):
            self._forget(episode)
        if self._owns_model:
            self._owns_model = False
            self.model.close()

    @staticmethod
    def split_actions(actions: object, lanes: int) -> list[Any]:
        """Return each lane's action of a batched one."""
        return unstack(actions, lanes)

    def _whole(self, batch: Any, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        assert self.corners.predict_batch is not None  # the callers have looked
        try:
            actions = self.corners.predict_batch(batch, episodes)
        except Exception as error:
            self._note(error, observation)
            raise
        self._answers.check_batch(actions, observation, episodes, episodes[0].predict_index)
        return cast("object", actions)

    def as_batch(self, observation: object, lanes: int) -> Any:
        """Return a batched observation as models take it."""
        if self._native:
            return [self._convert(row) for row in self._split_values(observation, lanes)]
        converted = self._convert(observation)
        return converted if self._listed is None else self._listed(converted)

    def split_observation(self, observation: object, lanes: int) -> list[Any]:
        """Return each lane's observation, in the values that it came in."""
        return self._split_values(observation, lanes)

    def _split(self, observation: object, lanes: int) -> list[Any]:
        """Return each lane's observation, in the model's values."""
        if self._native:
            return [self._convert(row) for row in self._split_values(observation, lanes)]
        return self._split_values(self._convert(observation), lanes)

    def _split_values(self, observation: object, lanes: int) -> list[Any]:
        if self._lanes is None:
            return unstack(observation, lanes)
        return self._lanes.split(observation, lanes)

    def _forget(self, episode: PolicyEpisode) -> None:
        self._open.remove(episode)
        live_episodes().end()

    def _note(self, error: Exception, observation: object) -> None:
        error.add_note(f"{self.name} was predicting for {summary(observation)}")


def _lister(space: Space) -> Callable[[Any], Any] | None:
    """Return what makes lists of the tuples that batches of texts and the like are."""
    match space:
        case Dict():
            children = {key: _lister(child) for key, child in space.items()}
            if not any(children.values()):
                return None
            return lambda value: {
                key: _applied(children[key], item)
                for key, item in cast("Mapping[str, Any]", value).items()
            }
        case Tuple():
            items = [_lister(child) for child in space]
            if not any(items):
                return None
            return lambda value: tuple(
                _applied(make, item) for make, item in zip(items, value, strict=True)
            )
        case Box() | Discrete() | MultiBinary() | MultiDiscrete():
            return None
        case _:
            return list


def _applied(make: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if make is None else make(value)
