"""Served lanes, driven with plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from rlmesh.client.gymnasium_vector_base import autoreset_metadata
from rlmesh.client.options import ConnectOptions
from rlmesh.client.vector_handle import VectorHandle
from rlmesh.client.vector_link import Info, Options, Seeds
from rlmesh.codec import NATIVE
from rlmesh.spaces import Space
from rlmesh.spaces.batched import batched


class RemoteVectorEnv(VectorHandle):
    """A client of all lanes of a served environment; values are plain Python and `Tensor`.

    `rlmesh.numpy.RemoteVectorEnv` does the same with NumPy arrays, as a
    `gymnasium.vector.VectorEnv`.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`. A server of
            a single environment is driven as one lane.
        **options: how to connect; see `rlmesh.client.options.ConnectOptions`.

    Attributes:
        num_envs: how many lanes there are.

    Raises:
        AddressError: the address cannot be understood.
        ServerUnreachable: nothing answers there.
        AccessDenied: the server refused the token.
        IdentityError: what is served is not the expected environment.
        IncompatibleError: the server speaks another protocol.
        CallTimeout: the server does not answer.
    """

    def __init__(self, address: object = None, **options: Unpack[ConnectOptions]) -> None:
        super().__init__(address, options, NATIVE)
        contract = self._link.contract
        self._spaces = [
            batched(space, self.num_envs)
            for space in (contract.observation_space, contract.action_space)
        ]

    @property
    def metadata(self) -> Mapping[str, Any]:  # Any: whatever the author wrote
        """The environment's metadata; `autoreset_mode` is gymnasium's where that is installed."""
        return autoreset_metadata(self._link.contract)

    @property
    def render_mode(self) -> str | None:
        """How the environments render."""
        return self._link.contract.render_mode

    @property
    def single_observation_space(self) -> Space:
        """What a lane's observations are."""
        return self._link.contract.observation_space

    @property
    def single_action_space(self) -> Space:
        """What a lane's actions are."""
        return self._link.contract.action_space

    @property
    def observation_space(self) -> Space:
        """What the observations of all lanes together are."""
        return self._spaces[0]

    @property
    def action_space(self) -> Space:
        """What the actions of all lanes together are."""
        return self._spaces[1]

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
        observations, info = self._lanes.reset(seed, options)
        info.setdefault("episode_ids", list(self.episode_ids))
        return observations, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Info]:  # Any: batched values
        """Step all lanes: observations, rewards, terminated, truncated, infos.

        Rewards (float64) and flags (bool) are NumPy arrays with an element for each lane. The infos
        are laid out in columns: `key` has a place for each lane and `_key` says which lanes gave
        it.

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
        info.setdefault("episode_ids", list(self.episode_ids))
        info.setdefault("completed_episodes", self._lanes.completed)
        return observations, rewards, terminated, truncated, info

    def render(self, *, env_index: int | None = None) -> Any:  # Any: a tensor, or a tuple of them
        """Return each lane's frame, or that of one lane; None stands for a lane without a frame.

        Raises:
            EnvironmentException: the environment raised.
            InvalidActionError: there is no such lane.
        """
        if env_index is not None:
            return self._frame(env_index)
        return self._frames(range(self.num_envs))
