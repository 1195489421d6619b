"""Between a model and an environment that speak of the same things in other forms.

What adapts is not here: a model's `spec` knows, given an environment's contract. This room says
what a spec has to offer, and drives a model through it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from rlcore import ConfigurationError

from rlmesh.backends.content import Content
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.answers import Answers
from rlmesh.models.local_policy import LocalPolicy
from rlmesh.models.policy import PolicyEpisode
from rlmesh.models.sentinels import Sentinel

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: observations and actions in whatever form.


class Adapter(Protocol):
    """What stands between one episode of an environment and a model."""

    def observation(self, observation: Any, /) -> Any:
        """Return the environment's observation as the model wants it; called for every step."""
        ...

    def action(self, action: Any, /) -> Any:
        """Return the model's action as the environment wants it."""
        ...


class AdapterSpec(Protocol):
    """What a model says of its observations and actions, so that they can be adapted."""

    def adapter_for(
        self, contract: EnvContract, *, instruction: str | None, trust_entrypoints: bool
    ) -> Callable[[], Adapter]:
        """Return what makes the adapter of each episode of an environment.

        Raises:
            Error: the environment has not what the model needs.
        """
        ...


def is_adapter_spec(spec: object) -> TypeGuard[AdapterSpec]:
    """Tell whether something can be a model's spec."""
    return callable(getattr(spec, "adapter_for", None)) and not isinstance(spec, Sentinel)


class AdaptedPolicy:
    """A policy with an adapter for each episode; the model's values are in its own form."""

    def __init__(
        self,
        inner: LocalPolicy,
        spec: AdapterSpec,
        *,
        instruction: str | None,
        trust_entrypoints: bool,
    ) -> None:
        self._inner = inner
        self.name, self.digest = inner.name, inner.digest
        self.framework: FrameworkName = inner.framework
        self._spec = spec
        self._instruction = instruction
        self._trust_entrypoints = trust_entrypoints
        self._make: Callable[[], Adapter] | None = None
        self._answers = Answers(self.name, None)
        self._adapters: dict[PolicyEpisode, Adapter] = {}

    @property
    def content(self) -> Content:
        """What the model is made of now."""
        return self._inner.content

    def bind(
        self, contract: EnvContract | None, *, num_envs: int, action_space: object = None
    ) -> None:
        """Have the spec find what the environment calls what the model needs.

        Raises:
            ConfigurationError: the environment has no contract to find it in.
            Error: it is not there.
        """
        if contract is None:
            raise ConfigurationError(
                f"{self.name!r} has a spec, and the environment has no contract to adapt it to",
                hint="Give the model spec=rlmesh.NO_ADAPTER to use observations as they are.",
            )
        self._make = self._spec.adapter_for(
            contract, instruction=self._instruction, trust_entrypoints=self._trust_entrypoints
        )
        self._inner.bind_lanes(contract, num_envs=num_envs)
        self._answers = Answers(self.name, contract)

    def begin(self, episode_id: str, seed: int | None) -> PolicyEpisode:
        """Open an episode with an adapter of its own."""
        assert self._make is not None  # a run binds before it begins
        episode = self._inner.begin(episode_id, seed)
        self._adapters[episode] = self._make()
        return episode

    def predict(self, observation: object, episode: PolicyEpisode) -> object:
        """Return the adapted action for an observation."""
        return self._predict([observation], [episode])[0]

    def predict_batch(self, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        """Return the lanes' adapted actions as a list."""
        return self._predict(self._inner.split_observation(observation, len(episodes)), episodes)

    def end(self, episode: PolicyEpisode) -> None:
        """Close the episode and forget its adapter."""
        self._adapters.pop(episode, None)
        self._inner.end(episode)

    def close(self) -> None:
        """Close the policy behind it."""
        self._adapters.clear()
        self._inner.close()

    def _predict(
        self, observations: Sequence[object], episodes: Sequence[PolicyEpisode]
    ) -> list[object]:
        adapters = [self._adapters[episode] for episode in episodes]
        given = [
            adapter.observation(observation)
            for adapter, observation in zip(adapters, observations, strict=True)
        ]
        actions = self._inner.predict_each(given, episodes)
        adapted: list[object] = []
        for place, (adapter, episode) in enumerate(zip(adapters, episodes, strict=True)):
            action = adapter.action(actions[place])
            step = episode.steps or episode.predict_index
            self._answers.check(action, observations[place], episode, step)
            adapted.append(action)
        return adapted
