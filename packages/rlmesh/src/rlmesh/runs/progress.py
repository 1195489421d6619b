"""How far a run is: a line on a terminal, or a call for programs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TextIO, cast

from rlcore import ConfigurationError

from rlmesh.runs.results import EpisodeResult

_REFRESH_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class RunProgress:
    """A run in numbers, some way through."""

    done: int
    total: int
    failed: int
    steps: int
    mean_reward: float | None
    success_rate: float | None
    elapsed_s: float

    @property
    def steps_per_second(self) -> float:
        """The pace so far."""
        return self.steps / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """The seconds that are left at this pace; None before the first episode ended."""
        if not self.done:
            return None
        return self.elapsed_s / self.done * (self.total - self.done)

    def __str__(self) -> str:
        parts = [f"episode {self.done}/{self.total}"]
        if self.mean_reward is not None:
            parts.append(f"mean reward {self.mean_reward:.2f}")
        if self.success_rate is not None:
            parts.append(f"success {self.success_rate:.0%}")
        if self.failed:
            parts.append(f"{self.failed} failed")
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
    """Return who watches: None means a line, on a terminal only; True and False decide it.

    Raises:
        ConfigurationError: it is none of these, and cannot be called.
    """
    if callable(progress):
        return ProgressCalls(progress)
    if not isinstance(cast("object", progress), bool | None):
        raise ConfigurationError(f"progress is {progress!r}", hint="give True, False or a function")
    wanted = sys.stderr.isatty() if progress is None else progress
    return ProgressLine() if wanted else None


class Tracker:
    """Counts what a run did and shows it, at most ten times a second between episodes."""

    def __init__(
        self, total: int, watcher: Watcher | None, clock: Callable[[], float] = monotonic
    ) -> None:
        self._total = total
        self._watcher = watcher
        self._clock = clock
        self._started = self._shown = clock()
        self._steps = 0
        self._failed = 0
        self._rewards: list[float] = []
        self._successes: list[bool | None] = []

    @property
    def watched(self) -> bool:
        """Whether anybody is shown anything."""
        return self._watcher is not None

    def episode(self, result: EpisodeResult) -> None:
        """Count an episode that ended."""
        self._steps += result.steps
        if result.reward is None:
            self._failed += 1
        else:
            self._rewards.append(result.reward)
            self._successes.append(result.success)
        self._show(0, settled=True)

    def steps(self, of_this_episode: int) -> None:
        """Show the pace while an episode is being played."""
        if self._watcher is not None and self._clock() - self._shown >= _REFRESH_SECONDS:
            self._show(of_this_episode, settled=False)

    def end(self) -> None:
        """Nothing more will be shown."""
        if self._watcher is not None:
            self._watcher.end()

    def _show(self, more_steps: int, *, settled: bool) -> None:
        if self._watcher is None:
            return
        self._shown = self._clock()
        rewards, said = self._rewards, self._successes
        self._watcher.show(
            RunProgress(
                done=len(rewards) + self._failed,
                total=self._total,
                failed=self._failed,
                steps=self._steps + more_steps,
                mean_reward=sum(rewards) / len(rewards) if rewards else None,
                success_rate=said.count(True) / len(said) if said and None not in said else None,
                elapsed_s=self._shown - self._started,
            ),
            settled=settled,
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
