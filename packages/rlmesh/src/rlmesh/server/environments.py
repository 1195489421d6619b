"""Where the environments of a server come from: one that all sessions share, or one for each."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, Protocol, cast

from rlcore import EnvironmentException, Error

from rlmesh.protocol.faults import text_of
from rlmesh.server.factories import begin, end, name_of
from rlmesh.server.vectors import LaneSet, Sort, as_served, served_contract, sort_of
from rlmesh.specs import EnvContract
from rlmesh.values import NUMPY, Backend

Env = Any  # whatever has reset and step: gymnasium's, or the user's own class
SEVERAL: tuple[type, ...] = (list, tuple, LaneSet)


class Environments(Protocol):
    """Gives environments to sessions and takes them back.

    Attributes:
        contract: what each of them promises.
        sort: what they are.
        reward_threshold: the return at which their specification calls them solved, if it says so.
        private: whether a session gets one of its own.
        apart: whether that one lives in a process of its own.
        backend: what makes the arrays of the actions.
    """

    contract: EnvContract
    sort: Sort
    reward_threshold: float | None
    private: bool
    apart: bool
    backend: Backend

    def take(self) -> Env:
        """Return a session's environment; called in the session's thread."""
        ...

    def give_back(self, env: Env | None) -> None:
        """Close a session's environment if it was the session's own; in the session's thread."""
        ...

    def close(self) -> None:
        """Close what is left."""
        ...


class TheOne:
    """One environment that sessions use one after another."""

    private = False
    apart = False
    backend: Backend = NUMPY

    def __init__(self, env: Env, *, close_at_end: bool) -> None:
        env = as_served(env)
        self.contract = served_contract(env)
        self.sort: Sort = sort_of(env)
        self.reward_threshold = solved_at(env)
        self._env = env
        self._close_at_end = close_at_end
        self._closed = threading.Lock()

    def take(self) -> Env:
        """Return the environment."""
        return self._env

    def give_back(self, env: Env | None) -> None:
        """Do nothing: the environment stays as it is for the next session."""

    def close(self) -> None:
        """Close the environment, unless that was left to its owner."""
        if self._close_at_end and self._closed.acquire(blocking=False):
            close_env(self._env)


class OneEach:
    """A factory that makes an environment for each session.

    One is made at once and closed again, because only an environment can tell its contract. It is
    not kept for the first session: an environment lives and ends in the thread that made it.
    The factory is prepared here and closed at the end, where it can be.
    """

    private = True
    apart = False
    backend: Backend = NUMPY

    def __init__(self, factory: Callable[[], object]) -> None:
        self._factory = factory
        self._open = threading.Lock()
        begin(factory)
        try:
            probe = make_env(factory)
            try:
                self.contract = served_contract(probe)
                self.sort: Sort = sort_of(probe)
                self.reward_threshold = solved_at(probe)
            finally:
                close_env(probe)
        except BaseException:
            end(factory)
            raise

    def take(self) -> Env:
        """Return an environment of the session's own.

        Raises:
            EnvironmentException: the factory raised, or made something else than it did first.
        """
        return made_as_promised(self._factory, self.contract)

    def give_back(self, env: Env | None) -> None:
        """Close a session's environment."""
        if env is not None:
            close_env(env)

    def close(self) -> None:
        """Close the factory; each session closes its own environment."""
        if self._open.acquire(blocking=False):
            end(self._factory)


def solved_at(env: Env) -> float | None:
    """The return at which the specification of an environment calls it solved, if it says so."""
    one = env.envs[0] if isinstance(env, LaneSet) else env
    told = getattr(getattr(one, "spec", None), "reward_threshold", None)
    if not isinstance(told, int | float) or not math.isfinite(told):
        return None
    return float(told)


def environments_of(
    source: object, *, close_at_end: bool, backend: Backend = NUMPY
) -> Environments:
    """Return the environments that a server is given: an environment, or a factory of them.

    `backend` is what makes the arrays of the actions that they are stepped with.

    Raises:
        TypeError: it is neither.
        EnvironmentException: the factory raised.
    """
    factory = factory_in(source)
    environments: Environments
    if factory is not None:
        environments = OneEach(factory)
    else:
        environments = TheOne(source, close_at_end=close_at_end)
    environments.backend = backend
    return environments


def made_as_promised(factory: Callable[[], object], promised: EnvContract) -> Env:
    """Return what a factory makes, which has to have the contract that was promised.

    Raises:
        EnvironmentException: the factory raised, or made something else.
    """
    env = make_env(factory)
    try:
        contract = served_contract(env)
        if contract.digest != promised.digest:
            raise EnvironmentException(
                f"the factory now makes {contract.id!r} with another contract than at first",
                operation="make",
                environment=promised.id,
                hint="A factory has to make the same environment each time.",
            )
    except BaseException:
        close_env(env)
        raise
    return env


def make_env(factory: Callable[[], object]) -> Env:
    """Return what a factory makes.

    Raises:
        EnvironmentException: it raised, or made no environment.
        Error: it raised one of ours.
    """
    name = name_of(factory)
    try:
        env = factory()
    except Error:
        raise
    except SystemExit as error:
        raise EnvironmentException(
            f"{name} exited ({error.code!r}) instead of making an environment",
            operation="make",
            remote_type=type(error).__name__,
        ) from error
    except Exception as error:
        raise EnvironmentException(
            f"{name} could not make an environment: {type(error).__name__}: {text_of(error)}",
            operation="make",
            remote_type=type(error).__name__,
        ) from error
    if not (isinstance(env, SEVERAL) or _steps(env)):
        raise EnvironmentException(
            f"{name} made {env!r}, which has no reset and step", operation="make"
        )
    return as_served(env)


def close_env(env: Env) -> None:
    """Close an environment.

    Raises:
        EnvironmentException: it raised.
    """
    try:
        env.close()
    except Exception as error:
        raise EnvironmentException(
            f"close failed: {type(error).__name__}: {text_of(error)}",
            operation="close",
            remote_type=type(error).__name__,
        ) from error


def factory_in(source: object) -> Callable[[], object] | None:
    """Return the factory that a server was given; None: it was given environments."""
    if isinstance(source, LaneSet) or (not isinstance(source, type) and _steps(source)):
        return None
    make = getattr(source, "make", None)
    if callable(make) and not isinstance(source, type):
        return cast("Callable[[], object]", make)
    return cast("Callable[[], object]", source) if callable(source) else None


def _steps(env: object) -> bool:
    return callable(getattr(env, "reset", None)) and callable(getattr(env, "step", None))
