"""A thread of its own for an environment, and the patience with what is called on it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from rlmesh.conformance.watching import Watcher

T = TypeVar("T")

GLANCE_SECONDS = 0.25


class Hung(Exception):
    """A call on an environment did not return in time.

    Attributes:
        what: the call.
        seconds: how long it was waited for.
    """

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not return within {seconds:g} s")
        self.what = what
        self.seconds = seconds


class Pulse:
    """What a keeper's thread is doing, and since when; written there, read from outside."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.what = "starting"
        self.extra = 0.0
        self.since = time.monotonic()

    def beat(self, what: str, extra: float = 0.0) -> None:
        """Say that another call begins, and how much longer than others it may take."""
        self.what = what
        self.extra = extra
        self.since = time.monotonic()
        self._watcher.call(what)

    def wait(self) -> None:
        """Say that patience begins anew."""
        self.since = time.monotonic()


class Pending(Generic[T]):
    """Work that was handed to a keeper."""

    def __init__(self, work: Callable[[], T], keeper: Keeper) -> None:
        self._work = work
        self._keeper = keeper
        self._done = threading.Event()
        self._result: T | None = None
        self._error: BaseException | None = None

    def perform(self) -> None:
        """Do it; called in the keeper's thread."""
        try:
            self._result = self._work()
        except BaseException as error:  # carried to whoever waits for the result
            self._error = error
        finally:
            self._done.set()

    def result(self) -> T:
        """Wait for the result.

        Raises:
            Hung: one call took longer than the keeper's patience.
        """
        keeper = self._keeper
        keeper.watcher.glance()
        while not self._done.wait(GLANCE_SECONDS):
            keeper.watcher.glance()
            if keeper.lost is not None:
                raise keeper.lost
            pulse = keeper.pulse
            if time.monotonic() - pulse.since > keeper.seconds + pulse.extra:
                keeper.lost = Hung(pulse.what, keeper.seconds + pulse.extra)
                raise keeper.lost
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


class Keeper:
    """Does all work on an environment in one thread, and gives up on a call that hangs.

    The thread of a call that hangs is left behind: it ends with the process.

    Args:
        seconds: how long one call may take.
        watcher: hears of every call, and that it is waited for.
    """

    def __init__(self, seconds: float, watcher: Watcher) -> None:
        self.seconds = seconds
        self.watcher = watcher
        self.pulse = Pulse(watcher)
        self.lost: Hung | None = None
        self._work: queue.SimpleQueue[Pending[Any] | None] = queue.SimpleQueue()  # Any: by work
        threading.Thread(target=self._run, name="rlmesh-check", daemon=True).start()

    def submit(self, work: Callable[[], T]) -> Pending[T]:
        """Hand over work, to be waited for later."""
        pending = Pending(work, self)
        self.pulse.wait()
        self._work.put(pending)
        return pending

    def ask(self, work: Callable[[], T]) -> T:
        """Have work done and return its result.

        Raises:
            Hung: one call took longer than the patience, now or before.
        """
        if self.lost is not None:
            raise self.lost
        return self.submit(work).result()

    def dismiss(self) -> None:
        """Let the thread end once its work is done."""
        self._work.put(None)

    def _run(self) -> None:
        while (pending := self._work.get()) is not None:
            pending.perform()
