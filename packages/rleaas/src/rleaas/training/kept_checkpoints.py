"""How many checkpoints of a job are kept: the setting, and what is right when nobody says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from rlcore import ConfigurationError

_MOST: Final = 1_000_000
_COUNT: Final = {"type": ["integer", "null"], "minimum": 0, "maximum": _MOST}

KEPT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "best": _COUNT,
        "metric": {"type": "string", "minLength": 1, "maxLength": 200},
        "last": {**_COUNT, "minimum": 1},
        "every": _COUNT,
        "states": {**_COUNT, "minimum": 1},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCheckpoints:
    """Which checkpoints of a job stay; the others go as new ones come.

    Whatever an agent, an evaluation or another training refers to stays too.

    Attributes:
        best: so many with the highest `metric`; those without one are not among them.
        metric: which figure decides.
        last: so many of the newest; None: all.
        every: of the others, every so-manyth that was saved; 0: none.
        states: so many of the newest keep what an exact resume needs; None: all.
    """

    best: int | None = 5
    metric: str = "avg_reward"
    last: int | None = 10
    every: int | None = 10
    states: int | None = 2


_NAMES: Final = tuple(one.name for one in fields(KeptCheckpoints))


def validate_kept(key: str, value: object) -> dict[str, object]:
    """The setting as it was given, checked; what it does not name is settled later.

    Raises:
        ConfigurationError: a part cannot be used; it is named.
    """
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"{key} is {value!r}, not an object", hint=f"Its keys are {', '.join(_NAMES)}"
        )
    given = cast("Mapping[object, object]", value)
    for name, one in given.items():
        if name not in _NAMES:
            raise ConfigurationError(
                f"{key}.{name} is no part of it", hint=f"Its keys are {', '.join(_NAMES)}"
            )
        if name == "metric":
            if not isinstance(one, str) or not 0 < len(one) <= 200:
                raise ConfigurationError(f"{key}.metric is {one!r}, not the name of a figure")
        elif one is not None:
            least = 1 if name in ("last", "states") else 0
            whole = isinstance(one, int) and not isinstance(one, bool)
            if not whole or not least <= cast("int", one) <= _MOST:
                raise ConfigurationError(
                    f"{key}.{name} is {one!r}, neither null nor a whole number from {least} on"
                )
    return {str(name): one for name, one in given.items()}


def settle_kept(*given: object) -> KeptCheckpoints:
    """The setting in force: of each part the first that one of these, in their order, names."""
    parts: dict[str, Any] = {}
    for one in reversed(given):
        if isinstance(one, Mapping):
            parts.update(cast("Mapping[str, Any]", one))
    return KeptCheckpoints(**{name: parts[name] for name in _NAMES if name in parts})
