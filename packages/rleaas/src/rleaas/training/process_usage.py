"""What a process uses together with all that it has started, against its limits."""

from __future__ import annotations

from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that was passed.

    Attributes:
        limit: which one: `memory_bytes` or `processes`.
        what: in words that go on after "was ended as it".
    """

    limit: str
    what: str


def excess_of(pid: int, memory_bytes: int | None, processes: int | None) -> Excess | None:
    """Which limit a process has passed together with all that it has started; None: no limit."""
    if memory_bytes is None and processes is None:
        return None
    there = family(pid)
    if processes is not None and len(there) > processes:
        return Excess("processes", f"had {len(there)} processes: its limit is {processes}")
    used = sum(_resident(process) for process in there)
    if memory_bytes is not None and used > memory_bytes:
        return Excess(
            "memory_bytes",
            f"used {used / 2**20:.0f} MiB of memory: its limit is {memory_bytes / 2**20:.0f} MiB",
        )
    return None


def family(pid: int) -> list[psutil.Process]:
    """The process and all that it has started, and those have; none where it is not there."""
    try:
        leader = psutil.Process(pid)
        return [leader, *leader.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
