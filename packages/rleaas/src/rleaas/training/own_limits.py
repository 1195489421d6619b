"""The limits of a worker that nobody on its machine watches: it looks at them itself.

Where the server starts workers, it watches them. In a Ray cluster, which takes what a job says that
it needs for planning only, a thread of the worker does, and ends it by an exit code of its own.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast

LIMITS_VARIABLE: Final = "RLEAAS_WORKER_LIMITS"
"""Names what a worker may use, as `limits_text` writes it; unset: somebody else watches it."""

EXIT_CODES: Final[Mapping[str, int]] = {"memory_bytes": 91, "processes": 92}
"""How a worker exits that has passed this limit."""

_EVERY_SECONDS: Final = 0.5


def limits_text(*, memory_bytes: int | None, processes: int | None) -> str | None:
    """What the variable is set to; None: there is no limit."""
    told = {"memory_bytes": memory_bytes, "processes": processes}
    limits = {name: most for name, most in told.items() if most is not None}
    return json.dumps(limits) if limits else None


def watch_own_limits(told: str | None) -> None:
    """End this process, and all that it has started, when it passes a limit."""
    if told is None:
        return
    limits = cast("dict[str, int]", json.loads(told))

    def watch() -> None:
        while True:
            _mind(limits)
            time.sleep(_EVERY_SECONDS)

    threading.Thread(target=watch, name="rleaas-own-limits", daemon=True).start()


def _mind(limits: Mapping[str, int]) -> None:
    # Only workers with limits need it, and the nodes of a cluster have it.
    import psutil

    from rleaas.training.process_usage import excess_of, family

    excess = excess_of(os.getpid(), limits.get("memory_bytes"), limits.get("processes"))
    if excess is None:
        return
    sys.stderr.write(f"error: the worker was ended as it {excess.what}\n")
    sys.stderr.flush()
    _, *children = family(os.getpid())
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    # Not sys.exit: that would end this thread only.
    os._exit(EXIT_CODES[excess.limit])
