"""`python -m rleaas.training.tracking.process NAME`: one tracker, fed over standard input.

It is a process of its own, so that a tracker that hangs, crashes or will not end can be ended from
outside, and never holds a training up. Each line in is JSON: the run first, then points. Each line
out is JSON: `place` once the run is open, `taken` for each batch that was kept, `error` and how
many points were `lost` by it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from rlcore import environ

from rleaas.training.tracking.trackers import TRACKERS, Point, RunOf, Tracker

SECRETS: Final = (
    "WANDB_API_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_USERNAME",
)
"""Variables whose values are never told."""

QUICKLY: Final = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "WANDB_HTTP_TIMEOUT": "5",
    "WANDB_SILENT": "true",
}
"""Variables that let trackers give up soon; who sets them otherwise is obeyed."""

AGAIN_AFTER: Final = 2.0
"""Seconds until a run that could not be opened is tried again."""

_LONGEST_ERROR: Final = 300


def serve(
    tracker: Tracker,
    lines: Iterable[str],
    tell: Callable[[Mapping[str, object]], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Keep what the lines bring, and tell of each batch what became of it."""
    source = iter(lines)
    run = run_from(json.loads(next(source)))
    opened = False
    next_try = clock()
    for line in source:
        points = [Point(*one) for one in json.loads(line)]
        try:
            if not opened and clock() >= next_try:
                next_try = clock() + AGAIN_AFTER
                place = tracker.open(run)
                opened = True
                tell({"place": place})
            if not opened:
                tell({"lost": len(points)})
                continue
            if points:
                tracker.log(points)
                tell({"taken": len(points)})
        except Exception as error:  # whatever a tracker raises is a gap in its chart
            tell({"lost": len(points), "error": described(error)})
    if opened:
        try:
            tracker.close()
        except Exception as error:
            tell({"lost": 0, "error": described(error)})


def run_from(told: Mapping[str, Any]) -> RunOf:
    """Return the run that the first line tells of."""
    return RunOf(
        job_id=told["job_id"],
        name=told["name"],
        directory=Path(told["directory"]),
        shared=Path(told["shared"]),
        settings=told["settings"],
        facts=told["facts"],
    )


def described(error: Exception) -> str:
    """Return what failed in one line, without the secrets that it may hold."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    for name in SECRETS:
        secret = environ.variable(name)
        if secret:
            text = text.replace(secret, "…")
    return text[:_LONGEST_ERROR]


def main() -> int:
    """Run the tracker that the command line names."""
    for name, value in QUICKLY.items():
        os.environ.setdefault(name, value)  # noqa: TID251 - read by the trackers' libraries
    # A job that is stopped ends its trackers by closing their input, not by a signal to all.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a library prints must not look like a line of ours.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def tell(what: Mapping[str, object]) -> None:
        print(json.dumps(what), file=out, flush=True)

    serve(cast("Any", TRACKERS[sys.argv[1]])(), sys.stdin, tell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
