"""How a worker is told to stop: first politely, then by interrupting what it waits for."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from rlcore.environ import variable

GRACE = 5.0
SERVER_PID_VARIABLE = "RLEAAS_SERVER_PID"


class StopOverdue(KeyboardInterrupt):
    """Raised in the main thread when it did not stop by itself within the grace period."""


class StopSwitch:
    """Remembers the first reason to stop, and insists on it.

    Long work asks `requested` between two steps. Work that hangs in a call never asks, so the
    alarm interrupts the call after the grace period.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._lock = threading.RLock()
        self._event = threading.Event()
        self.reason: str | None = None

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def request(self, reason: str) -> None:
        """Ask for the stop; later reasons are dropped. Safe in any thread and signal handler."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
        self._event.set()
        signal.setitimer(signal.ITIMER_REAL, self._grace)

    def install(self) -> None:
        """Listen to SIGTERM and SIGINT; only in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, _on_alarm)

    def disarm(self) -> None:
        """The work has stopped: what is left to do is not to be interrupted."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def follow_parent(self) -> None:
        """Request the stop when the process that started this one is gone."""
        # The server says who it is: it may be gone before this process has come this far.
        parent = int(variable(SERVER_PID_VARIABLE) or os.getppid())

        def watch() -> None:
            while os.getppid() == parent:
                self._never.wait(0.5)
            self.request("the server is gone")
            self._never.wait(2 * self._grace)
            # Nobody is left to report to, and nothing may outlive the server.
            os._exit(1)

        threading.Thread(target=watch, name="rleaas-parent", daemon=True).start()

    _never = threading.Event()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.request(signal.Signals(number).name)


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise StopOverdue
