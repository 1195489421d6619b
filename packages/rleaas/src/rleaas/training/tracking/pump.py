"""Feeds one tracker's process: nothing of it waits for the tracker, and its end is bounded."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from rlcore.environ import snapshot

from rleaas.training.tracking.trackers import Point, RunOf

Placed = Callable[[str, Mapping[str, object]], object]

LONGEST_QUEUE: Final = 20_000
BATCH: Final = 500
FLUSH_SECONDS: Final = 0.5


class Pump:
    """One tracker of a job.

    Args:
        name: the tracker's.
        run: the job, as trackers see it.
        placed: called once with where the run is, from a thread.
        command: starts the process, in tests another one.
    """

    def __init__(
        self,
        name: str,
        run: RunOf,
        *,
        placed: Placed,
        command: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.taken = 0
        self.offered = 0
        self.error: str | None = None
        self._placed = placed
        self._queue: deque[Point] = deque(maxlen=LONGEST_QUEUE)
        self._closing = threading.Event()
        own = [sys.executable, "-m", "rleaas.training.tracking.process", name]
        self._child = subprocess.Popen(
            own if command is None else list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Neither the worker's token nor anything else of ours is a tracker's matter.
            env={k: v for k, v in snapshot().items() if not k.startswith("RLEAAS_")},
        )
        first = {
            "job_id": run.job_id,
            "name": run.name,
            "directory": str(run.directory),
            "shared": str(run.shared),
            "settings": dict(run.settings),
            "facts": dict(run.facts),
        }
        self._writer = threading.Thread(
            target=self._write, args=(first,), name=f"rleaas-{name}", daemon=True
        )
        self._reader = threading.Thread(target=self._read, name=f"rleaas-{name}-in", daemon=True)
        self._writer.start()
        self._reader.start()

    def offer(self, point: Point) -> None:
        """Take a point; where too many wait, the oldest is dropped."""
        self.offered += 1
        self._queue.append(point)

    def finish(self) -> None:
        """Let it send what is left, and end."""
        self._closing.set()

    def close(self, deadline: float) -> int:
        """Wait for its end, until that moment at most, and return how many points were lost."""
        self.finish()
        self._writer.join(max(0.0, deadline - time.monotonic()))
        try:
            self._child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.error = self.error or "it did not come to its end in time"
            self._child.kill()
            self._child.wait()
        self._writer.join()
        self._reader.join()
        if self._child.returncode and self.error is None:
            self.error = f"its process ended with {self._child.returncode}"
        return self.offered - self.taken

    def _write(self, first: Mapping[str, object]) -> None:
        stdin = self._child.stdin
        if stdin is None:
            raise TypeError("the process has no standard input")
        try:
            # An empty batch opens the run before there is anything to tell.
            stdin.write(json.dumps(first) + "\n[]\n")
            stdin.flush()
            while not self._closing.wait(FLUSH_SECONDS) or self._queue:
                while self._queue:
                    count = min(BATCH, len(self._queue))
                    batch = [self._queue.popleft() for _ in range(count)]
                    told = [(one.step, one.at, dict(one.values)) for one in batch]
                    stdin.write(json.dumps(told) + "\n")
                stdin.flush()
        except OSError as error:  # the process has gone, or was ended
            self.error = self.error or f"its process has gone: {error}"
        finally:
            with suppress(OSError):
                stdin.close()

    def _read(self) -> None:
        stdout = self._child.stdout
        if stdout is None:
            raise TypeError("the process has no standard output")
        with stdout:
            for line in stdout:
                told = cast("dict[str, Any]", json.loads(line))
                self.taken += int(told.get("taken", 0))
                if self.error is None and told.get("error"):
                    self.error = str(told["error"])
                if "place" in told:
                    self._placed(self.name, told["place"])
