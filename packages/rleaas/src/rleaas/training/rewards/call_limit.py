"""A limit on how long a call of somebody's function may take."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from rlcore import ConfigurationError

T = TypeVar("T")


class CallOverdue(BaseException):
    """The call took too long; no `except Exception` of the function's author swallows this."""


@dataclass(slots=True)
class _Watch:
    """What this process watches over: one call at a time, as only its main thread makes them."""

    process: int | None = None
    until: float | None = None

    @property
    def is_overdue(self) -> bool:
        until = self.until
        return until is not None and time.monotonic() > until


_watch = _Watch()


class CallLimit:
    """Interrupts calls in the main thread that take longer than so many seconds.

    Python code is interrupted wherever it is, and so is a call that waits in the kernel. A library
    that computes in C is interrupted when it comes back.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, call: Callable[[], T]) -> T:
        """Do the call.

        Raises:
            CallOverdue: it took too long.
            ConfigurationError: this is not the main thread, where alone it can be interrupted.
        """
        if _watch.process != os.getpid():
            _begin()
        _watch.until = time.monotonic() + self.seconds
        try:
            return call()
        finally:
            _watch.until = None


def _begin() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise ConfigurationError(
            "a Python reward function runs in the main thread of a worker only",
            hint="Write the reward as an expression",
        )
    main = threading.get_ident()

    def look() -> None:
        while True:
            time.sleep(0.05)
            if _watch.is_overdue:
                # Again and again, as a bare `except` of the author may have swallowed it.
                signal.pthread_kill(main, signal.SIGUSR2)

    signal.signal(signal.SIGUSR2, _interrupt)
    threading.Thread(target=look, name="rleaas-call-limit", daemon=True).start()
    # A forked process inherits this record, but no thread.
    _watch.process = os.getpid()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # The call may have ended since the watcher looked: then nothing is to be interrupted.
    if _watch.is_overdue:
        raise CallOverdue
