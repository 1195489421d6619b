"""When an environment that ended by itself is started again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rlcore import Backoff

_DELAYS = Backoff(first=1.0, factor=2.0, cap=60.0, jitter=0.2)
MOST_IN_A_ROW = 5
CALM_SECONDS = 60.0


@dataclass(slots=True)
class _Row:
    count: int = 0
    started: float = 0.0
    delays: Iterator[float] = field(default_factory=_DELAYS.delays)


class Crashes:
    """Counts how often each version ended by itself; one that ran a while begins anew.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows: dict[int, _Row] = {}

    def started(self, version_id: int) -> None:
        """Take note that the version is up."""
        self._rows.setdefault(version_id, _Row()).started = self._clock()

    def ended(self, version_id: int) -> tuple[int, float | None]:
        """Take note that it ended.

        Returns:
            How often in a row, and after how many seconds to start it again; None: not any more.
        """
        row = self._rows.setdefault(version_id, _Row())
        if self._clock() - row.started >= CALM_SECONDS:
            row.count, row.delays = 0, _DELAYS.delays()
        row.count += 1
        return row.count, None if row.count >= MOST_IN_A_ROW else next(row.delays)

    def forget(self, version_id: int) -> None:
        """Somebody stopped it: what was before does not count any more."""
        self._rows.pop(version_id, None)
