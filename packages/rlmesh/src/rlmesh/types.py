"""Names for annotations; everything here is structural, there is nothing to subclass."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rlcore import Endpoint

from rlmesh.models.context import PredictContext
from rlmesh.models.sentinels import NoAdapter

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

PrimitiveValue = bool | int | float | str | bytes | None
"""A value without parts."""

Value = Any  # a tree of primitives, tensors, lists, tuples and dicts; recursive, so left open
"""An observation, an action or a rendered frame."""

Metadata = Mapping[str, object]
"""What an environment says about itself, and reset options."""

InfoDict = dict[str, Any]  # Any: environments put anything there
"""What comes with an observation."""

BatchPredictContext = list[PredictContext]
"""The contexts of several predictions at once, one for each lane in order."""

SpecArg = NoAdapter | None
"""What `Model(spec=...)` takes."""

ViewArg = bool | str | None
"""What the published `view=` takes, for annotations: this build has no viewer."""


class SpaceLike(Protocol):
    """A space as far as sampling and checking go."""

    def sample(self) -> Any:  # Any: a value of the space
        """Return a value of the space."""
        ...

    def contains(self, x: Any, /) -> bool:  # Any: any candidate
        """Whether a value is in the space."""
        ...


class SupportsResetStep(Protocol):
    """What can be stepped."""

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:  # Any: observation, info
        """Start an episode."""
        ...

    def step(self, action: Any, /) -> tuple[Any, ...]:  # Any: an action; the five parts
        """Take a step."""
        ...


class EnvLike(SupportsResetStep, Protocol):
    """A Gymnasium-style environment, local or remote."""

    @property
    def observation_space(self) -> Any:  # Any: gymnasium's or ours
        """What it observes."""
        ...

    @property
    def action_space(self) -> Any:  # Any: gymnasium's or ours
        """What it can be stepped with."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class VectorEnvLike(Protocol):
    """Several environments that are stepped together, as Gymnasium's vector environments are.

    Observations, rewards and flags have the lanes along their first dimension.
    """

    @property
    def num_envs(self) -> int:
        """How many there are."""
        ...

    @property
    def single_observation_space(self) -> Any:  # Any: gymnasium's or ours
        """What one of them observes."""
        ...

    @property
    def single_action_space(self) -> Any:  # Any: gymnasium's or ours
        """What one of them can be stepped with."""
        ...

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:  # Any: observations, infos
        """Start an episode in each."""
        ...

    def step(self, actions: Any, /) -> tuple[Any, ...]:  # Any: actions; the five parts
        """Take a step in each."""
        ...

    def close(self) -> None:
        """Release what they hold."""
        ...


class HasEnvContract(SupportsResetStep, Protocol):
    """A handle to a served environment."""

    @property
    def env_contract(self) -> "EnvContract":
        """Its spaces and metadata as a value."""
        ...


class SupportsMake(Protocol):
    """A factory of environments."""

    def make(self) -> Any:  # Any: an environment
        """Return a new environment."""
        ...


class HasAddress(Protocol):
    """What can be dialled, such as an `EnvServer`."""

    @property
    def address(self) -> str:
        """Where it listens."""
        ...


LocalEnvTarget = SupportsResetStep | SupportsMake
"""An environment that runs in this process."""

EnvTarget = str | Endpoint | HasEnvContract | LocalEnvTarget | HasAddress
"""Everything that `rlmesh.run` takes as an environment."""

__all__ = [
    "BatchPredictContext",
    "EnvLike",
    "EnvTarget",
    "HasAddress",
    "HasEnvContract",
    "InfoDict",
    "LocalEnvTarget",
    "Metadata",
    "PredictContext",
    "PrimitiveValue",
    "SpaceLike",
    "SpecArg",
    "SupportsMake",
    "SupportsResetStep",
    "Value",
    "VectorEnvLike",
    "ViewArg",
]
