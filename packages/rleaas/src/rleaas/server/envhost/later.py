"""Doing something after a while."""

import threading
from collections.abc import Callable

Later = Callable[[float, Callable[[], None]], None]
"""Call something after some seconds, in a thread that does not hold the server's end."""


def call_later(seconds: float, call: Callable[[], None]) -> None:
    """Call it after so many seconds."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
