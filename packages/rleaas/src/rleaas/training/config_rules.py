"""Rules for single values of a training request: each returns the value or refuses it by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from rlcore import ConfigurationError

DAY_SECONDS = 86400


def positive_int(key: str, value: object) -> int:
    """`value`, if it is an int above 0 (a bool is none).

    Raises:
        ConfigurationError: naming `key`.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise bad(key, value, "must be an integer above 0")
    return value


def bad(key: str, value: object, rule: str) -> ConfigurationError:
    """The refusal of a value."""
    return ConfigurationError(f"{key} {rule}, got {value!r}", code="invalid_training_config")


def unknown(key: str, where: str, valid: Sequence[str]) -> ConfigurationError:
    """The refusal of a key, with the nearest valid one."""
    near = difflib.get_close_matches(str(key), valid, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]!r}?" if near else f"Valid keys: {', '.join(sorted(valid))}"
    return ConfigurationError(
        f"unknown key {key!r} in {where}", code="unknown_config_key", hint=hint
    )


def mapping(key: str, value: object) -> Mapping[str, object]:
    """An object."""
    if not isinstance(value, Mapping):
        raise bad(key, value, "must be an object")
    return cast("Mapping[str, object]", value)


def number(key: str, value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad(key, value, "must be a number")
    try:
        found = float(value)
    except OverflowError:
        raise bad(key, value, "must fit a floating-point number") from None
    if not math.isfinite(found):
        raise bad(key, value, "must be a finite number")
    return found


def above_zero(key: str, value: object) -> float:
    """A number above 0."""
    found = number(key, value)
    if found <= 0:
        raise bad(key, value, "must be above 0")
    return found


def seconds_of_a_day(key: str, value: object) -> float:
    """A number above 0, up to a day's seconds."""
    found = above_zero(key, value)
    if found > DAY_SECONDS:
        raise bad(key, value, f"must be at most {DAY_SECONDS}, the seconds of a day")
    return found


def at_least_zero(key: str, value: object) -> float:
    """A number from 0."""
    found = number(key, value)
    if found < 0:
        raise bad(key, value, "must be at least 0")
    return found


def fraction(key: str, value: object) -> float:
    """A number from 0 to 1."""
    found = number(key, value)
    if not 0 <= found <= 1:
        raise bad(key, value, "must be between 0 and 1")
    return found


def positive_fraction(key: str, value: object) -> float:
    """A number above 0, up to 1."""
    found = fraction(key, value)
    if found == 0:
        raise bad(key, value, "must be above 0")
    return found


def seed(key: str, value: object) -> int:
    """An integer of 32 bits."""
    # numpy's legacy seeding, which stable-baselines3 calls, takes 32 bits.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**32:
        raise bad(key, value, "must be an integer from 0 to 2**32 - 1")
    return value


def batch_size(key: str, value: object) -> int:
    """An integer from 2."""
    if positive_int(key, value) < 2:
        # Advantages are normalised over a batch, which one sample cannot be.
        raise bad(key, value, "must be at least 2")
    return cast("int", value)


def num_envs(key: str, value: object) -> int:
    """An integer from 1 to 64."""
    if positive_int(key, value) > 64:
        raise bad(key, value, "must be at most 64")
    return cast("int", value)


def text(key: str, value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise bad(key, value, "must be a string")
    return value


def one_of(choices: Sequence[str]) -> Callable[[str, object], str]:
    """The rule that a value is one of these words."""

    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise bad(key, value, f"must be one of {', '.join(choices)}")
        return value

    return check


def net_arch(key: str, value: object) -> tuple[int, ...]:
    """The widths of a network's layers."""
    widths = sequence(value)
    if not widths:
        raise bad(key, value, "must be a non-empty list of layer widths")
    return tuple(positive_int(f"{key}[{i}]", width) for i, width in enumerate(widths))


def sequence(value: object) -> Sequence[object]:
    """A list's or tuple's items; nothing for anything else."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
