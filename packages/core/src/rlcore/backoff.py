"""How long to wait between attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlcore.errors import ConfigurationError

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow up to a cap, each shortened by up to `jitter` of itself at random.

    Raises:
        ConfigurationError: a number is out of range.
    """

    first: float = 0.2
    factor: float = 2.0
    cap: float = 5.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if self.first <= 0 or self.factor < 1 or self.cap < self.first or not 0 <= self.jitter <= 1:
            raise ConfigurationError(
                f"{self!r} does not describe delays",
                hint="Use first > 0, factor >= 1, cap >= first and jitter between 0 and 1.",
            )

    def delays(self, rng: Random | None = None) -> Iterator[float]:
        """Yield the delays, without end; pass a seeded `rng` for a repeatable sequence."""
        # Costly to import, and only a caller that has to wait needs it.
        from random import Random

        source = Random() if rng is None else rng
        delay = self.first
        while True:
            yield delay * (1.0 - self.jitter * source.random())
            delay = min(self.cap, delay * self.factor)
