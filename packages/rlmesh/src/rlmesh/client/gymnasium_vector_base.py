"""What clients of many lanes are beneath: a `gymnasium.vector.VectorEnv` where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from rlmesh.client.gymnasium_base import named_by_gymnasium
from rlmesh.spaces import Space, to_gymnasium_space
from rlmesh.spaces.batched import batched
from rlmesh.specs import EnvContract
from rlmesh.values import Backend

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec, VectorEnvCreator
    from gymnasium.vector import VectorEnv

    GymnasiumVectorEnv = VectorEnv[Any, Any, Any]  # Any: values are as the served spaces say
    installed = True
else:
    try:
        from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

        installed = True
    except ModuleNotFoundError:
        installed = False

        class GymnasiumVectorEnv:
            """Stands where gymnasium's class would."""

            spec = None
            closed = False


class BaseVectorEnv(GymnasiumVectorEnv):
    """What depends on whether gymnasium is installed."""

    def _as_single_space(
        self, space: Space, backend: Backend
    ) -> Any:  # Any: gymnasium's space, or ours without it
        return to_gymnasium_space(space) if installed else space.using(backend)

    def _as_batched_space(self, space: Space, lanes: int, backend: Backend) -> Any:  # Any: as above
        if not installed:
            return batched(space, lanes).using(backend)
        from gymnasium.vector.utils import batch_space

        return batch_space(to_gymnasium_space(space), lanes)

    def _seed_here(self, seed: int) -> None:
        # Trainers expect a seeded reset to seed the handle's own generator too.
        if installed:
            super().reset(seed=seed)


def autoreset_metadata(contract: EnvContract) -> dict[str, Any]:  # Any: whatever the author wrote
    """Return a contract's metadata with its autoreset mode as gymnasium writes it.

    Only what the server renders can be had from it, whatever the environment could do.
    """
    word: Any = contract.autoreset_mode.gymnasium_name
    if installed:
        from gymnasium.vector import AutoresetMode as GymnasiumMode

        word = GymnasiumMode(word)
    modes = [contract.render_mode] if contract.render_mode else []
    return {**(contract.metadata or {}), "render_modes": modes, "autoreset_mode": word}


def vector_spec_of(
    name: str, make: Callable[..., object], reward_threshold: float | None = None
) -> EnvSpec | None:
    """Return a recipe for one more client, or None where gymnasium has no name for it."""
    if not installed or not named_by_gymnasium(name):
        return None
    from gymnasium.envs.registration import EnvSpec

    return EnvSpec(
        id=name,
        vector_entry_point=cast("VectorEnvCreator", make),
        reward_threshold=reward_threshold,
    )
