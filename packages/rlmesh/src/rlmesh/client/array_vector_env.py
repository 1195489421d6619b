"""Served lanes as a Gymnasium vector environment, whichever library its arrays are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from rlcore import UnsupportedError

from rlmesh.backends.frameworks import FrameworkName, backend_of
from rlmesh.client.array_env import AnotherOne
from rlmesh.client.gymnasium_vector_base import (
    BaseVectorEnv,
    autoreset_metadata,
    vector_spec_of,
)
from rlmesh.client.options import ConnectOptions
from rlmesh.client.vector_handle import VectorHandle
from rlmesh.client.vector_link import Info, Options, Seeds, one_seed
from rlmesh.protocol.handshake import PRIVATE_SESSIONS

if TYPE_CHECKING:
    import numpy as np
    from gymnasium.spaces import Space
    from numpy.typing import NDArray

    from rlmesh.client.array_env import ArrayEnv


class ArrayVectorEnv(VectorHandle, BaseVectorEnv):
    """What the clients of served lanes have in common; each framework has its own."""

    framework: ClassVar[FrameworkName]

    def __init__(self, address: object, options: ConnectOptions, *, device: object = None) -> None:
        super().__init__(address, options, backend_of(self.framework, device))
        contract = self._link.contract
        self.render_mode = contract.render_mode
        self.metadata = autoreset_metadata(contract)
        # gymnasium's spaces, which wrappers ask for and which speak NumPy.
        seen, taken = contract.observation_space, contract.action_space
        one, all_lanes, backend = self._as_single_space, self._as_batched_space, self._backend
        self.single_observation_space: Space[Any] = one(seen, backend)
        self.single_action_space: Space[Any] = one(taken, backend)
        self.observation_space: Space[Any] = all_lanes(seen, self.num_envs, backend)
        self.action_space: Space[Any] = all_lanes(taken, self.num_envs, backend)
        # A spec is a recipe for another one, which a server with a single set has not got.
        welcome = self._link.wires.dialled.welcome
        if welcome.offers(PRIVATE_SESSIONS):
            another = AnotherVector(type(self), address, options, device)
            self.spec = vector_spec_of(contract.id, another, welcome.reward_threshold)

    def reset(
        self, *, seed: Seeds = None, options: Options | None = None
    ) -> tuple[Any, Info]:  # Any: the batched tree
        """Start episodes and return their first observations, batched, and the infos.

        Args:
            seed: one for each lane, or one number `s`, which is `s + i` for lane `i`.
            options: for the environments; `reset_mask`, a boolean for each lane, resets these only.

        Raises:
            ConfigurationError: seeds or mask are not one for each lane.
            UnsupportedError: the server cannot reset some lanes only.
            EnvironmentException: the environment raised; its traceback comes along.
            SessionBusy: another client is stepping the environment.
            SessionClosed: this client was closed.
            CallTimeout: the environment did not answer in time.
        """
        number = one_seed(seed)
        if number is not None and number >= 0:
            self._seed_here(number)  # a negative one is for the environment to refuse
        return self._lanes.reset(seed, options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:  # Any: batched values
        """Step all lanes: observations, rewards, terminated, truncated, infos.

        Rewards (float64) and flags (bool) have an element for each lane. The infos are laid out as
        gymnasium's vector environments have them: `key` has a place for each lane and `_key` says
        which lanes gave it; in same-step mode `final_obs` and `final_info` are among them.

        Args:
            actions: a batched tree, or one action for each lane in a list, tuple or array.

        Raises:
            InvalidActionError: there is not an action of the space for each lane; nothing was
                stepped.
            EnvironmentException: the environment raised, or there are no running episodes.
            SessionClosed: this client was closed, or the server has gone.
            CallTimeout: the environment did not answer in time.
        """
        observations, rewards, terminated, truncated, info = self._lanes.step(actions)
        own = self._backend.owned
        rewards = self._own_rewards(rewards)
        return observations, rewards, own(terminated), own(truncated), info

    def render(self, *, env_index: int | None = None) -> Any:  # Any: an array, or a tuple of them
        """Return each lane's frame, or that of one lane; None stands for a lane without a frame.

        Raises:
            EnvironmentException: the environment raised.
            InvalidActionError: there is no such lane.
        """
        if env_index is not None:
            return self._frame(env_index)
        return self._frames(range(self.num_envs))

    def close(self, **kwargs: object) -> None:
        """Leave; the server goes on. A second call does nothing.

        Args:
            **kwargs: what gymnasium's own vector environments take; there is nothing for it here.
        """
        self.closed = True
        super().close(**kwargs)

    def _own_rewards(self, rewards: NDArray[np.float64]) -> Any:  # Any: the framework's array
        return self._backend.owned(rewards)


for _method in (ArrayVectorEnv.reset, ArrayVectorEnv.step, ArrayVectorEnv.render):
    # Python names it where an argument is wrong; callers know the classes by this name only.
    _method.__qualname__ = f"RemoteVectorEnv.{_method.__name__}"


class AnotherVector:
    """Makes one more client of the same address, for `gymnasium.make_vec(spec, ...)`."""

    def __init__(
        self,
        kind: Callable[..., ArrayVectorEnv],
        address: object,
        options: ConnectOptions,
        device: object,
    ) -> None:
        self._make = AnotherOne(cast("Callable[..., ArrayEnv]", kind), address, options, device)

    def __call__(self, *, num_envs: int, render_mode: str | None = None) -> ArrayVectorEnv:
        """Return one more client.

        Raises:
            UnsupportedError: the server has another number of lanes, or renders in another way.
        """
        env = cast("ArrayVectorEnv", cast("object", self._make(render_mode=render_mode)))
        if env.num_envs != num_envs:
            env.close()
            raise UnsupportedError(
                f"the server has {env.num_envs} lanes, not {num_envs}",
                hint=f"Ask for num_envs={env.num_envs}.",
            )
        return env

    def __deepcopy__(self, _: object) -> Self:
        # gymnasium copies specs, and a secret refuses to be copied.
        return self

    def __repr__(self) -> str:
        return f"AnotherVector({self._make!r})"
