"""A served environment, driven with plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex, Unpack

from rlmesh.client.arguments import checked_seed
from rlmesh.client.handle import Handle
from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.client.rendering import rendered
from rlmesh.codec import NATIVE
from rlmesh.spaces import Space
from rlmesh.values import Tensor

Info = dict[str, Any]  # Any: whatever the environment says


class RemoteEnv(Handle):
    """A client of one served environment; observations and actions are plain Python and `Tensor`.

    The constructor dials and shakes hands. `rlmesh.numpy.RemoteEnv` does the same with NumPy
    arrays, as a `gymnasium.Env`.

    Args:
        address: `tcp://HOST:PORT`, `HOST:PORT`, `unix:///PATH`, a name such as
            `rleaas://CartPole@3`, an `rlcore.Endpoint`, or anything with an `address`.
        **options: how to connect; see `ConnectOptions`.

    Raises:
        AddressError: the address cannot be understood.
        ServerUnreachable: nothing answers there.
        AccessDenied: the server refused the token.
        IdentityError: what is served is not the expected environment.
        IncompatibleError: the server speaks another protocol.
        UnsupportedError: the server does not offer the `lane` that is wanted.
        CallTimeout: the server does not answer.
    """

    def __init__(self, address: object = None, **options: Unpack[ConnectOptions]) -> None:
        self._hold(open_link(address, options, NATIVE))

    @property
    def episode_id(self) -> str:
        """The id of the current episode; empty before the first reset."""
        return self._link.episode_id

    @property
    def metadata(self) -> Mapping[str, Any]:  # Any: whatever the author wrote
        """The environment's metadata."""
        return self._link.contract.metadata or {}

    @property
    def render_mode(self) -> str | None:
        """How the environment renders."""
        return self._link.contract.render_mode

    @property
    def observation_space(self) -> Space:
        """What observations are."""
        return self._link.contract.observation_space

    @property
    def action_space(self) -> Space:
        """What actions are."""
        return self._link.contract.action_space

    def reset(
        self,
        *,
        seed: SupportsIndex | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Start a new episode and return its first observation and info.

        After a failure it opens a new session, and dials again if the connection was lost.

        Raises:
            EnvironmentException: the environment raised; its traceback comes along.
            SessionBusy: another client is stepping the environment.
            SessionClosed: this client was closed.
            CallTimeout: the environment did not answer in time.
        """
        observation, info = self._link.reset(checked_seed(seed), options)
        info.setdefault("episode_ids", [self._link.episode_id])
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:  # Any: the space's values
        """Take a step: observation, reward, terminated, truncated, info.

        Raises:
            InvalidActionError: the action has not the form of the action space, or is a number that
                a discrete space does not have; nothing was stepped. What exceeds the bounds of a
                Box or the limits of a Text is refused by servers that were told to be strict;
                others report it once in the info, as `rlmesh.conformance.warning`.
            EnvironmentException: the environment raised, or there is no running episode: also after
                a call that was interrupted, as by Ctrl-C.
            SessionClosed: this client was closed, or the server has gone.
            CallTimeout: the environment did not answer in time.
        """
        observation, reward, terminated, truncated, info = self._link.step(action)
        info.setdefault("episode_ids", [self._link.episode_id])
        return observation, reward, terminated, truncated, info

    def begin_step(self, action: Any) -> None:  # Any: the space's values
        """Send the action of the next `step` and return at once.

        The environment works while this process does something else, such as sending the actions
        of other sessions; `step`, given the same action, then waits for the answer:

        ```python
        for env, action in zip(envs, actions):
            env.begin_step(action)
        outcomes = [env.step(action) for env, action in zip(envs, actions)]
        ```

        There is one such step at a time. What goes wrong with it is raised by `step`, whose time
        limit counts from its own call. A `reset` waits for the step and drops its outcome; `close`
        does not wait.

        Raises:
            InvalidActionError: the action has not the form of the action space; nothing was sent.
            EnvironmentException: there is no running episode.
            ProtocolException: a step is under way already.
            SessionClosed: this client was closed.
        """
        self._link.begin_step(action)

    def render(self, *, env_index: int = 0) -> Any:  # Any: the backend's array
        """Return the current frame, (H, W, 3), (H, W, 4) or (H, W), or None when there is none.

        Of environments that draw texts it is a str, of those that keep frames (`rgb_array_list`) a
        list; servers of the published rlmesh give None instead.

        Raises:
            EnvironmentException: the environment raised.
        """
        return rendered(self._link.render(env_index), Tensor.over)
