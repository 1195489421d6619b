"""The server that the quickstart works on: its own, or one that runs already."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

from rleaas.quickstart.plan import Plan
from rleaas.quickstart.vertical_plan import VerticalPlan


@contextmanager
def platform(plan: Plan | VerticalPlan) -> Generator[str]:
    """Give the server's address; an embedded server ends with the block, and all its processes."""
    if plan.base_url is not None:
        yield plan.base_url
        return
    from rleaas.server.local import LocalServer

    plan.data_folder.mkdir(parents=True, exist_ok=True)
    with interrupts_restored(), LocalServer(data_dir=plan.data_folder, port=0) as server:
        try:
            yield server.url
        finally:
            ignore_interrupts()


@contextmanager
def interrupts_restored() -> Generator[None]:
    """Give Ctrl-C back its meaning at the end of the block."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def ignore_interrupts() -> None:
    """Keep a second Ctrl-C from stopping what cleans up after the first."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
