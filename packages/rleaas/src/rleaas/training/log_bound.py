"""How large the log of a job may become, whoever writes to it."""

from __future__ import annotations

import os
import stat
import threading
import time
from typing import Final

MOST_LOG_BYTES: Final = 32 * 1024 * 1024
LONGEST_LINE: Final = 64 * 1024
_KEPT: Final = LONGEST_LINE - 100
FULL: Final = "[the log is full: what this job says from here on is not kept]"
_MARK: Final = f"\n{FULL}\n".encode()
_EVERY_SECONDS: Final = 0.25


def bound(file: int, most: int = MOST_LOG_BYTES) -> bool:
    """Cut a log that is larger, and say so at its end; returns whether it is full.

    Its beginning stays as it is, so positions in it stay true. `file` is open for writing.
    """
    size = os.fstat(file).st_size
    if size < most:
        return False
    if size != most + len(_MARK):
        os.ftruncate(file, most)
        # Somebody who appends in between makes it longer, and it is cut again.
        os.lseek(file, 0, os.SEEK_END)
        os.write(file, _MARK)
    return True


def bound_own_output() -> None:
    """Keep what this process writes to its standard output within the bound, while it lives.

    The file is cut where it is: nothing that is printed waits for that, and none of it is lost
    before the bound, however the process ends.
    """
    output = os.dup(1)
    if not stat.S_ISREG(os.fstat(output).st_mode):
        os.close(output)
        return

    def watch() -> None:
        while True:
            time.sleep(_EVERY_SECONDS)
            bound(output)

    threading.Thread(target=watch, name="rleaas-log-bound", daemon=True).start()


def shortened(line: str) -> str:
    """A line, cut where it is longer than `LONGEST_LINE`, with a mark within that length."""
    if len(line) <= LONGEST_LINE:
        return line
    return f"{line[:_KEPT]} [… {len(line) - _KEPT} more characters]"
