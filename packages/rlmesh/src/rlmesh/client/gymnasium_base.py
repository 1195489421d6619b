"""What a NumPy client is beneath: a `gymnasium.Env` where gymnasium is installed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from rlmesh.spaces import Space, to_gymnasium_space
from rlmesh.values import Backend

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.envs.registration import EnvCreator, EnvSpec

    GymnasiumEnv = Env[Any, Any]  # Any: values are as the served spaces say
    installed = True
else:
    try:
        from gymnasium import Env as GymnasiumEnv

        installed = True
    except ModuleNotFoundError:
        installed = False

        class GymnasiumEnv:
            """Stands where gymnasium's class would."""

            spec = None


# gymnasium's own rule for the names of environments.
_NAME = re.compile(r"(?:[\w:-]+/)?[\w:.-]+")


class BaseEnv(GymnasiumEnv):
    """What depends on whether gymnasium is installed."""

    def _as_space(
        self, space: Space, backend: Backend
    ) -> Any:  # Any: gymnasium's space, or ours without it
        return to_gymnasium_space(space) if installed else space.using(backend)

    def _seed_here(self, seed: int | None) -> None:
        # Trainers and `check_env` expect a seeded reset to seed the handle's own generator too.
        if installed:
            super().reset(seed=seed)


def named_by_gymnasium(name: str) -> bool:
    """Return whether gymnasium takes this for the name of an environment."""
    return _NAME.fullmatch(name) is not None


def spec_of(
    name: str, make: Callable[..., object], reward_threshold: float | None = None
) -> EnvSpec | None:
    """Return a recipe for one more client, or None where gymnasium has no name for it."""
    if not installed or not named_by_gymnasium(name):
        return None
    from gymnasium.envs.registration import EnvSpec

    creator = cast("EnvCreator", make)
    return EnvSpec(
        id=name,
        entry_point=creator,
        reward_threshold=reward_threshold,
        disable_env_checker=True,
        order_enforce=False,
    )
