"""Factories with a life: prepared once before they make anything, closed when nobody uses them.

Whoever makes environments says `begin` before and `end` after. One factory may serve several users
at once, such as two servers: it is prepared for the first and closed after the last, in each of
the processes it is used in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Final, cast

from rlcore import EnvironmentException, Error
from rlcore.log import logger

from rlmesh.protocol.faults import text_of
from rlmesh.specs import EnvContract

log = logger("rlmesh", "server")

# What a function that makes environments by means of another thing says it with.
MADE_BY: Final = "made_by"


@dataclass
class _Life:
    """A factory in use; it is kept by its `id`, which is its own for as long as it is kept."""

    factory: Any  # Any: the author's own
    users: int = 0
    prepared: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)


_lives: dict[int, _Life] = {}
_guard = threading.Lock()


def usable(source: object, kwargs: Mapping[str, object] | None = None) -> object:
    """Return what makes environments where a source is a class of factories, or a factory.

    What has parameters of its own is bound to the arguments, which checks them.

    Raises:
        EnvironmentException: the class raised.
        ParamError: an argument is not what its parameter can be.
    """
    source = instance_of(source)
    bind = getattr(source, "with_params", None)
    if callable(bind) and hasattr(source, "tag_params") and not isinstance(source, type):
        return bind(**(kwargs or {}))
    return source


def instance_of(source: object) -> object:
    """Return an instance of a class of factories; what is none is returned as it is.

    Raises:
        EnvironmentException: the class raised.
    """
    return _called("make", source, source) if is_factory_class(source) else source


def is_factory_class(source: object) -> bool:
    """Tell whether something is a class whose instances make environments and are none."""
    return (
        isinstance(source, type)
        and callable(getattr(source, "make", None))
        and not hasattr(source, "step")
    )


def begin(source: object) -> None:
    """Prepare the factory behind a source, unless somebody uses it already.

    Raises:
        EnvironmentException: `prepare` raised.
    """
    factory = origin(source)
    if not has_a_life(factory):
        return
    with _guard:
        life = _lives.setdefault(id(factory), _Life(factory))
        life.users += 1
    with life.lock:
        if life.prepared:
            return
        try:
            prepare = getattr(factory, "prepare", None)
            if callable(prepare):
                _called("prepare", factory, prepare)
        except BaseException:
            _leave(life)
            raise
        life.prepared = True


def end(source: object) -> None:
    """Close the factory behind a source, unless somebody else still uses it.

    Raises:
        EnvironmentException: `close` raised.
    """
    factory = origin(source)
    with _guard:
        life = _lives.get(id(factory))
    if life is None:
        return
    # A user that comes meanwhile waits, and has it prepared once more.
    with life.lock:
        close = getattr(factory, "close", None)
        if _leave(life) and life.prepared:
            life.prepared = False
            if callable(close):
                _called("close", factory, close)


@contextmanager
def opened(source: object) -> Generator[None]:
    """Use the factory behind a source for as long as the block runs.

    Raises:
        EnvironmentException: its `prepare` or its `close` raised.
    """
    begin(source)
    try:
        yield
    finally:
        end(source)


def origin(source: object) -> object:
    """Return the factory that a source makes environments with: itself, or what is behind it."""
    while True:
        behind = getattr(source, MADE_BY, None)
        if behind is None and isinstance(source, MethodType):
            behind = source.__self__
        if behind is None or isinstance(source, type):
            return source
        source = behind


def name_of(function: Callable[..., object]) -> str:
    """Return what errors call a function that makes environments: as its author named it."""
    if isinstance(function, MethodType):
        # What stands in for a factory has its name, and a class of its own.
        owner: object = getattr(function.__self__, "__dict__", {}).get("__qualname__")
        if isinstance(owner, str):
            return f"{owner}.{function.__name__}"
    return getattr(function, "__qualname__", repr(function))


def has_a_life(factory: object) -> bool:
    """Tell whether something makes environments and is neither one itself nor a class."""
    return (
        not isinstance(factory, type)
        and callable(getattr(factory, "make", None))
        and not callable(getattr(factory, "step", None))
    )


def declared(source: object, name: str) -> str | None:
    """Return what a factory says of itself under a name, such as its framework."""
    factory = origin(source)
    said: object = getattr(factory, name, None) if has_a_life(factory) else None
    return said if isinstance(said, str) else None


def told(source: object, contract: EnvContract) -> Mapping[str, str]:
    """Return what a factory has clients told at the handshake, as far as it can be told.

    What fails here is logged, and no reason not to serve.
    """
    tell = _method_behind(source, "peer_extra")
    if tell is None:
        return {}
    try:
        return cast("Mapping[str, str]", tell(contract))
    except Exception:  # the author's code is asked what it is
        log.warning("%r could not be described to clients", source, exc_info=True)
        return {}


def lane_maker(factory: Callable[[], object]) -> Callable[[], object]:
    """Return what makes the lanes that gymnasium's vector environments step."""
    return _method_behind(factory, "make_lane") or factory


def _method_behind(source: object, name: str) -> Any:  # Any: a callable, or None
    while source is not None and not isinstance(source, type):
        found = getattr(source, name, None)
        if callable(found):
            return found
        behind = getattr(source, MADE_BY, None)
        source = source.__self__ if behind is None and isinstance(source, MethodType) else behind
    return None


def _leave(life: _Life) -> bool:
    with _guard:
        life.users -= 1
        if life.users == 0:
            del _lives[id(life.factory)]
        return life.users == 0


def _called(operation: str, factory: object, function: Any) -> object:  # Any: a callable
    name = getattr(factory, "__qualname__", type(factory).__qualname__)
    try:
        return cast("object", function())
    except Error:
        raise
    except (Exception, SystemExit) as error:
        raise EnvironmentException(
            f"{operation} of the factory {name} failed: {type(error).__name__}: {text_of(error)}",
            operation=operation,
            remote_type=type(error).__name__,
        ) from error
