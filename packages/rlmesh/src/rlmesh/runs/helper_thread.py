"""A thread that makes calls which may hang, so that whoever waits for them need not."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar, cast

from rlcore import CallTimeout

T = TypeVar("T")
_Call = Callable[[], object]


class HelperThread:
    """Makes calls one after another, all on one thread, each within a time.

    A call that takes longer is left alone with its thread: `is_stuck` is true from then on, and
    the thread, which nothing can end, ends with its call or with the process.
    """

    def __init__(self, name: str) -> None:
        self.is_stuck = False
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[object, BaseException | None]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(
        self, function: Callable[..., T], *args: Any, seconds: float, layer: str, **kwargs: Any
    ) -> T:  # Any: those of the function
        """Return what a call returns, or raise what it raises.

        Args:
            function: what to call.
            *args: its arguments.
            seconds: how long it may take.
            layer: whose patience that is, for the error.
            **kwargs: its keyword arguments.

        Raises:
            CallTimeout: it takes longer, or another call still does.
        """
        name = getattr(function, "__name__", "call")
        if self.is_stuck:
            raise self._late(name, seconds, layer)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._calls.put(lambda: function(*args, **kwargs))
        try:
            answer, error = self._answers.get(timeout=min(max(seconds, 0.0), threading.TIMEOUT_MAX))
        except Empty:
            self.is_stuck = True
            raise self._late(name, seconds, layer) from None
        except BaseException:  # as by Ctrl-C: its answer is still under way
            self.is_stuck = True
            raise
        if error is not None:
            raise error
        return cast("T", answer)

    def comes_back(self, seconds: float) -> bool:
        """Wait for a call that took too long; tell whether calls can be made again."""
        if self.is_stuck:
            try:
                self._answers.get(timeout=seconds)
            except Empty:
                return False
            self.is_stuck = False
        return True

    def end(self, last: _Call | None = None) -> None:
        """Let the thread end, now or when its call returns, after a last call that none awaits."""
        if last is not None:
            self._calls.put(last)
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                outcome: tuple[object, BaseException | None] = (call(), None)
            except BaseException as error:
                outcome = (None, error)
            self._answers.put(outcome)

    def _late(self, name: str, seconds: float, layer: str) -> CallTimeout:
        return CallTimeout(
            f"{name} of {self._name} did not return within {seconds:g} s",
            operation=name,
            seconds=seconds,
            layer=layer,
            hint="It still runs, in a thread of its own that ends with this process.",
        )


class Until:
    """The earliest of several moments, and whose it is; moments are of the monotonic clock."""

    __slots__ = ("at", "layer")

    def __init__(self, at: float = float("inf"), layer: str = "") -> None:
        self.at = at
        self.layer = layer

    def sooner(self, at: float, layer: str) -> "Until":
        """Return this deadline or another one, whichever comes first."""
        return Until(at, layer) if at < self.at else self

    @property
    def seconds(self) -> float:
        """How many are left; negative when it has passed."""
        return self.at - monotonic()
