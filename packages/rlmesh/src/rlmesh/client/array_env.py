"""A served environment as a Gymnasium environment, whichever library its arrays are of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Self,
    SupportsIndex,
)

from rlcore import Secret, UnsupportedError

from rlmesh.backends.frameworks import FrameworkName, backend_of
from rlmesh.client.arguments import checked_seed
from rlmesh.client.gymnasium_base import BaseEnv, spec_of
from rlmesh.client.handle import Handle
from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.client.rendering import rendered
from rlmesh.protocol.handshake import PRIVATE_SESSIONS

if TYPE_CHECKING:
    from gymnasium.spaces import Space

Info = dict[str, Any]  # Any: whatever the environment says


class ArrayEnv(Handle, BaseEnv):
    """What the clients of one served environment have in common; each framework has its own."""

    framework: ClassVar[FrameworkName]

    def __init__(self, address: object, options: ConnectOptions, *, device: object = None) -> None:
        self._backend = backend_of(self.framework, device)
        self._hold(open_link(address, options, self._backend))
        contract = self._link.contract
        self.render_mode = contract.render_mode
        own_space = self._as_space  # gymnasium's, which wrappers ask for and which speak NumPy
        self.observation_space: Space[Any] = own_space(contract.observation_space, self._backend)
        self.action_space: Space[Any] = own_space(contract.action_space, self._backend)
        # Only what the server renders can be had from here, whatever the environment could do.
        self.metadata = {
            **(contract.metadata or {}),
            "render_modes": [contract.render_mode] if contract.render_mode else [],
        }
        # A spec is a recipe for another one, which a server with a single environment has not got.
        welcome = self._link.wires.dialled.welcome
        if welcome.offers(PRIVATE_SESSIONS):
            another = AnotherOne(type(self), address, options, device)
            self.spec = spec_of(contract.id, another, welcome.reward_threshold)

    @property
    def episode_id(self) -> str:
        """The id of the current episode; empty before the first reset."""
        return self._link.episode_id

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
        number = checked_seed(seed)
        if number is None or number >= 0:
            self._seed_here(number)  # a negative one is for the environment to refuse
        return self._link.reset(number, options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:  # Any: the space's values
        """Take a step: observation, reward, terminated, truncated, info.

        Raises:
            InvalidActionError: the action has not the form of the action space, or is a number that
                a discrete space does not have; nothing was stepped. What exceeds the bounds of a
                Box or the limits of a Text is refused by servers that were told to be strict;
                others report it once in the info, as `rlmesh.conformance.warning`.
            EnvironmentException: the environment raised, or there is no running episode.
            SessionClosed: this client was closed, or the server has gone.
            CallTimeout: the environment did not answer in time.
        """
        return self._link.step(action)

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

    def render(self, *, env_index: int = 0) -> Any:  # Any: the framework's array
        """Return the current frame, (H, W, 3), (H, W, 4) or (H, W), or None when there is none.

        Of environments that draw texts it is a str, of those that keep frames (`rgb_array_list`) a
        list; servers of the published rlmesh give None instead.

        Raises:
            EnvironmentException: the environment raised.
        """
        return rendered(self._link.render(env_index), self._backend.owned)


for _method in (ArrayEnv.reset, ArrayEnv.step, ArrayEnv.begin_step, ArrayEnv.render):
    # Python names it where an argument is wrong; callers know the classes by this name only.
    _method.__qualname__ = f"RemoteEnv.{_method.__name__}"


class AnotherOne:
    """Makes one more client of the same address, for `spec.make()`; it does not print the token."""

    def __init__(
        self,
        kind: Callable[..., ArrayEnv],
        address: object,
        options: ConnectOptions,
        device: object,
    ) -> None:
        token = options.get("token")
        self._kind = kind
        self._address = address
        self._place = {} if device is None else {"device": device}
        self._options: ConnectOptions = (
            {**options, "token": Secret(token)} if isinstance(token, str) else options
        )

    def __call__(self, *, render_mode: str | None = None) -> ArrayEnv:
        """Return one more client.

        Raises:
            UnsupportedError: it should render in another way than the server does.
        """
        env = self._kind(self._address, **self._place, **self._options)
        if render_mode not in (None, env.render_mode):
            env.close()
            served = env.render_mode
            raise UnsupportedError(
                f"the server renders {served!r}, not {render_mode!r}",
                hint="Start it with the render mode that is wanted.",
            )
        return env

    def __deepcopy__(self, _: object) -> Self:
        # gymnasium copies specs, and a secret refuses to be copied.
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._address!r})"
