"""Workers as jobs of a Ray cluster, by its job submission API."""

# ray leaves most of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import json
import logging
import secrets
import shlex
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from ray.job_submission import JobStatus, JobSubmissionClient
from rlcore import ConfigurationError

from rleaas.server.jobs.executor import Ended, Launch, Running, over_time
from rleaas.server.jobs.ray_cluster import RayCluster
from rleaas.training.own_limits import EXIT_CODES, LIMITS_VARIABLE, limits_text

logger = logging.getLogger("rleaas.server.jobs.ray")

_EVERY_SECONDS = 1.0
_TO_KILL_SECONDS = 30.0
_MOST_LOG_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Handle:
    submission: str
    log: str
    wall_seconds: float | None
    stop_seconds: float = 0.0
    memory_bytes: int | None = None
    processes: int | None = None

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(slots=True)
class _Job:
    handle: _Handle
    copied: int
    submitting: Future[None] | None = None
    ended: Ended | None = None
    stopped: bool = False
    killed: float | None = None


class RayExecutor:
    """Submits each worker to the cluster as a job of it, and asks the cluster how that is.

    The handle names the submission, which the cluster knows however often the server restarts.
    While the cluster does not answer, its jobs count as running: workers report to the server
    themselves, and one that is silent for long is ended by the scheduler.

    Args:
        cluster: where it is, and what a worker takes of it.
        root: where it is noted how much of each worker's output has been copied.

    Raises:
        ConfigurationError: there is no cluster at the address.
    """

    name = "ray"

    def __init__(self, cluster: RayCluster, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._cluster = cluster
        self._root = root
        try:
            self._client = JobSubmissionClient(cluster.address)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"no Ray cluster answers at {cluster.address}: {_first_line(error)}",
                code="ray_unreachable",
                hint="Give the address of its dashboard, as http://host:8265",
            ) from error
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._closed = threading.Event()
        self._errands = ThreadPoolExecutor(max_workers=4, thread_name_prefix="rleaas-ray")
        self._watch = threading.Thread(target=self._run, name="rleaas-ray-watch", daemon=True)
        self._watch.start()

    def start(self, launch: Launch) -> str:
        """Submit the worker, from a thread of its own; what comes of that `look` tells."""
        handle = _Handle(
            # The same job may have run under the same id in an earlier life of its database.
            f"rleaas-{launch.job_id}-{launch.attempt}-{secrets.token_hex(3)}",
            str(launch.log),
            launch.limits.wall_seconds,
            launch.limits.stop_seconds,
            launch.limits.memory_bytes,
            launch.limits.processes,
        )
        job = _Job(handle, copied=0)
        with self._lock:
            self._jobs[handle.text()] = job
        job.submitting = self._errands.submit(self._submit, job, launch)
        return handle.text()

    def look(self, handle: str) -> Running | Ended:
        """Return whether the worker is there, as the cluster said about a second ago."""
        job = self._job(handle)
        since = None if job.ended else job.killed
        if since is not None and time.monotonic() - since > _TO_KILL_SECONDS:
            job.ended = Ended(None, "was to end, and the Ray cluster does not say that it did")
        return job.ended or Running()

    def announce(self, handle: str, url: str) -> None:
        """Watch the job from now on; workers on other hosts know the server by its public URL."""
        self._job(handle)

    def terminate(self, handle: str) -> None:
        """Ask the worker to save its work and end; Ray kills it some seconds later."""
        job = self._job(handle)
        job.stopped = True
        if job.submitting is None or job.submitting.done():
            self._errands.submit(self._stop, job)

    def kill(self, handle: str) -> None:
        """End the worker; the cluster has no quicker way than `terminate`."""
        job = self._job(handle)
        if job.killed is None:
            job.killed = time.monotonic()
            self.terminate(handle)

    def close(self) -> None:
        """Watch no more; workers go on."""
        self._closed.set()
        self._errands.shutdown(wait=True)
        self._watch.join()

    def _job(self, handle: str) -> _Job:
        with self._lock:
            job = self._jobs.get(handle)
            if job is None:
                read = _Handle(**json.loads(handle))
                note = self._note(read)
                copied = int(note.read_text("ascii")) if note.exists() else 0
                job = self._jobs[handle] = _Job(read, copied)
        return job

    def _note(self, handle: _Handle) -> Path:
        return self._root / f"{handle.submission}.copied"

    def _submit(self, job: _Job, launch: Launch) -> None:
        cluster = self._cluster
        given = dict(cluster.runtime_env)
        variables = given.pop("env_vars", {})
        told = dict(variables) if isinstance(variables, Mapping) else {}
        limits = limits_text(
            memory_bytes=launch.limits.memory_bytes, processes=launch.limits.processes
        )
        # Ray plans with the memory that a job asks for, and lets it use any.
        minded = {} if limits is None else {LIMITS_VARIABLE: limits}
        _, *arguments = launch.command  # this machine's interpreter, which nodes need not have
        self._client.submit_job(
            entrypoint=shlex.join([cluster.python, *arguments]),
            submission_id=job.handle.submission,
            runtime_env={**given, "env_vars": {**told, **launch.environment, **minded}},
            metadata={"rleaas_job": launch.job_id, "rleaas_attempt": str(launch.attempt)},
            entrypoint_num_cpus=cluster.cpus,
            entrypoint_num_gpus=cluster.gpus or None,
            entrypoint_memory=launch.limits.memory_bytes,
            entrypoint_resources=dict(cluster.resources) or None,
        )
        if job.stopped:
            self._stop(job)

    def _stop(self, job: _Job) -> None:
        try:
            self._client.stop_job(job.handle.submission)
        except (RuntimeError, OSError) as error:
            # One that is not there has ended; of one that runs on, the scheduler asks again.
            logger.warning("Ray did not stop %s: %s", job.handle.submission, _first_line(error))

    def _run(self) -> None:
        while not self._closed.wait(_EVERY_SECONDS):
            with self._lock:
                watched = [job for job in self._jobs.values() if job.ended is None]
            for job in watched:
                try:
                    self._ask(job)
                except Exception:
                    # The watch must outlive a full disk and a cluster that talks nonsense.
                    logger.exception("Ray's job %s could not be watched", job.handle.submission)

    def _ask(self, job: _Job) -> None:
        if job.submitting is not None:
            if not job.submitting.done():
                return
            error = job.submitting.exception()
            if error is not None:
                job.ended = Ended(None, f"was not taken by Ray: {_last_line(error)}")
                return
        try:
            told = self._client.get_job_info(job.handle.submission)
        except (RuntimeError, OSError) as error:  # requests raises OSErrors
            if "does not exist" in str(error):
                job.ended = Ended(None, "is not known to the Ray cluster")
            else:
                logger.warning("the Ray cluster does not answer: %s", _first_line(error))
            return
        self._copy_output(job)
        if told.status.is_terminal():
            job.ended = _ending(job.handle, told.status, told.driver_exit_code, told.message)
            self._note(job.handle).unlink(missing_ok=True)
        elif self._is_over(job, told.start_time):
            self._stop(job)
            limit = job.handle.wall_seconds or 0.0
            how = over_time(limit, limit, job.handle.stop_seconds)
            job.ended = Ended(None, how, exceeded="wall_seconds")

    def _is_over(self, job: _Job, started: int | None) -> bool:
        limit = job.handle.wall_seconds
        return limit is not None and started is not None and time.time() - started / 1000 > limit

    def _copy_output(self, job: _Job) -> None:
        if job.copied >= _MOST_LOG_BYTES:
            return
        try:
            text = self._client.get_job_logs(job.handle.submission)
        except (RuntimeError, OSError) as error:
            # The node of a worker that is lost takes its output with it.
            logger.info("Ray has no output of %s: %s", job.handle.submission, _first_line(error))
            return
        fresh = text.encode()[job.copied : _MOST_LOG_BYTES]
        if fresh:
            with Path(job.handle.log).open("ab") as file:
                file.write(fresh)
            job.copied += len(fresh)
            self._note(job.handle).write_text(str(job.copied), "ascii")


def _ending(handle: _Handle, status: JobStatus, code: int | None, message: str | None) -> Ended:
    excess = None if status is JobStatus.STOPPED else _excess(handle, code)
    if excess is not None:
        return excess
    if status is JobStatus.SUCCEEDED:
        return Ended(0, "ended")
    if status is JobStatus.STOPPED:
        return Ended(code, "was stopped in the Ray cluster")
    reason = _first_line(message or "no reason is given").partition(", last available logs")[0]
    return Ended(code, f"failed in the Ray cluster: {reason}")


def _excess(handle: _Handle, code: int | None) -> Ended | None:
    """The end of a worker that has found itself over a limit; how far, its output says."""
    if handle.memory_bytes is not None and code == EXIT_CODES["memory_bytes"]:
        limit = f"{handle.memory_bytes / 2**20:.0f} MiB"
        how = f"was ended as it used more memory than its limit, {limit}"
        return Ended(None, how, exceeded="memory_bytes")
    if handle.processes is not None and code == EXIT_CODES["processes"]:
        how = f"was ended as it had more processes than its limit, {handle.processes}"
        return Ended(None, how, exceeded="processes")
    return None


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _last_line(error: object) -> str:
    # The dashboard answers with a traceback: its end is the reason.
    lines = [line for line in str(error).strip().splitlines() if line.strip(" .")]
    return lines[-1].strip() if lines else type(error).__name__
