"""A thread that does a recorder's slow work in order, so that the run does not wait for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread, current_thread

Job = Callable[[], object]


class Worker:
    """Does jobs one after another on a thread of its own.

    What the jobs that wait may weigh together is bounded: whoever hands over more waits.

    Args:
        most: bytes that waiting jobs may hold. One job may always wait, whatever it weighs.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._change = Condition()
        self._jobs: deque[tuple[Job, int]] = deque()
        self._weight = 0
        self._unfinished = 0
        self._failure: BaseException | None = None
        self._thread: Thread | None = None
        self._ending = False

    def put(self, job: Job, weight: int = 0) -> None:
        """Hand over a job; wait while those before it weigh too much. None is done after the end.

        Args:
            job: what to do; what it raises comes out of the next `put` or `wait`.
            weight: how many bytes it holds until it is done.
        """
        with self._change:
            self._raise()
            while self._jobs and not self._ending and self._weight + weight > self._most:
                self._change.wait()
            self._raise()
            if self._ending:
                return
            if self._thread is None:
                self._thread = Thread(target=self._work, name="rlmesh-recorder", daemon=True)
                self._thread.start()
            self._jobs.append((job, weight))
            self._weight += weight
            self._unfinished += 1
            self._change.notify_all()

    def wait(self) -> None:
        """Return when everything that was handed over is done."""
        with self._change:
            while self._unfinished:
                self._change.wait()
            self._raise()

    def close(self) -> None:
        """Throw away what waits, let what is being done end, and stop the thread."""
        with self._change:
            self._ending = True
            self._unfinished -= len(self._jobs)
            self._jobs.clear()
            self._weight = 0
            self._change.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not current_thread():
            thread.join()

    def retire(self, last: Job) -> None:
        """Do a last job after those that wait, and stop the thread; wait for nothing.

        Args:
            last: what to do; on the caller's thread, if nothing waits.
        """
        with self._change:
            self._ending = True
            idle = not self._unfinished
            if not idle:
                self._jobs.append((last, 0))
                self._unfinished += 1
            self._change.notify_all()
        if idle:
            last()

    def _raise(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._jobs and not self._ending:
                    self._change.wait()
                if not self._jobs:
                    return
                job, weight = self._jobs.popleft()
            try:
                job()
            except BaseException as error:
                with self._change:
                    self._failure = self._failure or error
            # A frame is not kept until the next one comes.
            del job
            with self._change:
                self._weight = max(0, self._weight - weight)
                self._unfinished -= 1
                self._change.notify_all()
