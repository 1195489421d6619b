"""The scheduler: gives pending jobs to workers and sees each one through to its end.

A worker that dies is started again from the last checkpoint of its job. Workers go on when their
server dies, and the next server on the same database adopts them.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rlcore import mint_token

from rleaas.server.job_logs import JobLogs
from rleaas.server.jobs.commands import WorkerCommand, worker_command
from rleaas.server.jobs.executor import Ended, Executor, Launch
from rleaas.server.jobs.limits import limits_of
from rleaas.server.jobs.patience import Patience
from rleaas.server.keys import ServerKeys
from rleaas.server.rules import lifecycle
from rleaas.server.rules.restarts import StartAgain, after_death
from rleaas.server.rules.worker_tokens import worker_subject
from rleaas.server.store import attempts, jobs, leases
from rleaas.server.store.database import Database
from rleaas.server.store.tables import JobRow

logger = logging.getLogger("rleaas.server.jobs")

# Longer than any job goes on: each use of it asks whether the job has ended.
_WORKER_TOKEN_SECONDS = 30 * 24 * 3600.0
_LOG_LINES_IN_ERROR = 5
_STOPPED = "was stopped with its server"
_GLANCE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What an operator decides about jobs.

    Attributes:
        max_jobs: how many run at the same time on this server.
        max_restarts: how often a job is started again after its worker has died.
        worker_patience: for how many seconds workers go on without a server; None: they end with
            their server at once.
        memory_bytes: how much memory a worker may use; None is no limit.
    """

    max_jobs: int = 2
    max_restarts: int = 3
    worker_patience: float | None = None
    memory_bytes: int | None = None


@dataclass(slots=True)
class _Worker:
    handle: str
    attempt: int
    started: float
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    finished: float | None = None
    cancelled: float | None = None
    silent: bool = False
    terminated: float | None = None


class Scheduler:
    """Runs up to `max_jobs` jobs at a time, in the order that `rules.queue` gives.

    Several servers may share a database: each job has the one that runs it as its holder, and when
    that one is gone, another takes the job over.
    """

    def __init__(
        self,
        database: Database,
        executor: Executor,
        logs: JobLogs,
        keys: ServerKeys,
        *,
        command: WorkerCommand = worker_command,
        rules: Rules | None = None,
        patience: Patience | None = None,
        holder: str = "this",
    ) -> None:
        self._database = database
        self._executor = executor
        self._logs = logs
        self._keys = keys
        self._command = command
        self._rules = rules or Rules()
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

    @property
    def rules(self) -> Rules:
        """What the operator has decided."""
        return self._rules

    def start(self, url: str) -> None:
        """Begin; `url` is where workers reach this server.

        Workers that earlier servers have left are adopted; jobs whose worker is gone go on from
        their last checkpoint.
        """
        self._url = url
        with self._database.write() as session:
            if self._database.is_sqlite:
                leases.release_all(session)  # the data directory is ours alone
        self.look_after_leases()
        self._thread = threading.Thread(target=self._run, name="rleaas-scheduler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop all workers when they have saved their work; their jobs wait for the next start."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        for worker in self._workers.values():
            self._executor.terminate(worker.handle)
        until = time.monotonic() + self._patience.to_stop
        while self._workers:
            for job_id, worker in list(self._workers.items()):
                if isinstance(self._executor.look(worker.handle), Ended):
                    del self._workers[job_id]
                    self._release(job_id)
            if time.monotonic() > until:
                for worker in self._workers.values():
                    self._executor.kill(worker.handle)
            if self._workers:
                time.sleep(_GLANCE_SECONDS)
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

    def position(self, job_id: str) -> int | None:
        """How many jobs are before this one, counted from 1; None: it does not wait."""
        with self._database.read() as session:
            order = attempts.queue(session)
        return next((at for at, one in enumerate(order, 1) if one.job_id == job_id), None)

    def look_after_leases(self) -> None:
        """Renew our lease, and take over the jobs of servers that have lost theirs."""
        with self._database.write() as session:
            leases.renew(session, self._holder)
            alive = leases.alive(session)
            lost = [row.id for row in jobs.unfinished(session) if row.holder not in alive]
        self._renewed = time.monotonic()
        for job_id in lost:
            self._take_over(job_id)

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

    def _tick(self) -> None:
        if time.monotonic() - self._renewed > leases.LEASE_SECONDS / 3:
            self.look_after_leases()
        for job_id, worker in list(self._workers.items()):
            found = self._executor.look(worker.handle)
            if isinstance(found, Ended):
                # Before it is forgotten: what cannot be written down now is tried again.
                self._settle(job_id, worker, found)
                del self._workers[job_id]
            else:
                self._watch(job_id, worker)
        while len(self._workers) < self._rules.max_jobs and self._launch():
            pass

    def _take_over(self, job_id: str) -> None:
        with self._database.write() as session:
            row = session.get(JobRow, job_id)
            alive = leases.alive(session)
            if row is None or row.status != lifecycle.RUNNING or row.holder in alive:
                return  # another server was faster
            # One writer at a time: from here on it is ours.
            row.holder = self._holder
            handle, attempt = row.worker, row.attempts
        found = Ended(None, "was lost with its server") if handle is None else None
        if handle is not None:
            looked = self._executor.look(handle)
            found = looked if isinstance(looked, Ended) else None
        worker = _Worker(handle or "", attempt, time.monotonic())
        if found is None:
            self._executor.announce(worker.handle, self._url)
            self._workers[job_id] = worker
            self._logs.append(job_id, [f"attempt {attempt} was adopted by the server {self._url}"])
        else:
            self._settle(job_id, worker, found)

    def _launch(self) -> bool:
        with self._database.write() as session:
            # A worker that has given its job back may still be on its way out.
            free = self._rules.max_jobs - len(self._workers)
            row = attempts.next_due(session, free, but=list(self._workers))
            if row is None:
                return False
            # One writer at a time: of several servers only one finds it pending.
            attempts.begin(session, row, self._holder)
        launch = Launch(
            kind=row.kind,
            job_id=row.id,
            attempt=row.attempts,
            command=self._command(row.kind, row.id, self._url),
            environment=self._environment(row),
            log=self._logs.path(row.id),
            limits=limits_of(row.request, memory_bytes=self._rules.memory_bytes),
        )
        try:
            handle = self._executor.start(launch)
        except OSError as error:
            self._fail(row.id, f"its worker cannot be started: {error}", "worker_not_started")
            return True
        self._workers[row.id] = _Worker(handle, row.attempts, time.monotonic())
        with self._database.write() as session:
            started = session.get(JobRow, row.id)
            if started is not None and started.attempts == row.attempts:
                started.worker = handle
        return True

    def _environment(self, row: JobRow) -> Mapping[str, str]:
        token = mint_token(
            self._keys.workers,
            subject=worker_subject(row.kind, row.id, row.attempts),
            expires_at=time.time() + _WORKER_TOKEN_SECONDS,
        )
        patience = self._rules.worker_patience
        return {
            "RLEAAS_WORKER_TOKEN": token,
            "RLEAAS_BASE_URL": self._url,
            "RLEAAS_API_KEY": token,
            "PYTHONUNBUFFERED": "1",
            **(
                {"RLEAAS_SERVER_PID": str(os.getpid())}
                if patience is None
                else {"RLEAAS_WORKER_PATIENCE": f"{patience:g}"}
            ),
        }

    def _watch(self, job_id: str, worker: _Worker) -> None:
        now = time.monotonic()
        with self._database.read() as session:
            row = session.get(JobRow, job_id)
        if row is not None and row.attempts != worker.attempt:
            self._executor.kill(worker.handle)  # another server has begun it anew
            return
        if row is not None and row.status == lifecycle.RUNNING and row.holder != self._holder:
            del self._workers[job_id]  # another server has adopted it: our lease had run out
            return
        if row is not None and _is_cancelled_unbegun(row):
            # It is still importing: it holds nothing, and would hear of a signal only later.
            self._executor.kill(worker.handle)
            return
        if row is not None and row.cancel_requested_at is not None:
            worker.cancelled = worker.cancelled or now
            overdue = now - worker.cancelled > self._patience.to_cancel
        elif row is None or row.status != lifecycle.RUNNING:
            worker.finished = worker.finished or now
            overdue = now - worker.finished > self._patience.to_exit
        else:
            overdue = worker.silent = self._is_silent(row, worker)
        if not overdue:
            return
        if worker.terminated is None:
            worker.terminated = now
            self._executor.terminate(worker.handle)
        elif now - worker.terminated > self._patience.to_terminate:
            self._executor.kill(worker.handle)

    def _is_silent(self, row: JobRow, worker: _Worker) -> bool:
        # An adopted worker could not report while there was no server.
        heard = max(worker.began, row.last_seen_at or worker.began)
        return (datetime.now(UTC) - heard).total_seconds() > self._patience.to_report

    def _settle(self, job_id: str, worker: _Worker, ended: Ended) -> None:
        """Decide about a job whose worker is gone, unless its own report has done so."""
        how = ended.how
        if worker.silent:
            how = f"did not report for {self._patience.to_report:g} s and was ended"
        said = self._logs.tail(job_id, _LOG_LINES_IN_ERROR)
        told: str | None = None
        with self._database.write() as session:
            row = session.get(JobRow, job_id)
            if row is None or row.attempts != worker.attempt:
                return
            how_it_ended = how if row.status == lifecycle.RUNNING else "ended in order"
            attempts.note_end(row, how_it_ended, ended.code)
            if row.status != lifecycle.RUNNING:
                row.worker = None
            elif row.cancel_requested_at is not None:
                jobs.finish(session, row, lifecycle.CANCELLED)
            else:
                verdict = after_death(
                    how,
                    said,
                    exceeded=ended.exceeded,
                    restarts=row.restarts,
                    most_restarts=self._rules.max_restarts,
                    first_delay=self._patience.to_restart,
                    earlier=[str(one.get("ended")) for one in row.history[:-1]],
                    by_itself=ended.code is not None and ended.code >= 0 and not worker.silent,
                )
                if isinstance(verdict, StartAgain):
                    told = f"attempt {row.attempts}: {verdict.why}"
                    attempts.requeue(session, row, how, died=True, delay=verdict.delay)
                else:
                    told = f"attempt {row.attempts}: {verdict.error}"
                    row.results = {**row.results, "failure_reason": verdict.reason}
                    jobs.finish(session, row, lifecycle.FAILED, verdict.error)
        if told is not None:
            logger.warning("%s: %s", job_id, told.partition("\n")[0])
            self._logs.append(job_id, [told.partition("; its last output")[0]])
        with self._finished:
            self._finished.notify_all()

    def _release(self, job_id: str) -> None:
        """Let a job wait whose worker was stopped with this server."""
        with self._database.write() as session:
            row = session.get(JobRow, job_id)
            if row is None or row.holder != self._holder:
                return
            if row.status == lifecycle.RUNNING and row.cancel_requested_at is not None:
                jobs.finish(session, row, lifecycle.CANCELLED)
            attempts.requeue(session, row, _STOPPED, died=False)

    def _fail(self, job_id: str, error: str, reason: str) -> None:
        with self._database.write() as session:
            row = session.get(JobRow, job_id)
            if row is not None and row.status == lifecycle.RUNNING:
                attempts.note_end(row, error)
                row.results = {**row.results, "failure_reason": reason}
                jobs.finish(session, row, lifecycle.FAILED, error)
        with self._finished:
            self._finished.notify_all()


def _is_cancelled_unbegun(row: JobRow) -> bool:
    return (
        row.cancel_requested_at is not None
        and row.status == lifecycle.RUNNING
        and row.last_seq == 0
    )
