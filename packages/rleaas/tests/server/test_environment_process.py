"""The process of one environment, as the server sees it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from pathlib import Path

from rleaas.server.children import Children
from rleaas.server.envhost.process import EnvironmentProcess


def test_who_asks_right_after_its_end_is_told_while_another_thread_waits_for_it(
    tmp_path: Path,
) -> None:
    """The other thread collects the process a moment after it is gone: one try in six, once."""
    children = Children()
    told: list[str | None] = []
    for _ in range(100):
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        process = EnvironmentProcess(children, child, tmp_path / "none.log", -1)
        watch = threading.Thread(target=process.wait)
        watch.start()
        gone = os.pidfd_open(child.pid)
        os.kill(child.pid, signal.SIGKILL)
        select.select([gone], [], [], 10)
        os.close(gone)
        told.append(process.ended())
        watch.join()
    children.close()

    assert set(told) == {"killed by SIGKILL: it said nothing"}
