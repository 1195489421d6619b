"""How an environment is made in another process: what can be sent there, and what is there then."""

from __future__ import annotations

import importlib.util
import multiprocessing.spawn
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from rlcore import ConfigurationError

from rlmesh.server.environments import Env, close_env, factory_in, make_env, solved_at
from rlmesh.server.factories import begin, end
from rlmesh.server.framework import action_backend
from rlmesh.server.vector_sources import Many, several
from rlmesh.server.vectors import Sort, served_contract, sort_of
from rlmesh.specs import EnvContract
from rlmesh.values import Backend

MAIN = ("init_main_from_name", "init_main_from_path")


class Made:
    """One environment, made for one session; see `Environments`."""

    private = True
    apart = False

    def __init__(self, factory: Callable[[], object], backend: Backend) -> None:
        self._factory = factory
        self.backend = backend
        begin(factory)
        try:
            self.env = make_env(factory)
            self.contract: EnvContract = served_contract(self.env)
            self.sort: Sort = sort_of(self.env)
            self.reward_threshold = solved_at(self.env)
        except BaseException:
            end(factory)
            raise

    def take(self) -> Env:
        """Return the environment."""
        return self.env

    def give_back(self, env: Env | None) -> None:
        """Do nothing: whoever made it closes it."""

    def close(self) -> None:
        """Close the environment, and the factory that made it."""
        try:
            close_env(self.env)
        finally:
            end(self._factory)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a server was given, to make environments of it elsewhere.

    Attributes:
        source: the factory.
        many: how many lanes it is to have.
        framework: whose arrays it is stepped with.
        device: where those are put.
    """

    source: object
    many: Many = field(default_factory=Many)
    framework: str | None = None
    device: object = None

    def make(self) -> Made:
        """Make an environment.

        Raises:
            EnvironmentException: the factory raised.
        """
        factory = factory_in(several(self.source, self.many))
        if factory is None:
            raise ConfigurationError(
                f"{self.source!r} is one environment, which cannot be made again in a process of "
                "its own",
                hint="Serve a factory, or use isolation='thread'.",
            )
        return Made(factory, action_backend(self.framework, self.device))

    def sendable(self) -> tuple[dict[str, Any], bytes]:  # Any: what multiprocessing prepares with
        """Return what a new process is prepared with, and the recipe for it.

        Raises:
            ConfigurationError: it is one environment, or a factory that cannot be sent.
        """
        if factory_in(self.source) is None:
            raise ConfigurationError(
                f"isolation='process' is for factories, and {self.source!r} is one environment",
                hint="Serve a class, a function, or module:attribute.",
            )
        preparation = dict(multiprocessing.spawn.get_preparation_data("rlmesh-env"))
        preparation.pop("authkey", None)  # a secret for processes that talk by other means
        data, failure = _dumped(pickle.dumps, self)
        needs_main = data is None or b"__main__" in data
        findable = any(key in preparation for key in MAIN)
        if data is None or (needs_main and not findable):
            data, failure = _by_value(self, failure)
            needs_main = False
        if not needs_main:
            for key in MAIN:
                preparation.pop(key, None)
        return preparation, data


def _by_value(recipe: Recipe, failure: Exception | None) -> tuple[bytes, None]:
    if importlib.util.find_spec("cloudpickle") is not None:
        cloudpickle = importlib.import_module("cloudpickle")
        data, failure = _dumped(cast("Callable[[object], bytes]", cloudpickle.dumps), recipe)
        if data is not None:
            return data, None
    name = getattr(recipe.source, "__qualname__", repr(recipe.source))
    where = f"; it is defined in {sys.modules['__main__']!r}" if failure is None else ""
    raise ConfigurationError(
        f"the factory {name} cannot be sent to a process of its own{where}"
        f"{'' if failure is None else f': {failure}'}",
        code="not_sendable",
        hint="Define it at the top of a module, name it as module:attribute, install cloudpickle, "
        "or use isolation='thread'.",
    ) from failure


def _dumped(
    dump: Callable[[object], bytes], value: object
) -> tuple[bytes | None, Exception | None]:
    try:
        return dump(value), None
    except Exception as error:  # what cannot be pickled says so in many ways
        return None, error
