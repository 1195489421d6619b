"""The checks that every client makes on its arguments."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable
from numbers import Real
from typing import SupportsIndex

from rlcore import Bearer, ConfigurationError, Credential, Secret

INT64 = range(-(2**63), 2**63)
# Half of it, as gRPC adds the time since 1970 and counts in nanoseconds of 64 bits too.
LONGEST_SECONDS = threading.TIMEOUT_MAX / 2


def checked_seconds(name: str, seconds: float | None) -> float | None:
    """Return a time limit; 0 and None mean no limit, one of centuries what can be waited at most.

    Raises:
        ConfigurationError: it is no number, negative, or not finite.
    """
    if seconds is None or seconds == 0:
        return None
    return _bounded(name, seconds, hint="Give a number of seconds, or None for no limit.")


def checked_wait(seconds: float, *, name: str = "wait_for_server_seconds") -> float:
    """Return how long to wait for something.

    Raises:
        ConfigurationError: it is no number, negative, or not finite.
    """
    return _bounded(name, seconds, hint="Give seconds, 0 for no waiting.")


def checked_switch(name: str, given: object) -> bool:
    """Return what turns something on or off.

    Raises:
        ConfigurationError: it is neither True nor False; "no" would count as yes.
    """
    if not isinstance(given, bool):
        raise ConfigurationError(f"{name} is {given!r}", hint="Use True or False.")
    return given


def checked_listener(
    name: str, given: Callable[[int], None] | None
) -> Callable[[int], None] | None:
    """Return what hears of something, where anything does.

    Raises:
        ConfigurationError: it cannot be called.
    """
    if given is not None and not callable(given):
        raise ConfigurationError(f"{name} is {given!r}", hint="Give a function, or None.")
    return given


def checked_credential(token: object, credential: object) -> Credential | None:
    """Return what to show to a server, from a client's token or credential.

    Raises:
        ConfigurationError: both were given, or what was given is none.
    """
    if token is not None and credential is not None:
        raise ConfigurationError(
            "token and credential are both given", hint="Give one or the other."
        )
    if token is None:
        if credential is None or isinstance(credential, Credential):
            return credential
        raise ConfigurationError(
            f"credential is a {type(credential).__name__}, not a credential",
            hint="Give an rlcore.Bearer, or the text as token=.",
        )
    if isinstance(token, str):
        return Bearer(Secret(token))
    if isinstance(token, Secret):
        return Bearer(token)
    raise ConfigurationError(
        f"token is a {type(token).__name__}, not a text", hint="Give a str or an rlcore.Secret."
    )


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


def not_copied(client: object, address: str) -> TypeError:
    """Return why a client is neither pickled nor copied: its session has one owner."""
    name = type(client).__name__
    return TypeError(
        f"a {name} is a connection, which cannot be pickled or copied; pass on the address and "
        f"make a new one: {name}({address!r})"
    )


def _bounded(name: str, seconds: float, *, hint: str) -> float:
    given: object = seconds
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= seconds < math.inf:
        raise ConfigurationError(f"{name} is {seconds!r}", hint=hint)
    return float(min(seconds, LONGEST_SECONDS))
