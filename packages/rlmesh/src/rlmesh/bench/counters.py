"""What the kernel counts: CPU time of processes, bytes of TCP connections."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISSOCK

# Where Linux keeps tcpi_bytes_acked and tcpi_bytes_received in struct tcp_info.
_BYTES_ACKED = 120
_TCP_INFO_SIZE = 192


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process and of its living descendants; None where it is not told."""
    if not sys.platform.startswith("linux"):
        return None
    return sum(_own_cpu_seconds(one) for one in family(pid))


def resident_bytes(pid: int) -> int | None:
    """Return the memory that a process and its living descendants hold; None where not told.

    Pages that they share count for each of them.
    """
    if not sys.platform.startswith("linux"):
        return None
    return sum(_own_resident_bytes(one) for one in family(pid))


def family(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parents.get(one, [])


def tcp_bytes() -> int | None:
    """Return what this process's TCP connections carried so far, both ways; None if not told.

    Connections that were closed meanwhile do not count.
    """
    if not sys.platform.startswith("linux"):
        return None
    return sum(_bytes_of(int(entry.name)) for entry in Path("/proc/self/fd").iterdir())


def _own_cpu_seconds(pid: int) -> float:
    # clock_getcpuclockid(3) makes the number of a process's clock so; it counts nanoseconds, and
    # the ticks in /proc/PID/stat are 10 ms.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0  # it has just ended


def _own_resident_bytes(pid: int) -> int:
    try:
        pages = (Path("/proc") / str(pid) / "statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0  # it has just ended
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _bytes_of(descriptor: int) -> int:
    try:
        if not S_ISSOCK(os.fstat(descriptor).st_mode):
            return 0  # a socket made of it would fail, and leave the copy open
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            if copy.family not in (socket.AF_INET, socket.AF_INET6):
                return 0
            if copy.type != socket.SOCK_STREAM:
                return 0
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_SIZE)
    except OSError:
        return 0  # no socket, or the listing's own descriptor, which is closed by now
    acked, received = struct.unpack_from("QQ", info, _BYTES_ACKED)
    return int(acked + received)
