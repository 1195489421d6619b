"""Receiving that watches for a short while before it lets the system put the thread to sleep."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeAlias

Receive: TypeAlias = Callable[[memoryview], int]

# To fall asleep and be woken costs 20 to 40 us on an idle core, as much as many a whole step. To
# watch for much longer than that takes more than it gives: two processors of a machine often are
# halves of one core, and the one that watches slows down the other, which computes the answer.
WATCH_SECONDS: Final = 100e-6
# After watching in vain the next waits go without, at most so many: a slow model or environment
# costs its process about five microseconds a step.
MOST_PASSED_OVER: Final = 63
# How many watches there are between two looks at whether others want the core.
WATCHES: Final = 8
# While they do, the next waits go without, at most so many: who sleeps leaves them the core, and
# is woken quickly there.
MOST_GIVEN_UP: Final = 1023

_DONT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
# One thread of a process watches at a time: more of them would only keep one another from running.
_place: Final = threading.Lock()


def eager(connected: socket.socket) -> Receive:
    """Return the socket's `recv_into`, for one thread, watching first where that tends to help.

    It gives its core to whoever else wants to run, and stops watching where that happens often.
    On one core, over TLS and on systems other than Linux it is the plain call.
    """
    if not _can_watch(connected):
        return connected.recv_into
    receive_into, give_way, switches_now = connected.recv_into, os.sched_yield, _switch_counter()
    # Waits to go without watching, and how many it was the last time for either reason.
    passing_over = in_vain = crowded = watches = 0

    def receive(view: memoryview) -> int:
        nonlocal passing_over, in_vain, crowded, watches
        if passing_over or not _place.acquire(blocking=False):
            passing_over = max(passing_over - 1, 0)
            return receive_into(view)
        try:
            watches += 1
            end = perf_counter() + WATCH_SECONDS
            if not watches % WATCHES:
                crowded = _crowded(crowded, switches_now())
            if crowded:
                end = 0.0
            while True:
                try:
                    got = receive_into(view, 0, _DONT_WAIT)
                except BlockingIOError:
                    if perf_counter() >= end:
                        break
                    give_way()
                else:
                    in_vain = 0
                    passing_over = crowded
                    return got
        finally:
            _place.release()
        in_vain = min(2 * in_vain + 1, MOST_PASSED_OVER)
        passing_over = max(in_vain, crowded)
        return receive_into(view)

    return receive


def _crowded(before: int, switches: int) -> int:
    return min(2 * before + WATCHES, MOST_GIVEN_UP) if switches > 1 else 0


def _can_watch(connected: socket.socket) -> bool:
    if sys.platform != "linux" or isinstance(connected, ssl.SSLSocket):
        return False
    return len(os.sched_getaffinity(0)) > 1


def _switch_counter() -> Callable[[], int]:
    """Return what tells how often, since it was asked last, the system ran another thread."""
    from resource import RUSAGE_THREAD, getrusage

    seen: int | None = None

    def switches() -> int:
        nonlocal seen
        before, seen = seen, getrusage(RUSAGE_THREAD).ru_nivcsw
        return 0 if before is None else seen - before

    return switches
