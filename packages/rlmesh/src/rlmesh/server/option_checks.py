"""What the options of a server can be, checked before anything is done with them."""

from __future__ import annotations

import math
from numbers import Real
from typing import NoReturn

from rlcore import ConfigurationError

HIGHEST_PORT = 65535


def require_bool(name: str, given: object) -> None:
    """Refuse what is neither True nor False.

    Raises:
        ConfigurationError: it is not; "no" would count as yes.
    """
    if not isinstance(given, bool):
        _refuse(name, given, "Use True or False.")


def require_whole(name: str, given: object, least: int, most: int | None, hint: str) -> None:
    """Refuse what is no whole number from `least` to `most`; None: without end.

    Raises:
        ConfigurationError: it is not.
    """
    if (
        isinstance(given, bool)
        or not isinstance(given, int)
        or given < least
        or (most is not None and given > most)
    ):
        _refuse(name, given, hint)


def require_seconds(name: str, given: object, least: float, hint: str) -> None:
    """Refuse what is no finite number of `least` seconds or more, or of more than none.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(given, bool) or not isinstance(given, Real):
        _refuse(name, given, hint)
    seconds = float(given)
    if not (least <= seconds < math.inf and seconds > 0):
        _refuse(name, given, hint)


def require_port(name: str, given: object) -> None:
    """Refuse what is no port, where 0 is a free one.

    Raises:
        ConfigurationError: it is not.
    """
    require_whole(name, given, 0, HIGHEST_PORT, "Use 1 to 65535, or 0 for a free one.")


def _refuse(name: str, given: object, hint: str) -> NoReturn:
    raise ConfigurationError(f"{name} is {given!r}", hint=hint)
