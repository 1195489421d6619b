"""Asking an endpoint again while it may still answer, and never for longer than was said."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from rlcore import Backoff, ModelFailed

T = TypeVar("T")


class Passing(Exception):
    """An attempt failed in a way that may pass; `seconds` is what the endpoint asks to wait."""

    def __init__(self, failure: ModelFailed, seconds: float | None = None) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.seconds = seconds


def patiently(attempt: Callable[[float], T], *, model: str, timeout: float, retries: int) -> T:
    """What an attempt gives, of so many and within so many seconds.

    `attempt` is told how many seconds are left.

    Raises:
        ModelFailed: the last failure, or that the time is over.
    """
    until = time.monotonic() + timeout
    delays = iter(Backoff(first=0.2, cap=5.0).delays())
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise _overdue(model, timeout)
        try:
            return _Call(attempt, left).result(model, timeout)
        except Passing as passing:
            wait = next(delays) if passing.seconds is None else passing.seconds
            if retries <= 0 or time.monotonic() + wait >= until:
                raise passing.failure from passing.failure.__cause__
            retries -= 1
            time.sleep(wait)


class _Call(Generic[T]):
    """One attempt in a thread of its own.

    The clients' own timeouts are of each read: an endpoint that sends a byte a second would never
    be overdue. Its thread ends when the endpoint does; nobody waits for it.
    """

    def __init__(self, attempt: Callable[[float], T], seconds: float) -> None:
        self._seconds = seconds
        self._done: list[T] = []
        self._failed: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(attempt,), name="rleaas-model-call", daemon=True
        )
        self._thread.start()

    def _run(self, attempt: Callable[[float], T]) -> None:
        try:
            self._done.append(attempt(self._seconds))
        except BaseException as error:  # raised again in the thread that waits
            self._failed = error

    def result(self, model: str, timeout: float) -> T:
        self._thread.join(self._seconds)
        if self._failed is not None:
            raise self._failed
        if not self._done:
            raise _overdue(model, timeout)
        return self._done[0]


def _overdue(model: str, timeout: float) -> ModelFailed:
    return ModelFailed(model, "timeout", f"nothing came within {timeout:g} s", retryable=True)
