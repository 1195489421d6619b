"""The checks that a run makes on its arguments before anything is opened."""

import math
import operator
from collections.abc import Callable, Iterable
from typing import SupportsFloat, SupportsIndex, TypeVar, cast

from rlcore import ConfigurationError

from rlmesh.runs.hooks import RunHooks

F = TypeVar("F", bound=Callable[..., object])


def whole_number(value: object, name: str) -> int:
    """Return an integer.

    Raises:
        ConfigurationError: it is none.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ConfigurationError(f"{name} is {value!r}", hint="give a whole number")
    try:
        return operator.index(value)
    except TypeError as error:
        raise ConfigurationError(f"{name} is {value!r}", hint="give a whole number") from error


def number(value: object, name: str) -> float:
    """Return a number as a float; infinity is one, NaN is not.

    Raises:
        ConfigurationError: it is none.
    """
    wrong = ConfigurationError(f"{name} is {value!r}", hint="give a number")
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise wrong
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong from error
    if math.isnan(found):
        raise wrong
    return found


def function(value: F | None, name: str) -> F | None:
    """Return what can be called, or None.

    Raises:
        ConfigurationError: it cannot be called.
    """
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} is {value!r}", hint="give a function")
    return value


def count_given(value: SupportsIndex | None, name: str, *, least: int = 0) -> int | None:
    """Return a number of things, or None.

    Raises:
        ConfigurationError: it is no whole number, or less than the least.
    """
    if value is None:
        return None
    found = whole_number(value, name)
    if found < least:
        raise ConfigurationError(f"{name} is {found}", hint=f"give {least} or more")
    return found


def hooks_given(hooks: RunHooks | Iterable[RunHooks] | None) -> tuple[RunHooks, ...]:
    """Return the hooks, one after another.

    Raises:
        ConfigurationError: these are no hooks.
    """
    if hooks is None:
        return ()
    given: object = hooks
    if isinstance(given, RunHooks):
        return (given,)
    several = tuple(cast("list[object]", given)) if isinstance(given, list | tuple) else (given,)
    for hook in several:
        if not isinstance(hook, RunHooks):
            raise ConfigurationError(
                f"hooks is {hooks!r}",
                hint="give an object of a RunHooks subclass, or a list of such",
            )
    return cast("tuple[RunHooks, ...]", several)
