"""The checks that every client makes on its arguments."""

from __future__ import annotations

import math
import operator
from typing import SupportsIndex

from rlcore import ConfigurationError

INT64 = range(-(2**63), 2**63)


def checked_seconds(name: str, seconds: float | None) -> float | None:
    """Return a time limit; 0 and None mean no limit.

    Raises:
        ConfigurationError: it is negative or not finite.
    """
    if seconds is None or seconds == 0:
        return None
    if seconds < 0 or not math.isfinite(seconds):
        raise ConfigurationError(
            f"{name} is {seconds!r}", hint="Give a number of seconds, or None for no limit."
        )
    return float(seconds)


def checked_wait(seconds: float) -> float:
    """Return how long to wait for a server.

    Raises:
        ConfigurationError: it is negative or not finite.
    """
    if seconds < 0 or not math.isfinite(seconds):
        raise ConfigurationError(
            f"wait_for_server_seconds is {seconds!r}", hint="Give a number of seconds, 0 for none."
        )
    return float(seconds)


def checked_seed(seed: SupportsIndex | None) -> int | None:
    """Return a seed that can travel.

    Raises:
        TypeError: it is not a whole number.
        OverflowError: it does not fit 64 bits.
    """
    if seed is None:
        return None
    number = operator.index(seed)
    if number not in INT64:
        raise OverflowError(f"the seed {number} does not fit 64 bits with a sign")
    return number
