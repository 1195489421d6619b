"""Reading what a verifier judges by, and refusing what is wrong in it by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import cast

from rlcore import ConfigurationError


def refused(where: str, what: str, hint: str | None = None) -> ConfigurationError:
    """The refusal of a part of the logic."""
    return ConfigurationError(f"{where}: {what}", code="invalid_verifier", hint=hint)


def require_known(logic: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """Refuse a key that says nothing here.

    Raises:
        ConfigurationError: naming it, and the nearest one that does.
    """
    for key in logic:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}"
            raise refused(where, f"unknown key {key!r}", hint)


def number(logic: Mapping[str, object], key: str, default: float, where: str) -> float:
    """A finite number.

    Raises:
        ConfigurationError: it is none.
    """
    value = logic.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refused(where, f"{key} is a number, not {value!r}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise refused(where, f"{key} is a finite number, not {value!r}")
    return found


def flag(logic: Mapping[str, object], key: str, default: bool, where: str) -> bool:
    """True or false.

    Raises:
        ConfigurationError: it is something else; a text such as "false" too.
    """
    value = logic.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise refused(where, f"{key} is true or false, not {value!r}"[:300])
    return value


def share(logic: Mapping[str, object], key: str, default: float, where: str) -> float:
    """A number from 0 to 1.

    Raises:
        ConfigurationError: it is none.
    """
    found = number(logic, key, default, where)
    if not 0 <= found <= 1:
        raise refused(where, f"{key} is from 0 to 1, not {found:g}")
    return found


def texts(logic: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        ConfigurationError: it is none.
    """
    value = logic.get(key)
    if value is None:
        return ()
    found = sequence(value)
    if found is None or not all(isinstance(one, str) and one for one in found):
        raise refused(where, f"{key} is a list of texts")
    return tuple(cast("Sequence[str]", found))


def objects(logic: Mapping[str, object], key: str, where: str) -> list[Mapping[str, object]]:
    """A list of objects.

    Raises:
        ConfigurationError: it is none.
    """
    value = logic.get(key)
    if value is None:
        return []
    found = sequence(value)
    if found is None or not all(isinstance(one, Mapping) for one in found):
        raise refused(where, f"{key} is a list of objects")
    return [cast("Mapping[str, object]", one) for one in found]


def sequence(value: object) -> Sequence[object] | None:
    """The value, if it is a list."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else None
