"""The checks that a run makes on its arguments before anything is opened."""

import math
import operator
from collections.abc import Callable
from typing import SupportsFloat, SupportsIndex, TypeVar, cast

from rlcore import ConfigurationError

from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.results import EpisodeResult

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


def checked_max_failures(value: SupportsIndex | None) -> int | None:
    """Return how many failures are put up with; None means any number.

    Raises:
        ConfigurationError: it is no number, or negative.
    """
    if value is None:
        return None
    found = whole_number(value, "max_failures")
    if found < 0:
        raise ConfigurationError(f"max_failures is {found}", hint="give 0 or more")
    return found


def checked_hooks(
    hooks: RunHooks | None, on_episode: Callable[[EpisodeResult], object] | None
) -> RunHooks:
    """Return the hooks; ones that do nothing where none are given.

    Raises:
        ConfigurationError: these are no hooks, or `on_episode` cannot be called.
    """
    function(on_episode, "on_episode")
    if hooks is None:
        return RunHooks()
    if not isinstance(cast("object", hooks), RunHooks):
        raise ConfigurationError(
            f"hooks is {hooks!r}", hint="give an object of a RunHooks subclass"
        )
    return hooks
