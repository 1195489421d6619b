"""Calls a model: in one thread of its own, one call at a time, whoever asks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Final

from rlcore.log import logger

from rlmesh.server.model_jobs import Chore, Prediction, predict

log = logger("rlmesh", "server")

# Rows of one call, so that one burst of clients does not ask a model for what it has no memory for.
MOST_FUSED_ROWS: Final = 64


class Driver:
    """Takes jobs and does them in its thread, in the order in which they came.

    Predictions of different clients that wait together go into one call of the model, where their
    routes can be fused. Nothing overtakes what came before it on its own route.

    Attributes:
        calls: how often the model was asked.
        rows: for how many observations.
    """

    def __init__(self) -> None:
        self._inbox: SimpleQueue[Prediction | Chore | None] = SimpleQueue()
        self._waiting: deque[Prediction | Chore | None] = deque()
        self._lock = threading.Lock()
        self._given = self._done = 0
        self._thread = threading.Thread(target=self._work, name="rlmesh-model", daemon=True)
        self.calls = 0
        self.rows = 0
        self.last_job = time.monotonic()

    @property
    def busy(self) -> bool:
        """Whether anything is being done or waits to be."""
        return self._given != self._done

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def put(self, job: Prediction | Chore) -> None:
        """Have a job done in its turn."""
        with self._lock:
            self._given += 1
        self._inbox.put(job)

    def stop(self, seconds: float) -> bool:
        """Finish what waits and end; False when that takes longer than `seconds`."""
        self._inbox.put(None)
        if self._thread.ident is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while True:
            if not self._waiting:
                self._waiting.append(self._inbox.get())
            self._take_all()
            job = self._waiting.popleft()
            if job is None:
                return
            jobs: list[Prediction | Chore] = [job]
            if isinstance(job, Prediction):
                jobs += self._companions(job)
            self._do(jobs)
            self.last_job = time.monotonic()
            self._done += len(jobs)

    def _take_all(self) -> None:
        while not self._inbox.empty():
            self._waiting.append(self._inbox.get())

    def _do(self, jobs: Sequence[Prediction | Chore]) -> None:
        try:
            first = jobs[0]
            if isinstance(first, Chore):
                first.perform()
                return
            wanted = [job for job in jobs if isinstance(job, Prediction) and job.wanted()]
            if wanted:
                self.calls += 1
                self.rows += sum(job.rows for job in wanted)
                predict(wanted)
        except BaseException:  # whatever it was, the next client must be answered
            log.exception("a job of the model's driver failed")

    def _companions(self, first: Prediction) -> list[Prediction]:
        """Take from those that wait the predictions that go into one call with the first."""
        fusion, rows = first.route.fusion, first.rows
        if fusion is None or first.ask.leaves is None or not self._waiting:
            return []
        found: list[Prediction] = []
        left, passed = deque[Prediction | Chore | None](), {id(first.route)}
        while self._waiting:
            job = self._waiting.popleft()
            if not isinstance(job, Prediction):
                # A chore, or the end: nothing that came later is done before it.
                left.append(job)
                break
            key = id(job.route)
            fits = job.route.fusion == fusion and job.ask.leaves is not None
            if fits and key not in passed and rows + job.rows <= MOST_FUSED_ROWS:
                found.append(job)
                rows += job.rows
            else:
                left.append(job)
            passed.add(key)
        left.extend(self._waiting)
        self._waiting = left
        return found
