"""The terminal as a viewer takes it over, and gives it back whatever happens."""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import signal
import struct
import termios
import threading
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import Any, Final

from rlcore import UnsupportedError

_TAKE: Final = b"\x1b[?1049h\x1b[?25l\x1b[2J"
# The first part ends an image that was cut off in the middle.
_GIVE_BACK: Final = b"\x1b\\\x1b[0m\x1b[?2026l\x1b[?25h\x1b[?1049l"
_GIVE_BACK_SECONDS: Final = 0.5
_ESCAPE_SECONDS: Final = 0.05


def open_terminal() -> Terminal:
    """Return the terminal that the user sits at.

    Raises:
        UnsupportedError: there is none, or it is another program's now.
    """
    standard = [fd for fd in (0, 1, 2) if _is_terminal(fd)]
    if not standard:
        raise UnsupportedError("neither input nor output is a terminal")
    # Opened anew, so that nobody else's writes are affected by what is set here.
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK
    try:
        fd = os.open("/dev/tty", flags)
    except OSError:
        try:
            fd = os.open(os.ttyname(standard[0]), flags)
        except OSError as error:
            raise UnsupportedError(f"the terminal cannot be opened: {error.strerror}") from error
    try:
        foreground = os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # not this process's controlling terminal: nobody stops it for reading
        foreground = True
    if not foreground:
        os.close(fd)
        raise UnsupportedError("the process runs in the background of its terminal")
    return Terminal(fd)


class Terminal:
    """Draws on a terminal and reads keys from it, between `take` and `give_back`.

    Args:
        fd: the terminal, opened for this alone and without blocking; closed by `give_back`.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.RLock()
        self._saved: list[Any] | None = None  # Any: what termios calls attributes
        self._pid = os.getpid()
        self._wake_in, self._wake_out = os.pipe()
        self._woken = False
        self._signal: object = None
        self._open = True

    def take(self) -> None:
        """Turn to a screen of its own, on which keys are not echoed, and Ctrl-C is a key."""
        self._saved = termios.tcgetattr(self._fd)
        atexit.register(self.give_back)
        # A process that is ended would leave a terminal on which nothing typed is seen.
        if threading.current_thread() is threading.main_thread() and (
            signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        ):
            signal.signal(signal.SIGTERM, self._on_end)
            self._signal = self._on_end
        raw = termios.tcgetattr(self._fd)
        raw[0] &= ~(termios.IXON | termios.ICRNL)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self._fd, termios.TCSAFLUSH, raw)
        self.write(_TAKE)

    def give_back(self) -> None:
        """Return to what was there before. A second call does nothing; any thread may call it."""
        if os.getpid() != self._pid:
            return  # a fork of the process, which shares the terminal but does not own it
        self.wake()  # who holds the lock may wait for a terminal that takes no more
        with self._lock:
            if self._open:
                self._open = False
                self._restore()
        atexit.unregister(self.give_back)
        self._restore_signal()

    def wake(self) -> None:
        """Let who waits for keys, or for a slow terminal, look up."""
        if not self._woken:
            self._woken = True
            os.write(self._wake_out, b"!")

    def write(self, data: bytes) -> bool:
        """Write all of it; False where it was woken while the terminal took no more.

        Raises:
            OSError: the terminal is gone.
        """
        with self._lock:
            return self._open and self._write(data, None)

    def keys(self, seconds: float) -> bytes:
        """Return what was typed, waiting for so long; nothing where it was woken or is closed.

        Raises:
            OSError: the terminal is gone.
        """
        ready = select.select([self._fd, self._wake_in], [], [], max(seconds, 0))[0]
        if self._woken or self._fd not in ready:
            return b""
        data = os.read(self._fd, 1024)
        if not data:
            raise OSError("the terminal is gone")
        # The rest of an arrow key may be under way; alone, an escape would end the run.
        if data.endswith(b"\x1b") and select.select([self._fd], [], [], _ESCAPE_SECONDS)[0]:
            data += os.read(self._fd, 1024)
        return data

    def size(self) -> tuple[int, int, tuple[int, int] | None]:
        """Return columns, rows, and width and height of a cell in pixels where that is known."""
        packed = fcntl.ioctl(self._fd, termios.TIOCGWINSZ, bytes(8))
        rows, columns, width, height = struct.unpack("HHHH", packed)
        columns, rows = columns or 80, rows or 24
        cell = (width // columns, height // rows)
        return columns, rows, cell if all(cell) else None

    def _restore(self) -> None:
        if self._saved is not None:
            with suppress(termios.error, OSError):  # a terminal that is gone needs nothing
                termios.tcsetattr(self._fd, termios.TCSANOW, self._saved)
            with suppress(OSError):
                self._write(_GIVE_BACK, monotonic() + _GIVE_BACK_SECONDS)
        for fd in (self._fd, self._wake_in, self._wake_out):
            os.close(fd)

    def _write(self, data: bytes, until: float | None) -> bool:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                if until is None:
                    ready = select.select([self._wake_in], [self._fd], [])
                    if ready[0]:
                        return False
                elif not select.select([], [self._fd], [], max(until - monotonic(), 0))[1]:
                    return False
        return True

    def _on_end(self, number: int, frame: FrameType | None) -> None:
        self.wake()
        self.give_back()
        os.kill(os.getpid(), number)

    def _restore_signal(self) -> None:
        if self._signal is None or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == self._signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._signal = None


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
