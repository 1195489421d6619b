"""Rules for single values of a training request: each returns the value or refuses it by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from rlcore import ConfigurationError

DAY_SECONDS = 86400
MOST_LAYERS = 8
WIDEST_LAYER = 4096
# 32-bit floats end at 3.4e38, and the first step of Adam multiplies a learning rate by ten.
LARGEST_FACTOR = 3e37
LONGEST_NAME = 200
LONGEST_TEXT = 20_000
_LONGEST_SHOWN = 200


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
    return ConfigurationError(f"{key} {rule}, got {shown(value)}", code="invalid_training_config")


def shown(value: object) -> str:
    """A value as a refusal repeats it: whoever sent megabytes of it knows how it goes on."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def nearest(word: str, valid: Sequence[str]) -> str | None:
    """The advice to write the valid word that is most like this one; None: none is like it."""
    near = difflib.get_close_matches(word[:LONGEST_NAME], valid, n=1, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else None


def unknown(key: str, where: str, valid: Sequence[str]) -> ConfigurationError:
    """The refusal of a key, with the nearest valid one."""
    hint = nearest(str(key), valid) or f"Valid keys: {', '.join(sorted(valid))}"
    return ConfigurationError(
        f"unknown key {shown(key)} in {where}", code="unknown_config_key", hint=hint
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


def factor_above_zero(key: str, value: object) -> float:
    """A number above 0 that an optimiser of 32-bit floats can multiply by."""
    return _factor(key, above_zero(key, value))


def factor_from_zero(key: str, value: object) -> float:
    """A number from 0 that an optimiser of 32-bit floats can multiply by."""
    return _factor(key, at_least_zero(key, value))


def _factor(key: str, found: float) -> float:
    if found > LARGEST_FACTOR:
        raise bad(key, found, f"must be at most {LARGEST_FACTOR:.0e}")
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


def whole(least: int, most: int | None = None) -> Callable[[str, object], int]:
    """The rule that a value is an integer of this range."""

    def check(key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise bad(key, value, f"must be an integer from {least}")
        if most is not None and value > most:
            raise bad(key, value, f"must be at most {most}")
        return value

    return check


def model_width(key: str, value: object) -> int:
    """A multiple of 16 from 16 to 2048: four heads, each of an even number of rotated pairs."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value % 16
        or not 16 <= value <= 2048
    ):
        raise bad(key, value, "must be a multiple of 16 from 16 to 2048")
    return value


def flag(key: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise bad(key, value, "must be true or false")
    return value


def coefficient_or_auto(key: str, value: object) -> float | str:
    """A number from 0, or the word `auto`."""
    return "auto" if value == "auto" else factor_from_zero(key, value)


def gradient_steps(key: str, value: object) -> int:
    """An integer above 0, or -1."""
    return -1 if value == -1 and isinstance(value, int) else whole(1, 1_000_000)(key, value)


def name(key: str, value: object) -> str:
    """A string with something in it."""
    if not long_text(key, value).strip():
        raise bad(key, value, "must not be blank")
    return cast("str", value).strip()


_LORA = ("r", "alpha", "dropout", "target_modules")


def lora(key: str, value: object) -> Mapping[str, object] | bool:
    """The settings of low-rank adapters; true is the default ones, false is none."""
    if isinstance(value, bool):
        return value
    given = mapping(key, value)
    for part in given:
        if part not in _LORA:
            raise unknown(part, key, _LORA)
    checked: dict[str, object] = {}
    for part in ("r", "alpha"):
        if given.get(part) is not None:
            checked[part] = positive_int(f"{key}.{part}", given[part])
    if given.get("dropout") is not None:
        checked["dropout"] = fraction(f"{key}.dropout", given["dropout"])
    if given.get("target_modules") is not None:
        modules = sequence(given["target_modules"])
        if not modules:
            raise bad(f"{key}.target_modules", given["target_modules"], "must be a list of names")
        checked["target_modules"] = [name(f"{key}.target_modules", one) for one in modules]
    return checked


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


def short_text(key: str, value: object) -> str:
    """A string that fits a line of a list: up to 200 characters."""
    return _text_up_to(LONGEST_NAME, key, value)


def long_text(key: str, value: object) -> str:
    """A string of up to 20,000 characters: lists of jobs carry it."""
    return _text_up_to(LONGEST_TEXT, key, value)


def _text_up_to(most: int, key: str, value: object) -> str:
    found = text(key, value)
    if len(found) > most:
        raise ConfigurationError(
            f"{key} must have at most {most} characters, got {len(found)}",
            code="invalid_training_config",
        )
    return found


def one_of(choices: Sequence[str]) -> Callable[[str, object], str]:
    """The rule that a value is one of these words."""

    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise bad(key, value, f"must be one of {', '.join(choices)}")
        return value

    return check


def net_arch(key: str, value: object) -> tuple[int, ...]:
    """The widths of a network's layers: at most 8, each at most 4096 wide."""
    widths = sequence(value)
    if not widths:
        raise bad(key, value, "must be a non-empty list of layer widths")
    if len(widths) > MOST_LAYERS:
        raise ConfigurationError(
            f"{key} must have at most {MOST_LAYERS} layers, got {len(widths)}",
            code="invalid_training_config",
        )
    rule = whole(1, WIDEST_LAYER)
    return tuple(rule(f"{key}[{i}]", width) for i, width in enumerate(widths))


def sequence(value: object) -> Sequence[object]:
    """A list's or tuple's items; nothing for anything else."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def weights(key: str, value: object) -> Mapping[str, object] | tuple[object, ...]:
    """Numbers above 0, by name or in a row; whose they are, the request says."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, object]", value)
        return {one: above_zero(f"{key}[{one!r}]", weight) for one, weight in given.items()}
    if not isinstance(value, list | tuple):
        raise bad(key, value, "must be an object or a list of numbers")
    return tuple(above_zero(key, weight) for weight in sequence(cast("object", value)))


_HUMAN = "human_evaluation"


def human_evaluation(key: str, value: object) -> Mapping[str, object]:
    """`{"type": "human_evaluation"}`, the one kind of verifier that a config itself may name."""
    given = mapping(key, value)
    kind = given.get("type")
    if not isinstance(kind, str) or kind.strip().lower().replace("-", "_") != _HUMAN:
        raise bad(f"{key}.type", kind, f"must be {_HUMAN!r}; other verifiers are in verifier_ids")
    for part in given:
        if part != "type":
            raise unknown(part, key, ("type",))
    return {"type": _HUMAN}
