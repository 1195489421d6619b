"""What a flow takes from outside: patience, the clock, chance."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from rlcore import Backoff


def _random_key() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The settings of a client and its sources of time and chance.

    Attributes:
        base_url: for messages; requests carry paths only.
        timeout: seconds that one request may take.
        exact: whether that holds for requests, too, for which the platform is known to need longer.
        attempts: how often a repeatable request is sent at most.
        backoff: the pauses between attempts.
        clock: monotonic seconds.
        random: jitter; None means unseeded.
        new_key: makes idempotency keys.
    """

    base_url: str = "http://localhost:8000"
    timeout: float = 30.0
    exact: bool = False
    attempts: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic
    random: Random | None = None
    new_key: Callable[[], str] = _random_key

    def at_least(self, seconds: float) -> float:
        """Return what a request may take that the platform is known to need so long for."""
        return self.timeout if self.exact else max(self.timeout, seconds)
