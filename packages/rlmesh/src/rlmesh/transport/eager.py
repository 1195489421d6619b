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

# To fall asleep and be woken costs 20 to 40 us on an idle core, as much as many a whole step.
WATCH_SECONDS: Final = 150e-6
# After watching in vain the next waits go without, at most so many: a slow model or environment
# costs its process two or three microseconds a step.
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
    if sys.platform != "linux" or isinstance(connected, ssl.SSLSocket) or not _has_cores():
        return connected.recv_into
    from resource import RUSAGE_THREAD, getrusage

    receive_into, give_way = connected.recv_into, os.sched_yield
    # Waits to go without watching, and how many it was the last time for either reason.
    passing_over = in_vain = crowded = 0
    watches = switches = 0

    def is_crowded() -> bool:
        """Whether the system often ran another thread instead of this one."""
        nonlocal crowded, switches
        before, switches = switches, getrusage(RUSAGE_THREAD).ru_nivcsw
        crowds = switches - before > 1 and watches > WATCHES
        crowded = min(2 * crowded + WATCHES, MOST_GIVEN_UP) if crowds else 0
        return crowds

    def receive(view: memoryview) -> int:
        nonlocal passing_over, in_vain, watches
        if passing_over:
            passing_over -= 1
            return receive_into(view)
        if not _place.acquire(blocking=False):
            return receive_into(view)
        try:
            watches += 1
            end = perf_counter() + WATCH_SECONDS
            if not watches % WATCHES and is_crowded():
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


def _has_cores() -> bool:
    return len(os.sched_getaffinity(0)) > 1
