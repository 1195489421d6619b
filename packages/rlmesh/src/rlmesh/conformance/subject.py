"""What is checked: a served environment, one that can be made, or one that is there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from rlcore import ConfigurationError, Endpoint

from rlmesh.client.options import CONNECT_SECONDS, ConnectOptions
from rlmesh.server.environments import make_env
from rlmesh.server.sources import GYM, PYTHON, is_gymnasium_id, load_factory, look_here

Env: TypeAlias = Any  # whatever has reset and step: gymnasium's, or the user's own class

_HOST_AND_PORT = re.compile(r"^\[?[\w.-]*[\w:.-]*\]?:\d+$")
# A client gives up first, so that its own words about a server that hangs are heard.
HEAD_START = 0.9


class NoTarget(ConfigurationError, TypeError):
    """What was given to check is no environment, and names or makes none."""

    default_code = "not_an_environment"


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment to check.

    Attributes:
        name: how it was named.
        source: what another process can make it from; None where only this one can.
        address: where it is served; None for one in this process.
        borrowed: whether it is the caller's own instance, which is not to be closed.
        patience: how many seconds longer than a call it may take to make.
        takes_render_mode: whether it can be made with one.
    """

    name: str
    _make: Callable[[dict[str, object]], Env] = field(repr=False)
    source: str | None = None
    address: object | None = None
    borrowed: bool = False
    patience: float = 0.0
    takes_render_mode: bool = False

    def make(self, **kwargs: object) -> Env:
        """Return an environment: a new one, a new client, or the borrowed one.

        Raises:
            Error: it cannot be made, or nothing answers at the address.
        """
        return self._make(kwargs)


def subject_of(target: object, *, seconds: float, connect: ConnectOptions | None = None) -> Subject:
    """Return what a target means.

    Args:
        target: an address (`tcp://`, `unix://`, `rleaas://`), an `rlcore.Endpoint`, or a server; a
            gymnasium id; `module:attribute`; a factory; or an environment.
        seconds: how long a call on a served environment may take.
        connect: how its server is reached: a token, whom to trust, how long to wait for it.

    Raises:
        ConfigurationError: it means nothing.
        MissingDependencyError: it is a gymnasium id, and gymnasium is not installed.
    """
    options = connect or ConnectOptions()
    if isinstance(target, Subject):
        return target
    if isinstance(target, str):
        return _named(target.strip(), seconds, options)
    if isinstance(target, Endpoint):
        return _served(target, str(target.address), seconds, options)
    if not isinstance(target, type) and _has(target, "reset") and _has(target, "step"):
        return _borrowed(target)
    if isinstance(getattr(target, "address", None), str):
        return _served(target, str(getattr(target, "address", "")), seconds, options)
    maker = target
    if isinstance(target, type) and _has(target, "make") and not _has(target, "step"):
        maker = cast("Callable[[], object]", target)()
    make = getattr(maker, "make", None)
    if callable(make) and not isinstance(maker, type):
        return _made_by(cast("Callable[[], object]", make), type(maker).__name__)
    if callable(target):
        return _made_by(cast("Callable[[], object]", target), _name_of(target))
    raise NoTarget(
        f"{target!r} is no environment",
        hint="Give an address, a gymnasium id, module:attribute, a factory, or an environment.",
    )


def is_address(text: str) -> bool:
    """Return whether a text is where an environment is served, and not what makes one."""
    return ("://" in text and not text.startswith((GYM, PYTHON))) or bool(
        _HOST_AND_PORT.match(text)
    )


def _named(text: str, seconds: float, connect: ConnectOptions) -> Subject:
    if not text:
        raise ConfigurationError("the target is empty", hint="Name an environment.")
    if is_address(text):
        return _served(text, text, seconds, connect)
    look_here()
    named = load_factory(text)  # whatever is wrong with the name is said now

    def make(kwargs: dict[str, object]) -> Env:
        return make_env(load_factory(text, kwargs))

    takes_mode = is_gymnasium_id(text) or _takes_render_mode(named)
    return Subject(text, make, source=text, takes_render_mode=takes_mode)


def _served(address: object, name: str, seconds: float, connect: ConnectOptions) -> Subject:
    def make(kwargs: dict[str, object]) -> Env:
        from rlmesh.conformance.dialling import dial

        return dial(address, seconds=seconds * HEAD_START, connect=connect)

    # A client is dialled twice: what it is, only the handshake tells.
    patience = 2 * (connect.get("connect_timeout_seconds") or CONNECT_SECONDS)
    patience += connect.get("wait_for_server_seconds", 0.0)
    return Subject(name, make, address=address, patience=patience)


def _borrowed(env: Env) -> Subject:
    return Subject(type(env).__name__, lambda kwargs: env, borrowed=True)


def _made_by(factory: Callable[[], object], name: str) -> Subject:
    def make(kwargs: dict[str, object]) -> Env:
        return make_env(partial(factory, **kwargs) if kwargs else factory)

    return Subject(name, make, takes_render_mode=_takes_render_mode(factory))


def _takes_render_mode(factory: Callable[..., object]) -> bool:
    """Tell whether a factory names the argument: what takes any may well ignore it."""
    try:
        return "render_mode" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # as of classes that are written in C
        return False


def _has(target: object, name: str) -> bool:
    return callable(getattr(target, name, None))


def _name_of(target: object) -> str:
    return str(getattr(target, "__qualname__", None) or type(target).__name__)
