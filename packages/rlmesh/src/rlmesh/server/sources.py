"""The environment that a text names: a gymnasium id, or an attribute of a module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from rlcore import ConfigurationError, EnvironmentException, MissingDependencyError

from rlmesh.server.environments import make_env
from rlmesh.server.factories import MADE_BY, opened, usable
from rlmesh.server.vector_sources import LANES, Many, multiplied

GYM = "gym://"
PYTHON = "python://"
# What the files of policies are called, which are no environments.
FILES = (".zip", ".pt", ".pth", ".pt2", ".onnx", ".ckpt", ".ts")

Factory = Callable[[], object]


def load_factory(
    source: str, kwargs: Mapping[str, object] | None = None, many: Many | None = None
) -> Named:
    """Return what makes the environment that a source names.

    Args:
        source: `CartPole-v1` or `gym://CartPole-v1`; `module:attribute` or
            `python://module:attribute`, which is a class, a function, or an object with `make`;
            gymnasium's own `module:ID` of an id that the module registers.
        kwargs: what each environment is made with.
        many: how many lanes there are to be, where there are to be several.

    Raises:
        ConfigurationError: the source names nothing.
        MissingDependencyError: it is a gymnasium id, and gymnasium is not installed.
    """
    return Named(_loaded(source.strip(), kwargs or {}, many or Many()), (source, kwargs, many))


class Named:
    """A factory that can be sent to another process, as it goes by a name there as well.

    Args:
        factory: what makes the environment here.
        arguments: what `load_factory` was given.
    """

    def __init__(
        self,
        factory: Factory,
        arguments: tuple[str, Mapping[str, object] | None, Many | None],
    ) -> None:
        self._factory = factory
        self._arguments = arguments
        # Failures of the factory are told under this name.
        self.__qualname__: str = getattr(factory, "__qualname__", repr(factory))
        self.__wrapped__ = factory  # for its signature
        self.made_by = factory

    def __call__(self) -> object:
        """Return what the factory makes."""
        return self._factory()

    def __reduce__(self) -> tuple[Callable[..., Named], tuple[object, ...]]:
        return load_factory, self._arguments


def _loaded(text: str, kwargs: Mapping[str, object], wanted: Many) -> Factory:
    if not is_gymnasium_id(text):
        return multiplied(_of_module(text.removeprefix(PYTHON), kwargs), wanted)
    env_id = text.removeprefix(GYM)
    if wanted.mode != LANES:
        return _of_gymnasium(env_id, kwargs, wanted)
    return multiplied(_of_gymnasium(env_id, kwargs), wanted)


def is_gymnasium_id(source: str) -> bool:
    """Return whether a source is an id of gymnasium's, and no attribute of a module."""
    if source.startswith((GYM, PYTHON)) or ":" not in source:
        return not source.startswith(PYTHON)
    module_name, _, name = source.partition(":")
    try:
        import gymnasium

        if hasattr(import_module(module_name), name.partition(".")[0]):
            return False
    except Exception:  # whatever is wrong with the module is told where it is loaded
        return False
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error:
        return False
    return True


def given_factory(
    source: object, kwargs: Mapping[str, object] | None = None, many: Many | None = None
) -> Factory:
    """Return what makes environments by means of what a program has, not by a name.

    Raises:
        ConfigurationError: it makes no environments.
        ParamError: an argument is not what its parameter can be.
    """
    name = getattr(source, "__qualname__", type(source).__qualname__)
    return multiplied(_factory_of(source, name, kwargs or {}), many or Many())


@contextmanager
def shared_or_not(factory: Factory, *, shared: bool) -> Generator[object]:
    """Give what a server serves: a factory, or the one environment that all clients share.

    Raises:
        EnvironmentException: the factory raised.
    """
    if not shared:
        yield factory
        return
    with opened(factory):
        yield make_env(factory)


def look_here() -> None:
    """Let a command import the modules beside it; an installed script would not see them."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)


def _of_gymnasium(env_id: str, kwargs: Mapping[str, object], many: Many | None = None) -> Factory:
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{env_id!r} is an environment of gymnasium, which is not installed",
            hint='Install it: pip install "rlmesh[gymnasium]"',
        ) from error
    if not env_id:
        raise ConfigurationError("the source names no environment", hint="Write gym://CartPole-v1.")

    def make() -> object:
        try:
            made: object
            if many is None:
                made = gymnasium.make(env_id, **cast("dict[str, Any]", kwargs))
            else:
                with many.startable():
                    made = gymnasium.make_vec(
                        env_id,
                        num_envs=many.num_envs or 1,
                        vectorization_mode=many.mode,
                        vector_kwargs=many.vector_kwargs(),
                        **cast("dict[str, Any]", kwargs),
                    )
            return made
        except gymnasium.error.Error as error:
            # The base class itself is what gymnasium raises for a malformed id.
            unknown = isinstance(error, gymnasium.error.UnregisteredEnv)
            if not unknown and type(error) is not gymnasium.error.Error:
                raise
            raise ConfigurationError(
                f"gymnasium has no environment {env_id!r}: {error}",
                code="unknown_environment",
                hint="Check the id; write module:ID for one that a module registers.",
            ) from error
        except ModuleNotFoundError as error:
            raise EnvironmentException(
                f"{env_id!r} needs a module that is not installed: {error}",
                operation="make",
                remote_type=type(error).__name__,
            ) from error

    make.__qualname__ = f"gymnasium.make({env_id!r})"
    return make


def attribute_of(path: str) -> object:
    """Return what a text such as `module:attribute` names; dots may follow in the attribute.

    Raises:
        ConfigurationError: it names nothing, or the module cannot be imported.
    """
    module_name, colon, attribute = path.partition(":")
    if not colon or not module_name or not attribute:
        raise ConfigurationError(
            f"{path!r} does not name an attribute of a module", hint="Write module:attribute."
        )
    try:
        found: object = import_module(module_name)
    except Exception as error:
        raise ConfigurationError(
            f"the module {module_name!r} of {path!r} cannot be imported: "
            f"{type(error).__name__}: {error}",
            code="not_importable",
            hint="Is it installed, or in the folder the server was started in?",
        ) from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(
                f"{path!r}: {found!r} has no attribute {name!r}",
                code="not_importable",
                hint="Name a class, a function, or an id that the module registers with gymnasium.",
            )
        found = getattr(found, name)
    return found


def _of_module(path: str, kwargs: Mapping[str, object]) -> Factory:
    return _factory_of(attribute_of(path), path, kwargs)


def _factory_of(found: object, path: str, kwargs: Mapping[str, object]) -> Factory:
    usable_one = usable(found, kwargs)
    if hasattr(usable_one, MADE_BY):
        kwargs = {}  # it is bound to them
    found = usable_one
    make = getattr(found, "make", None)
    maker = make if callable(make) and not isinstance(found, type) else found
    if not callable(maker):
        raise ConfigurationError(
            f"{path!r} is {found!r}, which makes no environment",
            hint="Name a class, a function, or an object with make().",
        )
    found_maker = cast("Callable[..., object]", maker)

    def factory() -> object:
        return found_maker(**kwargs)

    # Failures of the factory are told under this name.
    factory.__qualname__ = f"{PYTHON}{path}"
    factory.__dict__["__wrapped__"] = found_maker
    factory.__dict__[MADE_BY] = found
    return factory
