"""What a run can be pointed at, and how each becomes environments to step."""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from rlcore import ConfigurationError, Endpoint, EnvironmentException, Error

from rlmesh.backends.content import Content, content_of
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.client.dialling import MANY_LANES
from rlmesh.client.handle import Handle
from rlmesh.protocol.handshake import PRIVATE_SESSIONS
from rlmesh.runs.driven import Described, has_lanes, is_handle, is_stepped
from rlmesh.runs.local_content import content_of_env, innermost
from rlmesh.runs.local_env import LocalEnv
from rlmesh.runs.local_lanes import LocalLanes

T = TypeVar("T")
_HOST_AND_PORT = re.compile(r"^\[?[\w.:-]+\]?:\d+$")
_SOURCES = ("gym://", "python://")


class TargetTypeError(ConfigurationError, TypeError):
    """What was given as an environment is none, and cannot be made or dialled into one."""

    default_code = "not_an_environment"


@dataclass(slots=True)
class Target:
    """An open environment.

    Attributes:
        env: one environment, or many lanes.
        owned: whether the run opened it, and closes it.
        reopen: makes another one, where the run itself opened it.
        stoppable: whether it was dialled by an address that the caller gave.
        advisories: what limits the record of a run on it.
        contents: what it is made of: itself (`class`), and what made it (`made_by`).
    """

    env: Described
    owned: bool
    reopen: "Callable[[], Target] | None" = None
    stoppable: bool = False
    advisories: tuple[str, ...] = field(default=())
    contents: Mapping[str, Callable[[], Content]] = field(default_factory=dict[str, Any])
    _closed: bool = False

    @property
    def is_remote(self) -> bool:
        """Whether its calls go over a wire."""
        return not isinstance(self.env, LocalEnv | LocalLanes)

    @property
    def handle(self) -> Handle | None:
        """The environment, where it is a client of ours."""
        return self.env if isinstance(self.env, Handle) else None

    @property
    def lanes(self) -> int | None:
        """How many lanes are stepped at once; None: it is one environment."""
        return cast("Any", self.env).num_envs if has_lanes_here(self.env) else None

    def close(self, *, close_env: bool) -> None:
        """Release what the run opened, and the caller's environment only where that is asked for.

        With `close_env`, a server that was dialled is asked to shut down as well.
        """
        if self._closed:
            return
        self._closed = True
        shutdown = getattr(self.env, "shutdown", None)
        if close_env and self.stoppable and callable(shutdown):
            shutdown()
        if close_env or self.owned:
            self.env.close()


class Targets:
    """All environments of a run.

    Attributes:
        each: the environments; all have the same contract.
    """

    def __init__(self) -> None:
        self.each: list[Target] = []
        self._at_last = contextlib.ExitStack()
        self._closing: list[Callable[[], object]] = []

    def at_close(self, tell: Callable[[], object]) -> None:
        """Have somebody told before the first environment is closed."""
        self._closing.append(tell)

    def closing(self) -> None:
        """Tell that environments are about to be closed."""
        for tell in self._closing:
            tell()

    def finally_close(self, close: Callable[[], object]) -> None:
        """Have something closed after all environments are."""
        self._at_last.callback(close)

    def close(self) -> None:
        """Release what the environments came from; they themselves are closed by who steps them."""
        self._at_last.close()


def open_targets(
    env: object,
    *,
    framework: FrameworkName,
    num_workers: int | None = None,
    workflow_edition: str | None = None,
) -> Targets:
    """Return the environments to step: the first of these that fits.

    A text is an address to dial, or else names what makes an environment: a gymnasium id, or
    `module:attribute`. A list is several environments. What has `reset` and `step` is stepped as
    it is: a handle such as `RemoteEnv`, or a local environment, called in this process. What has
    `make`, or is a class or function, makes one, or with `num_workers` one in each of so many
    processes. What has an `address` is dialled, with `num_workers` so many times.

    Raises:
        TargetTypeError: none of these.
        ConfigurationError: several workers are asked for, and there is one environment only; or
            the environments of a list differ.
        EnvironmentException: a factory raised.
        TransportError: nothing answers at the address.
        IdentityError: what answers is not the registered environment.
    """
    targets = Targets()
    opening = _Opening(targets, framework, workflow_edition)
    try:
        opening.open(env, num_workers)
        _require_alike(targets.each)
    except BaseException as error:
        release(targets, error)
        raise
    return targets


def release(targets: Targets, error: BaseException) -> None:
    """Close what was opened, when something else has failed already."""
    for close in (*[_closing(target) for target in targets.each], targets.close):
        try:
            close()
        except Exception as second:
            error.add_note(f"Closing failed as well: {type(second).__name__}: {second}")


def is_address(text: str) -> bool:
    """Whether a text is where something is served, and not what makes an environment."""
    if "://" in text:
        return not text.startswith(_SOURCES)
    return bool(_HOST_AND_PORT.match(text))


def has_lanes_here(env: object) -> bool:
    """Whether what a run steps has lanes."""
    return isinstance(env, LocalLanes) or has_lanes(env)


class _Opening:
    def __init__(
        self, targets: Targets, framework: FrameworkName, workflow_edition: str | None
    ) -> None:
        self._targets = targets
        self._framework: FrameworkName = framework
        self._options: dict[str, Any] = (
            {} if workflow_edition is None else {"workflow_edition": workflow_edition}
        )

    def open(self, env: object, workers: int | None) -> None:
        if isinstance(env, list | tuple):
            self._open_all(cast("Sequence[object]", env), workers)
        elif isinstance(env, Endpoint) or (isinstance(env, str) and is_address(env)):
            self._dial(env, workers)
        elif isinstance(env, str):
            from rlmesh.server.sources import load_factory

            self._prepare(load_factory(env), workers)
        elif is_stepped(env):
            if workers is not None and workers > 1:
                raise ConfigurationError(
                    f"num_workers is {workers}, and {env!r} is one environment",
                    hint="Give what makes it, such as its class, or a list of environments.",
                )
            self._add(_borrowed(env))
        elif callable(getattr(env, "make", None)):
            self._prepare(env, workers)
        elif callable(env):
            self._make(env, workers)
        elif isinstance(getattr(env, "address", None), str):
            self._dial(env, workers)
        else:
            raise TargetTypeError(
                f"{env!r} is not an environment",
                hint="give an environment, a RemoteEnv, a factory, a gymnasium id, or an address "
                "such as 'tcp://127.0.0.1:50051' or 'rleaas://NAME'",
            )

    def _add(self, target: Target) -> None:
        self._targets.each.append(target)

    def _open_all(self, envs: Sequence[object], workers: int | None) -> None:
        if not envs:
            raise ConfigurationError("the list of environments is empty", hint="Give one at least.")
        if workers not in (None, len(envs)):
            raise ConfigurationError(
                f"num_workers is {workers}, and there is a list of {len(envs)} environments",
                hint="Leave num_workers out: each environment of a list is played on by itself.",
            )
        if len({id(env) for env in envs if not isinstance(env, str)}) < sum(
            not isinstance(env, str) for env in envs
        ) and any(is_stepped(env) for env in envs):
            raise ConfigurationError(
                "a list has the same environment in several places", hint="Make one for each."
            )
        for env in envs:
            self.open(env, None)

    def _prepare(self, env: object, workers: int | None) -> None:
        from rlmesh.server.factories import begin, end, usable

        # A class of factories makes nothing itself; an EnvFactory is bound to its parameters.
        factory: Any = usable(env)
        if workers is not None:
            # Each process prepares, and closes, one of its own.
            self._start(factory, workers)
            return
        begin(factory)
        self._targets.finally_close(lambda: end(factory))
        make = getattr(factory, "make", None)
        self._make(make if callable(make) else factory, None)

    def _make(self, factory: Callable[[], object], workers: int | None) -> None:
        if workers is None:
            self._add(_made(factory))
        else:
            self._start(factory, workers)

    def _start(self, factory: object, count: int) -> None:
        # Few runs have processes, and the server that they need takes long to import.
        from rlmesh.runs.workers import Workers

        workers = Workers(factory, count)
        self._targets.at_close(workers.closing)
        self._targets.finally_close(workers.close)
        for _ in range(count):
            target = self._dialled(workers.address, stoppable=False)
            target.contents = {"made_by": lambda: content_of(factory)}
            self._add(target)

    def _dial(self, address: object, workers: int | None) -> None:
        first = self._dialled(address, stoppable=True)
        self._add(first)
        if workers is None or workers == 1:
            return
        welcome = cast("Any", first.env)._link.wires.dialled.welcome
        if not welcome.offers(PRIVATE_SESSIONS):
            raise ConfigurationError(
                f"num_workers is {workers}, and the server at {cast('Any', first.env).address} "
                "has one environment for all its clients",
                hint="Have it serve what makes the environment, such as its class.",
            )
        for _ in range(workers - 1):
            self._add(self._dialled(address, stoppable=False))

    def _dialled(self, address: object, *, stoppable: bool) -> Target:
        def dial() -> Target:
            handle = _handle(address, self._framework, self._options)
            return Target(handle, owned=True, reopen=dial, stoppable=stoppable)

        return dial()


def _handle(address: object, framework: FrameworkName, options: dict[str, Any]) -> Described:
    one, many = _clients(framework)
    try:
        return one(address, **options)
    except ConfigurationError as error:
        if error.code != MANY_LANES:
            raise
        return many(address, **options)


def _clients(framework: FrameworkName) -> tuple[Callable[..., Described], ...]:
    if framework == "native":
        import rlmesh.client.remote_env as one
        import rlmesh.client.vector_env as many

        return one.RemoteEnv, many.RemoteVectorEnv
    from importlib import import_module

    room = import_module(f"rlmesh.{framework}")
    return cast("Any", room).RemoteEnv, cast("Any", room).RemoteVectorEnv  # Any: by name


def _borrowed(env: object) -> Target:
    if has_lanes(env):
        lanes = env if is_handle(env) else LocalLanes(env)
        return Target(cast("Described", lanes), owned=False, contents=_contents(env))
    count = getattr(env, "num_envs", 1)
    if isinstance(count, int) and count > 1:
        raise TargetTypeError(
            f"{env!r} steps {count} environments at once, and not as gymnasium has it",
            hint="give one with a single environment, or a gymnasium.vector.VectorEnv",
        )
    if is_handle(env):
        return Target(cast("Described", env), owned=False)
    local = LocalEnv(env)
    return Target(local, owned=False, advisories=local.advisories, contents=_contents(env))


def _contents(env: object) -> dict[str, Callable[[], Content]]:
    return {} if is_handle(env) else {"class": lambda: content_of_env(env)}


def _made(factory: Callable[[], object]) -> Target:
    env = _told(factory, "making an environment with")
    if not is_stepped(env):
        raise TargetTypeError(f"the factory made {env!r}, which has no reset and step")
    target = _borrowed(env)
    target.owned = True
    target.reopen = lambda: _made(factory)
    target.contents = {**target.contents, "made_by": lambda: content_of(factory)}
    return target


def _told(function: Callable[[], T], doing: str) -> T:
    try:
        return function()
    except Error:
        raise
    except Exception as error:
        from rlmesh.server.factories import name_of

        name = name_of(function)
        raise EnvironmentException(
            f"{doing} {name} raised {type(error).__name__}: {error}",
            operation="make",
            remote_type=type(error).__name__,
        ) from error


def _closing(target: Target) -> Callable[[], None]:
    return lambda: target.close(close_env=False)


def _require_alike(targets: Sequence[Target]) -> None:
    first, kind = targets[0].env.identity, _class_of(targets[0])
    for number, target in enumerate(targets):
        found = target.env.identity
        if (found and found.contract_digest) != (first and first.contract_digest):
            raise ConfigurationError(
                f"environment {number} of the list is {found}, and the first is {first}",
                hint="All have to have the same spaces, metadata and number of lanes.",
            )
        other = _class_of(target)
        if kind is not None and other is not None and other != kind:
            raise ConfigurationError(
                f"environment {number} of the list is a {other}, and the first is a {kind}",
                hint="Run them one after another: results of two environments do not mix.",
            )


def _class_of(target: Target) -> str | None:
    """Where spaces are alike, and no registered name tells, the class does."""
    env = target.env
    if not isinstance(env, LocalEnv | LocalLanes):
        return None
    found = type(innermost(env.env))
    return f"{found.__module__}.{found.__qualname__}"
