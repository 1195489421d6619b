"""The scheduler: gives pending jobs to worker processes and sees each one through to its end."""

import logging
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import mint_token
from sqlalchemy.orm import Session

from rleaas.server.children import Children
from rleaas.server.job_logs import JobLogs
from rleaas.server.jobs.commands import WorkerCommand, worker_command
from rleaas.server.keys import ServerKeys
from rleaas.server.rules import lifecycle
from rleaas.server.store import events, jobs, leases
from rleaas.server.store.database import Database
from rleaas.server.store.tables import JobRow

logger = logging.getLogger("rleaas.server.jobs")

# Longer than any job goes on: each use of it asks whether the job has ended.
_WORKER_TOKEN_SECONDS = 30 * 24 * 3600.0
_LOG_LINES_IN_ERROR = 5


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the scheduler waits, in seconds, before it does what the worker did not do."""

    tick: float = 0.2
    to_cancel: float = 10.0
    to_terminate: float = 5.0
    to_exit: float = 15.0
    to_report: float = 300.0


@dataclass(slots=True)
class _Worker:
    child: subprocess.Popen[bytes]
    started: float
    finished: float | None = None
    cancelled: float | None = None
    silent: bool = False
    terminated: float | None = None
    seen: datetime | None = field(default=None)


class Scheduler:
    """Runs up to `max_workers` jobs at a time, oldest first.

    Several servers may share a database: each job has the one that runs it as its holder.
    """

    def __init__(
        self,
        database: Database,
        children: Children,
        logs: JobLogs,
        keys: ServerKeys,
        *,
        command: WorkerCommand = worker_command,
        max_workers: int = 2,
        patience: Patience | None = None,
        holder: str = "this",
    ) -> None:
        self._database = database
        self._children = children
        self._logs = logs
        self._keys = keys
        self._command = command
        self._max_workers = max_workers
        self._patience = patience or Patience()
        self._workers: dict[str, _Worker] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._finished = threading.Condition()
        self._thread: threading.Thread | None = None
        self._url = ""
        self._holder = holder
        self._renewed = 0.0

    @property
    def is_running(self) -> bool:
        """Whether jobs are given out: it was started, and is not stopping."""
        thread = self._thread
        return thread is not None and thread.is_alive() and not self._stopping.is_set()

    def start(self, url: str) -> None:
        """Begin; `url` is where workers reach this server.

        Jobs of servers that have stopped have lost their workers and have failed.
        """
        self._url = url
        with self._database.write() as session:
            if self._database.is_sqlite:
                leases.release_all(session)  # the data directory is ours alone
        self.look_after_leases()
        self._thread = threading.Thread(target=self._run, name="rleaas-scheduler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop all workers; what they were doing has failed, what was pending stays pending."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        try:
            # Said before the workers are told, whose own reports would only say a signal came.
            for job_id in self._workers:
                self._end(job_id, "the server stopped")
        finally:
            for worker in self._workers.values():
                self._children.signal(worker.child, signal.SIGTERM)
            for worker in self._workers.values():
                self._children.stop(worker.child, grace=3.0)
            self._workers.clear()
        with self._database.write() as session:
            leases.release(session, self._holder)

    def wake(self) -> None:
        """Look now: a job was added, or a report changed one."""
        self._wake.set()
        with self._finished:
            self._finished.notify_all()

    def wait_finished(self, kind: str, job_id: str, seconds: float) -> JobRow:
        """The job, as soon as it has ended or the time is up."""
        deadline = time.monotonic() + seconds
        while True:
            with self._database.read() as session:
                row = jobs.find(session, kind, job_id)
            left = deadline - time.monotonic()
            if row.status in lifecycle.TERMINAL or left <= 0:
                return row
            with self._finished:
                self._finished.wait(min(left, 0.2))

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._tick()
            except Exception:
                # The scheduler must outlive a full disk or a locked database; it tries again.
                logger.exception("the scheduler could not do its round; it goes on")
                self._stopping.wait(1.0)
            self._wake.wait(self._patience.tick)
            self._wake.clear()

    def look_after_leases(self) -> None:
        """Renew our lease, and end the jobs of servers that have lost theirs."""
        with self._database.write() as session:
            leases.renew(session, self._holder)
            alive = leases.alive(session)
            for row in jobs.unfinished(session):
                if row.holder in alive:
                    continue
                if row.cancel_requested_at is not None:
                    jobs.finish(session, row, lifecycle.CANCELLED)
                else:
                    jobs.finish(session, row, lifecycle.FAILED, "the server stopped")
        self._renewed = time.monotonic()

    def _tick(self) -> None:
        if time.monotonic() - self._renewed > leases.LEASE_SECONDS / 3:
            self.look_after_leases()
        for job_id, worker in list(self._workers.items()):
            code = worker.child.poll()
            if code is None:
                self._watch(job_id, worker)
            else:
                self._children.reaped(worker.child)
                del self._workers[job_id]
                self._end(job_id, self._death(job_id, worker, code))
        while len(self._workers) < self._max_workers and self._launch():
            pass

    def _launch(self) -> bool:
        with self._database.write() as session:
            row = jobs.oldest_pending(session)
            if row is None:
                return False
            # One writer at a time: of several servers only one finds it pending.
            row.status = lifecycle.RUNNING
            row.holder = self._holder
            row.started_at = datetime.now(UTC)
            jobs.tell(session, row, "launched", {})
        token = mint_token(
            self._keys.workers,
            subject=worker_subject(row.kind, row.id),
            expires_at=time.time() + _WORKER_TOKEN_SECONDS,
        )
        environment = {
            "RLEAAS_WORKER_TOKEN": token,
            "RLEAAS_BASE_URL": self._url,
            "RLEAAS_API_KEY": token,
            "RLEAAS_SERVER_PID": str(os.getpid()),
            "PYTHONUNBUFFERED": "1",
        }
        try:
            with self._logs.open(row.id) as output:
                child = self._children.start(
                    self._command(row.kind, row.id, self._url),
                    environment=environment,
                    output=output,
                )
        except OSError as error:
            self._end(row.id, f"its worker cannot be started: {error}")
            return True
        self._workers[row.id] = _Worker(child, time.monotonic())
        return True

    def _watch(self, job_id: str, worker: _Worker) -> None:
        now = time.monotonic()
        with self._database.read() as session:
            row = session.get(JobRow, job_id)
            if row is not None and _is_cancelled_unbegun(session, row):
                # It is still importing: it holds nothing, and would hear of a signal only later.
                self._children.signal(worker.child, signal.SIGKILL)
                return
        if row is None or row.status in lifecycle.TERMINAL:
            worker.finished = worker.finished or now
            overdue = now - worker.finished > self._patience.to_exit
        elif row.cancel_requested_at is not None:
            worker.cancelled = worker.cancelled or now
            overdue = now - worker.cancelled > self._patience.to_cancel
        else:
            overdue = worker.silent = self._is_silent(row, worker)
        if not overdue:
            return
        if worker.terminated is None:
            worker.terminated = now
            self._children.signal(worker.child, signal.SIGTERM)
        elif now - worker.terminated > self._patience.to_terminate:
            self._children.signal(worker.child, signal.SIGKILL)

    def _is_silent(self, row: JobRow, worker: _Worker) -> bool:
        if row.last_seen_at is None:
            return time.monotonic() - worker.started > self._patience.to_report
        silence = (datetime.now(UTC) - row.last_seen_at).total_seconds()
        return silence > self._patience.to_report

    def _death(self, job_id: str, worker: _Worker, code: int) -> str:
        if worker.silent:
            how = f"its worker did not report for {self._patience.to_report:g} s and was ended"
        elif code < 0:
            how = f"its worker was killed by {signal.Signals(-code).name}"
        else:
            how = f"its worker ended with exit code {code} before the job was done"
        said = self._logs.tail(job_id, _LOG_LINES_IN_ERROR)
        return f"{how}; its last output:\n" + "\n".join(said) if said else how

    def _end(self, job_id: str, error: str) -> None:
        with self._database.write() as session:
            row = session.get(JobRow, job_id)
            if row is None:
                return
            if row.cancel_requested_at is not None:
                jobs.finish(session, row, lifecycle.CANCELLED)
            else:
                jobs.finish(session, row, lifecycle.FAILED, error)
        with self._finished:
            self._finished.notify_all()


def _is_cancelled_unbegun(session: Session, row: JobRow) -> bool:
    if row.cancel_requested_at is None or row.status in lifecycle.TERMINAL:
        return False
    return not events.about(session, jobs.subject(row), ["started"], limit=1)


def worker_subject(kind: str, job_id: str) -> str:
    """Whom a worker's token is for."""
    return f"worker:{kind}:{job_id}"
