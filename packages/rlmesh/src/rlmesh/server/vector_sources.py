"""Factories of single environments as factories of many lanes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, cast

from rlcore import ConfigurationError, EnvironmentException, MissingDependencyError

from rlmesh.server.factories import MADE_BY, lane_maker
from rlmesh.server.main_script import ADVICE, require_first_run
from rlmesh.server.vectors import LaneSet
from rlmesh.specs import AutoresetMode

if TYPE_CHECKING:
    from gymnasium import Env

Factory = Callable[[], object]
LANES, SYNC, ASYNC, ENTRY_POINT = "lanes", "sync", "async", "vector_entry_point"
MODES: Final = (LANES, SYNC, ASYNC, ENTRY_POINT)


@dataclass(frozen=True, slots=True)
class Many:
    """How many environments a session gets, and what steps them; made by `many_of`.

    Attributes:
        num_envs: how many; None: one, or as many as there are.
        mode: `lanes`: the server, one after another, each a lane of its own; `sync` and `async`:
            gymnasium's vector environments; `vector_entry_point`: the environment's own.
        autoreset_mode: what happens at the end of an episode; None: as the mode has it, which for
            lanes is nothing.
    """

    num_envs: int | None = None
    mode: str = LANES
    autoreset_mode: AutoresetMode | None = None

    def vector_kwargs(self) -> dict[str, Any]:  # Any: gymnasium's keyword arguments
        """Return what gymnasium's vector environments are made with."""
        kwargs: dict[str, Any] = {}
        if self.mode == ASYNC:
            # A fork of a process with threads may hang, and a server has threads.
            kwargs["context"] = "forkserver"
        if self.autoreset_mode is not None:
            kwargs["autoreset_mode"] = self.autoreset_mode.gymnasium_name
        return kwargs

    @contextmanager
    def startable(self) -> Generator[None]:
        """Say, where processes of lanes end at once, what may be the matter.

        Raises:
            EnvironmentException: one ended before its environment was made.
        """
        try:
            yield
        except (ConnectionError, EOFError) as error:
            if self.mode != ASYNC:
                raise
            raise EnvironmentException(
                "the process of a lane ended before its environment was made, and wrote why",
                operation="make",
                hint=ADVICE,
            ) from error


def many_of(
    num_envs: int | None, vectorization_mode: str | None, autoreset_mode: object = None
) -> Many:
    """Return what the arguments of a server ask for.

    Raises:
        ConfigurationError: one of them is none of its values, or they contradict each other; or
            processes are asked for by a script that such a process runs again.
    """
    mode = vectorization_mode or LANES
    if mode not in MODES:
        raise ConfigurationError(
            f"vectorization_mode is {vectorization_mode!r}", hint=f"It can be {', '.join(MODES)}."
        )
    if mode == ASYNC:
        require_first_run()
    if num_envs is None and mode != LANES:
        raise ConfigurationError(
            f"vectorization_mode is {mode!r} and num_envs is not given",
            hint="Say how many environments there should be.",
        )
    given: object = num_envs
    if num_envs is not None and (
        isinstance(given, bool) or not isinstance(given, SupportsIndex) or num_envs < 1
    ):
        raise ConfigurationError(f"num_envs is {num_envs!r}", hint="Give one or more.")
    autoreset = autoreset_named(autoreset_mode)
    if autoreset is not None and mode == ENTRY_POINT:
        raise ConfigurationError(
            f"autoreset_mode is given beside vectorization_mode={mode!r}",
            hint="Such environments decide for themselves; pass them what they take as kwargs.",
        )
    return Many(num_envs, mode, autoreset)


def autoreset_named(mode: object) -> AutoresetMode | None:
    """Return the autoreset mode of that name, ours or gymnasium's; None for None.

    Raises:
        ConfigurationError: there is none of that name.
    """
    if mode is None:
        return None
    word = str(getattr(mode, "value", mode)).replace("_", "").replace("-", "").lower()
    for known in AutoresetMode:
        if known.value.replace("_", "") == word:
            return known
    raise ConfigurationError(
        f"autoreset_mode is {mode!r}", hint=f"It can be {', '.join(AutoresetMode)}."
    )


def several(source: object, many: Many) -> object:
    """Return what to serve where a server was given a source and is to have many lanes of it.

    Raises:
        ConfigurationError: the source cannot be multiplied.
        MissingDependencyError: the mode is gymnasium's, which is not installed.
    """
    mode = many.autoreset_mode
    if isinstance(source, list | tuple):
        envs = cast("Sequence[object]", source)
        if many.mode != LANES or many.num_envs not in (None, len(envs)):
            raise ConfigurationError(
                f"a list of {len(envs)} environments is given beside num_envs={many.num_envs!r} "
                f"and vectorization_mode={many.mode!r}",
                hint="The environments of a list are its lanes.",
            )
        return LaneSet(envs, mode) if mode is not None else envs
    if many.num_envs is None and mode is None:
        return source  # whatever it is; whoever serves it finds out
    factory = source if callable(source) and not _steps(source) else getattr(source, "make", None)
    if not callable(factory):
        raise ConfigurationError(
            f"{source!r} is one environment, and num_envs={many.num_envs!r} and "
            f"autoreset_mode={mode!r} are for factories and lists",
            hint="Give a factory, such as a class or a function.",
        )
    return multiplied(cast("Factory", factory), many)


def multiplied(factory: Factory, many: Many) -> Factory:
    """Return a factory of many lanes for one of single environments; the same if none are asked.

    Raises:
        ConfigurationError: the mode is for gymnasium's ids.
        MissingDependencyError: the mode is gymnasium's, which is not installed.
    """
    if many.num_envs is None and many.autoreset_mode is None:
        return factory
    if many.mode == ENTRY_POINT:
        raise ConfigurationError(
            f"vectorization_mode={ENTRY_POINT!r} is for gymnasium's ids",
            hint="Serve the id, or a factory that makes the vector environment.",
        )
    count = many.num_envs or 1
    autoreset = many.autoreset_mode or AutoresetMode.DISABLED

    def lanes() -> object:
        if many.num_envs is None:
            made = factory()
            several = isinstance(made, list | tuple)
            return LaneSet(cast("Sequence[object]", made) if several else [made], autoreset)
        envs = [factory() for _ in range(count)]
        return envs if autoreset is AutoresetMode.DISABLED else LaneSet(envs, autoreset)

    def vector() -> object:
        kinds = _vector_environments()
        factories = [cast("Callable[[], Env[Any, Any]]", lane_maker(factory))] * count
        with many.startable():
            made: object = kinds[many.mode](factories, **many.vector_kwargs())
        return made

    if many.mode != LANES:
        _vector_environments()
    make = lanes if many.mode == LANES else vector
    make.__qualname__ = getattr(factory, "__qualname__", repr(factory))
    make.__dict__[MADE_BY] = factory
    return make


def _vector_environments() -> Mapping[str, Callable[..., object]]:
    try:
        from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "the vectorization modes sync and async are gymnasium's, which is not installed",
            hint='Install it (pip install "rlmesh[gymnasium]"), or use the mode lanes.',
        ) from error
    return {SYNC: SyncVectorEnv, ASYNC: AsyncVectorEnv}


def _steps(source: object) -> bool:
    stepped = callable(getattr(source, "reset", None)) and callable(getattr(source, "step", None))
    return stepped and not isinstance(source, type)
