"""Ctrl-C while a run plays, and once more while it ends."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """The first Ctrl-C interrupts; a second waits until all is closed; a third interrupts that.

    People press it twice. What is being closed would be left half closed by the second one: a
    process would stay behind, or the result so far would be lost. Every end of a run is bounded, so
    the second need not interrupt. Only Python's own way of being interrupted is replaced, in the
    main thread, and put back at the end.
    """

    def __init__(self) -> None:
        self._pressed = 0
        self._replaced = False

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hear)
            self._replaced = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._replaced:
            self._replaced = False
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._pressed += 1
        if self._pressed == 2:
            return
        if _held.depth:
            _held.pressed = True
            return
        raise KeyboardInterrupt


class _Held:
    """Whether the main thread may not be interrupted now, and whether it was to be."""

    depth = 0
    pressed = False


_held = _Held()


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hear a Ctrl-C of a run only at the end of this, for what must be done whole or not at all.

    Raises:
        KeyboardInterrupt: there was one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held.depth += 1
    try:
        yield
    finally:
        _held.depth -= 1
        if not _held.depth and _held.pressed:
            _held.pressed = False
            raise KeyboardInterrupt
