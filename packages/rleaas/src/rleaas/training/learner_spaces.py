"""The spaces a policy network can use, and how values cross between them and the environment's."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rlcore import ConfigurationError

# Values are whatever their space says: arrays, ints, dicts of them.
Value = Any


def learner_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    """The same space as networks want it: counted from zero, and never without a dimension."""
    if isinstance(space, spaces.Box) and not space.shape:
        bounds = space.low.reshape(1), space.high.reshape(1)
        return spaces.Box(*bounds, dtype=cast("Any", space.dtype))
    if isinstance(space, spaces.Discrete):
        return spaces.Discrete(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return spaces.MultiDiscrete(space.nvec, dtype=cast("Any", space.dtype))
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: learner_space(part) for key, part in space.spaces.items()})
    return space


def to_learner(space: gymnasium.Space[Any], value: Value) -> Value:
    """An observation of the environment's `space`, in the learner's."""
    if isinstance(space, spaces.Box):
        return value if space.shape else np.reshape(value, 1)
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        return value - space.start
    if isinstance(space, spaces.Dict):
        observed = cast("Mapping[str, Value]", value)
        return {key: to_learner(part, observed[key]) for key, part in space.spaces.items()}
    return value


def to_environment(space: gymnasium.Space[Any], action: Value) -> Value:
    """A network's action as the environment's `space` writes it."""
    if isinstance(space, spaces.Discrete):
        return space.dtype.type(action + space.start)
    if isinstance(space, spaces.MultiDiscrete):
        return (action + space.start).astype(space.dtype)
    if isinstance(space, spaces.Text | spaces.Dict):
        return action
    return np.asarray(action, dtype=space.dtype).reshape(space.shape or ())


def to_environments(
    space: gymnasium.Space[Any], actions: Sequence[Value] | NDArray[Any]
) -> list[Value]:
    """The actions of several sessions as `to_environment` writes each."""
    if isinstance(space, spaces.Discrete):
        return list((np.asarray(actions) + space.start).astype(space.dtype))
    return [to_environment(space, action) for action in actions]


def policy_name(observation_space: gymnasium.Space[Any], asked: str | None) -> str:
    """The kind of network for these observations; what the user asked for must fit.

    Raises:
        ConfigurationError: `asked` cannot take these observations.
    """
    is_dict = isinstance(observation_space, spaces.Dict)
    natural = "MultiInputPolicy" if is_dict else "MlpPolicy"
    if not is_dict and _is_image(observation_space):
        natural = "CnnPolicy"
    if asked is None:
        return natural
    if (asked == "MultiInputPolicy") != is_dict or (asked == "CnnPolicy" and natural != asked):
        raise ConfigurationError(
            f"policy {asked!r} does not fit the observation space {observation_space}",
            hint=f"Leave policy out, or use {natural!r}",
        )
    return asked


def check_learnable(
    observation_space: gymnasium.Space[Any], action_space: gymnasium.Space[Any], algorithm: str
) -> None:
    """Refuse spaces that the algorithm has no network for.

    Raises:
        ConfigurationError: naming the space.
    """
    actions = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    if not isinstance(action_space, actions) or not _is_real_action(action_space):
        raise ConfigurationError(
            f"{algorithm} cannot learn actions of {action_space}",
            code="space_not_learnable",
            hint="It takes Discrete, MultiDiscrete, flat MultiBinary and bounded float Box actions",
        )
    parts = _parts(observation_space)
    bad = next((part for part in parts if not _is_observable(part)), None)
    if bad is not None:
        raise ConfigurationError(
            f"{algorithm} cannot learn from observations of {bad}",
            code="space_not_learnable",
            hint="It takes Box, Discrete, MultiDiscrete, MultiBinary and a flat Dict of them",
        )


def _parts(space: gymnasium.Space[Any]) -> list[gymnasium.Space[Any]]:
    if isinstance(space, spaces.Dict):
        return list(space.spaces.values())
    return [space]


def _is_observable(space: gymnasium.Space[Any]) -> bool:
    kinds = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    return isinstance(space, kinds) and 0 not in (space.shape or ())


def _is_real_action(space: gymnasium.Space[Any]) -> bool:
    if isinstance(space, spaces.Box):
        floating = np.issubdtype(space.dtype, np.floating)
        return bool(floating and np.isfinite(space.low).all() and np.isfinite(space.high).all())
    return not isinstance(space, spaces.MultiBinary) or len(space.shape) == 1


def _is_image(space: gymnasium.Space[Any]) -> bool:
    from stable_baselines3.common.preprocessing import is_image_space

    # The convolutions shrink anything below 36 pixels to nothing.
    return is_image_space(space) and min(sorted(space.shape or (0,))[1:]) >= 36
