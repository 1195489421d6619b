"""How far a run is: a line on a terminal or in a notebook, or a call for programs."""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from threading import get_ident
from time import monotonic
from typing import Any, Protocol, TextIO, cast

from rlcore import ConfigurationError

from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.statistics import Interval, wilson_interval

_REFRESH_SECONDS = 0.1
_Z95 = 1.959964


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run in numbers, some way through.

    Intervals are at 95 %: Wilson's for the rate, and for the mean, which is to be had at every
    moment, the normal approximation; the result has a bootstrap. `resumed` of the `done` episodes
    were in the journal before this run began.
    """

    done: int
    total: int
    failed: int
    steps: int
    mean_reward: float | None
    success_rate: float | None
    elapsed_s: float
    mean_reward_interval: Interval | None = None
    success_interval: Interval | None = None
    resumed: int = 0

    @property
    def steps_per_second(self) -> float:
        """The pace so far."""
        return self.steps / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """The seconds that are left at this pace; None before the first episode ended."""
        played = self.done - self.resumed
        if not played:
            return None
        return self.elapsed_s / played * (self.total - self.done)

    def __str__(self) -> str:
        parts = [f"episode {self.done}/{self.total}"]
        if self.mean_reward is not None:
            bounds = self.mean_reward_interval
            shown = "" if bounds is None else f" [{bounds.low:.2f}, {bounds.high:.2f}]"
            parts.append(f"mean reward {self.mean_reward:.2f}{shown}")
        if self.success_rate is not None:
            rate = self.success_interval
            shown = "" if rate is None else f" [{rate.low:.0%}, {rate.high:.0%}]"
            parts.append(f"success {self.success_rate:.0%}{shown}")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.resumed:
            parts.append(f"{self.resumed} resumed")
        parts.append(f"{self.steps_per_second:,.0f} steps/s")
        if self.eta_s is not None and self.done < self.total:
            parts.append(f"ETA {_clock(self.eta_s)}")
        elif self.done == self.total:
            parts.append(f"took {_clock(self.elapsed_s)}")
        return "  ".join(parts)


ProgressCallback = Callable[[RunProgress], object]


class Watcher(Protocol):
    """Who is shown the progress."""

    def show(self, progress: RunProgress, *, settled: bool) -> None:
        """Take a snapshot; `settled` when an episode has just ended."""
        ...

    def end(self) -> None:
        """Nothing more will be shown."""
        ...


class ProgressLine:
    """One line of a terminal that is written over and over."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._width = 0

    def show(self, progress: RunProgress, *, settled: bool) -> None:
        """Write the line again."""
        text = str(progress)
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def end(self) -> None:
        """Leave the line as it is and go to the next."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()


class NotebookLine:
    """One line of output of a notebook's cell that is replaced over and over."""

    def __init__(self) -> None:
        self._display: Any = import_module("IPython.display").display  # Any: no types
        self._handle: Any = None

    def show(self, progress: RunProgress, *, settled: bool) -> None:
        """Replace the line."""
        data = {"text/plain": str(progress)}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def end(self) -> None:
        """Leave the line as it is."""


class ProgressCalls:
    """Calls back after each episode."""

    def __init__(self, callback: ProgressCallback) -> None:
        self._callback = callback

    def show(self, progress: RunProgress, *, settled: bool) -> None:
        """Call, unless an episode is still being played."""
        if settled:
            self._callback(progress)

    def end(self) -> None:
        """Nothing is left to do."""


def watcher(progress: bool | ProgressCallback | None) -> Watcher | None:
    """Return who watches.

    None means a line where somebody sees it, on a terminal or in a notebook; True and False decide.

    Raises:
        ConfigurationError: it is none of these, and cannot be called.
    """
    if callable(progress):
        return ProgressCalls(progress)
    if not isinstance(cast("object", progress), bool | None):
        raise ConfigurationError(f"progress is {progress!r}", hint="give True, False or a function")
    if progress is False:
        return None
    if in_notebook():
        return NotebookLine()
    return ProgressLine() if progress or sys.stderr.isatty() else None


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, whose output cells can be replaced."""
    ipython: Any = sys.modules.get("IPython")  # Any: no types; never imported for this
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class Tracker:
    """Counts what a run did and shows it, at most ten times a second between episodes."""

    def __init__(
        self, total: int, watcher: Watcher | None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._total = total
        self._watcher = watcher
        self._clock = clock
        self._started = self._shown = clock()
        self._live: dict[int, int] = {}
        self._steps = 0
        self._failed = 0
        self._resumed = 0
        self._scored = 0
        self._told = 0
        self._successes = 0
        # Welford's: the mean so far, and the sum of squares about it.
        self._mean = 0.0
        self._squares = 0.0

    @property
    def watched(self) -> bool:
        """Whether anybody is shown anything."""
        return self._watcher is not None

    def resume(self, finished: Iterable[EpisodeResult]) -> None:
        """Count episodes of an earlier sitting; they say nothing about the pace of this one."""
        for result in finished:
            self._resumed += 1
            self._count(result)

    def episode(self, result: EpisodeResult) -> None:
        """Count an episode that ended."""
        self._steps += result.steps
        self._live.pop(get_ident(), None)
        self._count(result)
        self._show(settled=True)

    def steps(self, of_these_episodes: int) -> None:
        """Show the pace while episodes are being played; each thread tells of its own."""
        if self._watcher is None:
            return
        self._live[get_ident()] = of_these_episodes
        if self._clock() - self._shown >= _REFRESH_SECONDS:
            self._show(settled=False)

    def end(self) -> None:
        """Nothing more will be shown."""
        if self._watcher is not None:
            self._watcher.end()

    def _count(self, result: EpisodeResult) -> None:
        if result.reward is None:
            self._failed += 1
            return
        self._scored += 1
        off = result.reward - self._mean
        self._mean += off / self._scored
        self._squares += off * (result.reward - self._mean)
        if result.success is not None:
            self._told += 1
            self._successes += result.success

    def _show(self, *, settled: bool) -> None:
        if self._watcher is None:
            return
        self._shown = self._clock()
        scored, told = self._scored, self._told and self._told == self._scored
        self._watcher.show(
            RunProgress(
                done=scored + self._failed,
                total=self._total,
                failed=self._failed,
                steps=self._steps + sum(self._live.values()),
                mean_reward=self._mean if scored else None,
                success_rate=self._successes / scored if told else None,
                elapsed_s=self._shown - self._started,
                mean_reward_interval=self._around_mean(),
                success_interval=wilson_interval(self._successes, scored) if told else None,
                resumed=self._resumed,
            ),
            settled=settled,
        )

    def _around_mean(self) -> Interval | None:
        n = self._scored
        if n < 2:
            return None
        half = _Z95 * math.sqrt(self._squares / (n - 1) / n)
        return Interval(self._mean - half, self._mean + half)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
