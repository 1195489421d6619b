"""One lane of gymnasium's vector environments, which reset their lanes by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
from rlcore import EnvironmentException

from rlmesh.authoring.keys import BRANCH_KEY, TAGS_KEY
from rlmesh.server.factories import begin, end

if TYPE_CHECKING:
    from rlmesh.authoring.bound import BoundFactory


class VectorLane(gymnasium.Wrapper[Any, Any, Any, Any]):  # Any: as the environment has them
    """Begins each episode with a seed that is known, where the first one was.

    The first seed is the base; an episode that begins without one gets `base + ordinal`, and says
    so in `info["seed"]`. Tags are about single environments, and are left out.
    """

    def __init__(self, env: Any, factory: BoundFactory) -> None:
        super().__init__(env)
        self._factory = factory
        self._closed = False
        self._base: int | None = None
        self._ordinal = 0
        self.metadata = {
            key: value for key, value in env.metadata.items() if key not in (TAGS_KEY, BRANCH_KEY)
        }

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        if seed is not None:
            self._base, self._ordinal = int(seed), 0
            return self.env.reset(seed=seed, options=options)
        if self._base is None:
            return self.env.reset(options=options)
        self._ordinal += 1
        rolled = self._base + self._ordinal
        observation, info = self.env.reset(seed=rolled, options=options)
        return observation, {**info, "seed": rolled}

    def close(self) -> None:
        """Close the environment, and the factory where this was its last user."""
        if self._closed:
            return
        self._closed = True
        try:
            super().close()
        finally:
            end(self._factory)


def vector_lane(factory: BoundFactory) -> VectorLane:
    """Return an environment as a lane; a process of its own prepares the factory for itself.

    Raises:
        EnvironmentException: what the factory makes is none of gymnasium's.
    """
    begin(factory)
    try:
        env = factory.make()
        if not isinstance(env, gymnasium.Env):
            raise EnvironmentException(
                f"{factory!r} made {env!r}, which is no gymnasium.Env",
                operation="make",
                hint="The modes sync and async need one; lanes take anything with reset and step.",
            )
        return VectorLane(env, factory)
    except BaseException:
        end(factory)
        raise
