"""The environment that a name stands for, made as servers make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from rlcore import ConfigurationError

from rlmesh.server.factories import begin
from rlmesh.server.sources import GYM, PYTHON, load_factory
from rlmesh.server.vector_sources import many_of


def load_env(
    env_id: str,
    *,
    packages: Sequence[str] = (),
    num_envs: int = 1,
    vectorization_mode: str | None = None,
    kwargs: Mapping[str, object] | None = None,
) -> Any:  # Any: an environment, a list of them, or a vector environment
    """Return the environment with a gymnasium id.

    Args:
        env_id: the id.
        packages: modules to import first, for what they register.
        num_envs: how many; several without a mode are a list of environments.
        vectorization_mode: `sync`, `async` or `vector_entry_point` for a vector environment.
        kwargs: what each is made with.

    Raises:
        ConfigurationError: there is no such environment, or a module cannot be imported.
        EnvironmentException: it could not be made.
    """
    return _made(f"{GYM}{env_id}", packages, num_envs, vectorization_mode, kwargs)


def load_env_entrypoint(
    entrypoint: str,
    *,
    packages: Sequence[str] = (),
    num_envs: int = 1,
    vectorization_mode: str | None = None,
    kwargs: Mapping[str, object] | None = None,
) -> Any:  # Any: an environment, a list of them, or a vector environment
    """Return the environment that `module:attribute` makes: a class, a factory or a function.

    A factory is prepared before, and stays so for as long as the process runs. The arguments are
    those of `load_env`.

    Raises:
        ConfigurationError: it names nothing that makes environments.
        ParamError: an argument is not what its parameter can be.
        EnvironmentException: it could not be made.
    """
    return _made(f"{PYTHON}{entrypoint}", packages, num_envs, vectorization_mode, kwargs)


def import_packages(names: Sequence[str]) -> None:
    """Import modules for what they register.

    Raises:
        ConfigurationError: one cannot be imported.
    """
    for name in names:
        try:
            import_module(name)
        except Exception as error:
            raise ConfigurationError(
                f"the package {name!r} cannot be imported: {type(error).__name__}: {error}",
                code="not_importable",
                hint="Is it installed, or in the folder the server was started in?",
            ) from error


def _made(
    source: str,
    packages: Sequence[str],
    num_envs: int,
    vectorization_mode: str | None,
    kwargs: Mapping[str, object] | None,
) -> Any:
    import_packages(packages)
    count = None if num_envs == 1 and vectorization_mode is None else num_envs
    factory = load_factory(source, kwargs, many_of(count, vectorization_mode))
    begin(factory)
    return factory()
