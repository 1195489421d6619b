"""What a run can be pointed at, and how each becomes an environment to step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlcore import (
    ConfigurationError,
    Endpoint,
    EnvironmentException,
    EnvironmentIdentity,
    Error,
)

from rlmesh.models.conversion import Backend
from rlmesh.runs.local_env import LocalEnv, Step

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


class Driven(Protocol):
    """An environment as the loop steps it: a handle, or a local one behind the same face."""

    @property
    def action_space(self) -> Any:  # Any: gymnasium's or ours
        """What it can be stepped with."""
        ...

    @property
    def metadata(self) -> Mapping[str, object] | None:
        """What it says about itself."""
        ...

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Which environment it is."""
        ...

    @property
    def env_contract(self) -> "EnvContract | None":
        """Its spaces and metadata as a value."""
        ...

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        ...

    def step(self, action: Any, /) -> Step:
        """Take a step."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class TargetTypeError(ConfigurationError, TypeError):
    """What was given as an environment is none, and cannot be made or dialled into one."""

    default_code = "not_an_environment"


@dataclass(slots=True)
class Target:
    """An open environment; `reopen` makes another one where the run itself opened it."""

    env: Driven
    owned: bool
    reopen: "Callable[[], Target] | None" = None
    advisories: tuple[str, ...] = field(default=())
    _closed: bool = False

    def close(self, *, close_env: bool) -> None:
        """Release what the run opened, and the caller's environment only where that is asked for.

        With `close_env`, a server that was dialled is asked to shut down as well.
        """
        if self._closed:
            return
        self._closed = True
        shutdown = getattr(self.env, "shutdown", None)
        if close_env and self.owned and callable(shutdown):
            shutdown()
        if close_env or self.owned:
            self.env.close()


def open_target(env: object, *, backend: Backend) -> Target:
    """Return the environment to step: the first of these that fits.

    A text is an address to dial. What has `reset` and `step` is stepped as it is: a handle such
    as `RemoteEnv`, or a local environment, called in this process. What has `make`, or is a class
    or function, makes one. What has an `address` is dialled.

    Raises:
        TargetTypeError: none of these.
        EnvironmentException: a factory raised.
        TransportError: nothing answers at the address.
        IdentityError: what answers is not the registered environment.
    """
    if isinstance(env, str | Endpoint):
        return _dial(env, backend)
    if not isinstance(env, type) and _has(env, "reset") and _has(env, "step"):
        return _borrow(env)
    if _has(env, "make"):
        return _make(_factory(env))
    if callable(env):
        return _make(env)
    address = getattr(env, "address", None)
    if isinstance(address, str):
        return _dial(env, backend)
    raise TargetTypeError(
        f"{env!r} is not an environment",
        hint="give an environment, a RemoteEnv, a factory, or an address such as "
        "'tcp://127.0.0.1:50051' or 'rleaas://NAME'",
    )


def _borrow(env: object) -> Target:
    lanes = getattr(env, "num_envs", 1)
    if isinstance(lanes, int) and lanes > 1:
        raise TargetTypeError(
            f"{env!r} steps {lanes} environments at once", hint="give one with a single environment"
        )
    if getattr(env, "env_contract", None) is None:
        local = LocalEnv(env)
        return Target(local, owned=False, advisories=local.advisories)
    return Target(cast("Driven", env), owned=False)


def _dial(address: object, backend: Backend) -> Target:
    def dial() -> Target:
        if backend != "native":  # a framework's tensors are made from arrays
            from rlmesh.numpy import RemoteEnv as NumpyRemoteEnv

            opened: object = NumpyRemoteEnv(address)
        else:
            from rlmesh.client.remote_env import RemoteEnv

            opened = RemoteEnv(address)
        return Target(cast("Driven", opened), owned=True, reopen=dial)

    return dial()


def _factory(env: object) -> Callable[[], object]:
    def make() -> object:
        prepare = getattr(env, "prepare", None)
        if callable(prepare):
            prepare()
        return cast("Any", env).make()  # Any: `open_target` has seen that it has one

    return make


def _make(factory: Callable[[], object]) -> Target:
    def make() -> Target:
        try:
            env = factory()
        except Error:
            raise
        except Exception as error:
            name = getattr(factory, "__qualname__", repr(factory))
            raise EnvironmentException(
                f"making an environment with {name} raised {type(error).__name__}: {error}",
                operation="make",
                remote_type=type(error).__name__,
            ) from error
        if not (_has(env, "reset") and _has(env, "step")):
            raise TargetTypeError(f"the factory made {env!r}, which has no reset and step")
        local = LocalEnv(env)
        return Target(local, owned=True, reopen=make, advisories=local.advisories)

    return make()


def _has(env: object, name: str) -> bool:
    return callable(getattr(env, name, None))
