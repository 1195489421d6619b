"""Ctrl-C while something ends that must not be left half ended."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held(hurry: Callable[[], None]) -> Generator[None]:
    """Inside the block, Ctrl-C calls `hurry` and raises nothing; at its end, it has its effect.

    Python 3.11 takes a thread for ended whose `join` was interrupted, and what an interrupted
    `finally` did not come to is done by nobody: so the block is not interrupted at all.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # Ctrl-C reaches the main thread only, and not even that where it is ignored
        return
    came: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        hurry()

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])
