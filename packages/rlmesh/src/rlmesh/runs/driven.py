"""An environment as a run steps it: one, or many lanes at once."""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from rlcore import EnvironmentIdentity

from rlmesh.models.seeds import ENV_RESET_OPTIONS_KEY, TRIAL_INDEX_OPTION

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: observations and actions, which depend on the environment.
Step: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any]]
LaneSteps: TypeAlias = tuple[Any, Any, Any, Any, dict[str, Any]]


class Described(Protocol):
    """What an environment tells about itself, and how it is let go."""

    @property
    def metadata(self) -> Mapping[str, object] | None:
        """What its author wrote about it."""
        ...

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Which environment it is."""
        ...

    @property
    def env_contract(self) -> "EnvContract | None":
        """Its spaces and metadata as a value."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Driven(Described, Protocol):
    """One environment: a handle, or a local one behind the same face."""

    @property
    def action_space(self) -> Any:
        """What it can be stepped with: gymnasium's or ours."""
        ...

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        ...

    def step(self, action: Any, /) -> Step:
        """Take a step."""
        ...


class DrivenLanes(Described, Protocol):
    """Many lanes that are stepped at once, likewise."""

    @property
    def num_envs(self) -> int:
        """How many there are."""
        ...

    def reset(
        self, *, seed: Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in each lane, or in those of the option `reset_mask`."""
        ...

    def step(self, actions: Any, /) -> LaneSteps:
        """Take a step in each lane."""
        ...


def is_stepped(env: object) -> bool:
    """Whether something has `reset` and `step`, and is no class of such things."""
    return not isinstance(env, type) and _calls(env, "reset") and _calls(env, "step")


def has_lanes(env: object) -> bool:
    """Whether an environment steps many lanes at once, as gymnasium's vector environments do."""
    return hasattr(env, "single_observation_space")


def is_handle(env: object) -> bool:
    """Whether something is a client of a served environment.

    A wrapper that hands on what it does not know itself is none: its spaces may be others.
    """
    if inspect.getattr_static(env, "env_contract", None) is None:
        return False
    return getattr(env, "env_contract", None) is not None


def takes_trial(env: Described) -> bool:
    """Whether an environment declares the reset option `trial_index`."""
    declared = (env.metadata or {}).get(ENV_RESET_OPTIONS_KEY)
    if not isinstance(declared, list | tuple):
        return False
    return TRIAL_INDEX_OPTION in cast("list[object]", declared)


def _calls(env: object, name: str) -> bool:
    return callable(getattr(env, name, None))
