"""Several environments of one server, in one session, each as a Gymnasium environment."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn, Self, SupportsIndex, Unpack

from rlcore import ConfigurationError

from rlmesh.backends.frameworks import backend_of
from rlmesh.client.arguments import checked_seed, not_copied
from rlmesh.client.gymnasium_base import BaseEnv
from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.client.rendering import rendered
from rlmesh.client.several_link import SeveralLink
from rlmesh.protocol.messages import Timing
from rlmesh.protocol.opening import MOST_ENVS

Info = dict[str, Any]  # Any: whatever the environment says


class OneOfSeveral(BaseEnv):
    """One of the environments of a `RemoteEnvs`: a `gymnasium.Env` with NumPy values.

    It is stepped and reset by itself. Its `begin_step` waits for those of the others: one message
    carries the steps of all.
    """

    spec = None

    def __init__(self, several: SeveralLink, place: int) -> None:
        self._several = several
        self._place = place
        contract = several.link.contract
        backend = backend_of("numpy", None)
        self._backend = backend
        self.render_mode = contract.render_mode
        self.observation_space: Any = self._as_space(contract.observation_space, backend)
        self.action_space: Any = self._as_space(contract.action_space, backend)
        self.metadata = {
            **(contract.metadata or {}),
            "render_modes": [contract.render_mode] if contract.render_mode else [],
        }

    @property
    def episode_id(self) -> str:
        """The id of the current episode; empty before the first reset."""
        return self._several.episode_id(self._place)

    def reset(
        self,
        *,
        seed: SupportsIndex | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Info]:
        """Start a new episode here, while those of the others go on.

        After a failure of the session it opens a new one, in which the others have no episodes.

        Raises:
            EnvironmentException: the environment raised; its traceback comes along.
            SessionBusy: the server has no room for so many environments.
            SessionClosed: the client was closed.
            CallTimeout: the environment did not answer in time.
        """
        number = checked_seed(seed)
        if number is None or number >= 0:
            self._seed_here(number)  # a negative one is for the environment to refuse
        return self._several.reset(self._place, number, options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:  # Any: the space's values
        """Take a step: observation, reward, terminated, truncated, info.

        Raises:
            InvalidActionError: the action has not the form of the action space; nothing was
                stepped here.
            EnvironmentException: this environment raised, or has no running episode.
            SessionClosed: the client was closed, or the session was lost.
            CallTimeout: the environments did not answer in time.
        """
        return self._several.step(self._place, action)

    def begin_step(self, action: Any) -> None:  # Any: the space's values
        """Take the action of the next `step` and return at once; see `RemoteEnv.begin_step`.

        It is sent as soon as every environment whose episode runs has one, or somebody waits.

        Raises:
            InvalidActionError: the action has not the form of the action space; nothing was sent.
            EnvironmentException: there is no running episode.
            ProtocolException: a step is under way already.
            SessionClosed: the client was closed, or the session was lost.
        """
        self._several.begin(self._place, action)

    def render(self) -> Any:  # Any: an array, a text, or a list of either
        """Return the current frame, or None when there is none.

        Raises:
            EnvironmentException: the environment raised.
            ProtocolException: a step is under way.
        """
        self._several.settle(self._place, "render")
        return rendered(self._several.link.render(self._place), self._backend.owned)

    def close(self) -> None:
        """Do nothing: the session belongs to the `RemoteEnvs`, whose `close` ends it."""

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, str(self._several.link.wires.dialled.connection.address))

    def __repr__(self) -> str:
        return f"<environment {self._place} of {self._several.link.identity}>"

    __str__ = __repr__


class RemoteEnvs:
    """Several environments of one server in one session, which steps them by one message.

    Other than `RemoteVectorEnv`, which drives the lanes that a server was started with, it asks the
    server to make so many by its factory, and they have nothing to do with one another: each of
    `envs` is an environment of its own, with its own seeds, options and episodes.

    ```python
    with rlmesh.numpy.RemoteEnvs(address, 8) as several:
        for env in several.envs:
            env.reset()
        for env, action in zip(several.envs, actions):
            env.begin_step(action)
        outcomes = [env.step(action) for env, action in zip(several.envs, actions)]
    ```

    The environments work one after another, in one thread of the server: that is for quick ones,
    of which the way takes longer than the step. Each takes one of the server's places.

    Args:
        address: as `RemoteEnv` takes it.
        num_envs: how many environments.
        **options: how to connect; see `rlmesh.client.options.ConnectOptions`. A time limit is for
            the message, which is for all of them.

    Attributes:
        envs: the environments.

    Raises:
        ConfigurationError: `num_envs` is no number from 1 to 4096.
        UnsupportedError: the server's sessions have one environment: it is published by others,
            serves an environment instead of a factory, or gives each a process of its own.
        Error: as `RemoteEnv`.
    """

    def __init__(self, address: object, num_envs: int, **options: Unpack[ConnectOptions]) -> None:
        count = _checked(num_envs)
        backend = backend_of("numpy", None)
        self._link = open_link(address, options, backend, num_envs=count)
        several = self._several = SeveralLink(
            self._link, count, backend, strict_dtypes=options.get("strict_dtypes", False)
        )
        self.envs = tuple([OneOfSeveral(several, place) for place in range(count)])
        # One that is dropped without close() gives its session back all the same.
        weakref.finalize(self, self._link.wires.hang_up)

    def begin_all(
        self, places: Sequence[int], actions: Sequence[Any], *, at_once: bool = False
    ) -> bool:
        """Do what `begin_step` of these environments does, in one call; whether all could.

        Where one could not, nothing was begun; its own `begin_step` says why.

        Args:
            places: which of `envs`.
            actions: the action of each.
            at_once: send them now, without waiting for those of the others: so some work while the
                actions of others are chosen, for twice the messages.
        """
        return self._several.begin_all(places, actions, at_once=at_once)

    def step_all(self, places: Sequence[int]) -> list[tuple[Any, float, bool, bool, Info] | None]:
        """Return what the steps gave that these environments have begun, in one call.

        None stands for one that failed, or has begun none; its own `step` says why.
        """
        return self._several.step_all(places)

    @property
    def num_envs(self) -> int:
        """How many environments there are."""
        return len(self.envs)

    @property
    def is_running(self) -> bool:
        """Whether there is a session with episodes in it: not before a reset, nor after a loss."""
        return self._link.is_running

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self._link.session_id

    @property
    def last_timing(self) -> Timing | None:
        """How long the server had the last step of several, and its environments, in nanoseconds.

        None before the first step.
        """
        link = self._link
        return Timing(link.served_ns, link.user_ns or None) if link.served_ns else None

    def close(self) -> None:
        """End the session, within two seconds; the server goes on. A second call does nothing."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.close()
        return False

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, str(self._link.wires.dialled.connection.address))

    def __repr__(self) -> str:
        return f"RemoteEnvs({self._link.identity}, num_envs={self.num_envs})"


def _checked(num_envs: object) -> int:
    if isinstance(num_envs, int) and not isinstance(num_envs, bool) and 1 <= num_envs <= MOST_ENVS:
        return num_envs
    raise ConfigurationError(
        f"num_envs is {num_envs!r}", hint=f"Give a number from 1 to {MOST_ENVS}."
    )
