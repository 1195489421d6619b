"""Where workers run: the interface between the scheduler and what starts processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a worker may use, with all that it started; None is no limit.

    Attributes:
        memory_bytes: of resident memory.
        wall_seconds: of time, from its start.
        stop_seconds: what of that it had for ending by itself, after its job's own limit.
        processes: how many at once, itself included.
    """

    memory_bytes: int | None = None
    wall_seconds: float | None = None
    stop_seconds: float = 0.0
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A worker to be started.

    Attributes:
        kind: `training` or `evaluation`.
        job_id: the job that it does.
        attempt: which start of the job this is, from 1.
        command: its command line.
        environment: variables that it gets beside the server's own.
        log: the file that its output is appended to.
        limits: what it may use.
    """

    kind: str
    job_id: str
    attempt: int
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Running:
    """The worker is there."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The worker is gone.

    Attributes:
        code: its exit code, negative for a signal; None where nobody saw it end.
        how: in words that go on after "its worker".
        exceeded: the limit that it was ended for, such as `memory_bytes`: another attempt would
            come to the same end.
    """

    code: int | None
    how: str
    exceeded: str | None = None


def over_time(seconds: float, limit: float, stop_seconds: float) -> str:
    """How a worker was ended that took too long, in words that go on after "its worker"."""
    if not stop_seconds:
        return f"was ended after {seconds:.0f} s: its limit is {limit:g} s"
    return (
        f"was ended after {seconds:.0f} s: compute_quota.max_wall_seconds is "
        f"{limit - stop_seconds:g}, and it did not stop by itself in {stop_seconds:g} s more"
    )


class Executor(Protocol):
    """Starts workers and knows what becomes of them.

    A handle is a text that the job's row keeps: another executor of the same kind, in a server that
    is started later, goes on with it.
    """

    @property
    def name(self) -> str:
        """What operators call it, such as `local`; its handles are given to no other."""
        ...

    def start(self, launch: Launch) -> str:
        """Start a worker and return its handle.

        Raises:
            OSError: it cannot be started.
            RuntimeError: the server is stopping.
        """
        ...

    def look(self, handle: str) -> Running | Ended:
        """Return whether the worker is there; one that is over its limits is ended here."""
        ...

    def announce(self, handle: str, url: str) -> None:
        """Tell a worker of an earlier server where this one answers."""
        ...

    def terminate(self, handle: str) -> None:
        """Ask the worker to save its work and end; returns at once."""
        ...

    def kill(self, handle: str) -> None:
        """End the worker, and everything that it started."""
        ...

    def close(self) -> None:
        """Let go of what the executor itself holds; workers are left as they are."""
        ...
