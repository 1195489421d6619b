"""Receiving that watches for a short while before it lets the system put the thread to sleep."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeAlias

Receive: TypeAlias = Callable[[memoryview], int]

# To fall asleep and be woken costs 20 to 40 us on an idle core, as much as many a whole step.
WATCH_SECONDS: Final = 100e-6
# After watching in vain the next waits go without, at most so many: a slow model or environment
# costs its process less than two microseconds a step.
MOST_PASSED_OVER: Final = 63

_DONT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
_yield: Final = getattr(os, "sched_yield", None)
# One thread of a process watches at a time: more of them would only keep one another from running.
_place: Final = threading.Lock()


def eager(connected: socket.socket) -> Receive:
    """Return the socket's `recv_into`, for one thread, watching first where that tends to help.

    It gives its core to whoever else wants to run. On one core, over TLS and on systems without
    `sched_yield` it is the plain call.
    """
    plain: Receive = connected.recv_into
    if isinstance(connected, ssl.SSLSocket) or not _can_watch():
        return plain
    receive_into, give_way = connected.recv_into, os.sched_yield
    passing_over = to_pass_over = 0

    def receive(view: memoryview) -> int:
        nonlocal passing_over, to_pass_over
        if passing_over:
            passing_over -= 1
            return receive_into(view)
        if not _place.acquire(blocking=False):
            return receive_into(view)
        try:
            end = perf_counter() + WATCH_SECONDS
            while True:
                try:
                    got = receive_into(view, 0, _DONT_WAIT)
                except BlockingIOError:
                    if perf_counter() >= end:
                        break
                    give_way()
                else:
                    to_pass_over = 0
                    return got
        finally:
            _place.release()
        passing_over = to_pass_over = min(2 * to_pass_over + 1, MOST_PASSED_OVER)
        return receive_into(view)

    return receive


def _can_watch() -> bool:
    if not _DONT_WAIT or _yield is None:
        return False
    affinity = getattr(os, "sched_getaffinity", None)
    return (len(affinity(0)) if affinity is not None else os.cpu_count() or 1) > 1
