"""Workers as processes of this machine, each in a group of its own.

Their memory is watched and not limited by the kernel: RLIMIT_AS counts what is reserved, and torch
reserves many times of what it uses, and RLIMIT_NPROC counts what the user has, not the worker.
"""

import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from rleaas.server.children import Child, Children, variables_of_child
from rleaas.server.jobs.executor import Ended, Launch, Limits, Running, over_time
from rleaas.server.jobs.zygote import Forked, NotForked, Zygote
from rleaas.training.process_usage import excess_of, family

logger = logging.getLogger("rleaas.server.jobs")

DIRECTORY_VARIABLE: Final = "RLEAAS_WORKER_DIRECTORY"
"""Names a directory for the worker's own use, in which its server says where it is."""

SERVER_FILE: Final = "server"
"""In that directory: the URL at which the worker's server answers."""

_MEASURE_SECONDS: Final = 0.5
_GONE: Final = "ended while no server looked after it"


@dataclass(frozen=True, slots=True)
class _Handle:
    host: str
    pid: int
    began: str
    at: float
    directory: str
    limits: Limits

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


class LocalExecutor:
    """Starts workers here, and finds those again that an earlier server has started.

    Args:
        children: starts the processes.
        root: where each worker has a directory while it runs.
        clock: the time of day, in seconds.
        zygote: forks workers that are Python modules; the first starts without it, and warms it.
    """

    name = "local"

    def __init__(
        self,
        children: Children,
        root: Path,
        *,
        clock: Callable[[], float] = time.time,
        zygote: Zygote | None = None,
    ) -> None:
        self._children = children
        self._root = root
        self._clock = clock
        self._zygote = zygote
        self._own: dict[str, Child] = {}
        self._measured: dict[str, float] = {}
        self._over: dict[str, Ended] = {}
        self._lock = threading.Lock()

    def start(self, launch: Launch) -> str:
        """Start a process and return what it is found by.

        Raises:
            OSError: the program cannot be started.
            RuntimeError: the server is stopping.
        """
        directory = self._root / f"{launch.job_id}-{launch.attempt}"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = directory.absolute()
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**launch.environment, DIRECTORY_VARIABLE: str(directory)}
        child = self._forked(launch, environment) or self._started(launch, environment)
        began = _began(child.pid) or ""
        handle = _Handle(
            _here(), child.pid, began, self._clock(), str(directory), launch.limits
        ).text()
        with self._lock:
            self._own[handle] = child
        return handle

    def look(self, handle: str) -> Running | Ended:
        """Return whether the process is there; one that is over its limits is killed."""
        found = _read(handle)
        ended = self._ended(found, handle)
        if ended is None:
            self._mind_limits(found, handle)
            return Running()
        self.kill(handle)  # what it left behind
        shutil.rmtree(found.directory, ignore_errors=True)
        with self._lock:
            self._own.pop(handle, None)
            self._measured.pop(handle, None)
            over = self._over.pop(handle, None)
        return over or ended

    def announce(self, handle: str, url: str) -> None:
        """Write where this server answers into the worker's directory."""
        found = _read(handle)
        place = Path(found.directory)
        if found.host != _here() or not place.is_dir():
            return
        written = place / f".{SERVER_FILE}"
        written.write_text(url, "utf-8")
        written.replace(place / SERVER_FILE)

    def terminate(self, handle: str) -> None:
        """Send SIGTERM to the worker itself: what it started is its own to end."""
        found = _read(handle)
        if _is_there(found):
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)

    def kill(self, handle: str) -> None:
        """Send SIGKILL to the worker's group, and to those that have left the group."""
        found = _read(handle)
        if found.host != _here():
            return
        began = _began(found.pid)
        if began is not None and began != found.began:
            return  # another process has the number: nothing is left of the group
        for process in family(found.pid) if began is not None else ():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        with suppress(ProcessLookupError):
            os.killpg(found.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the zygote; workers that it has forked go on."""
        if self._zygote is not None:
            self._zygote.close()

    def _started(self, launch: Launch, environment: Mapping[str, str]) -> Child:
        with launch.log.open("ab") as output:
            return self._children.start(launch.command, environment=environment, output=output)

    def _forked(self, launch: Launch, environment: Mapping[str, str]) -> Child | None:
        if self._zygote is None or list(launch.command[:2]) != [sys.executable, "-m"]:
            return None
        self._zygote.warm()
        if not self._zygote.is_ready:
            return None
        module, *arguments = launch.command[2:]
        variables = variables_of_child(environment)
        try:
            child = self._zygote.fork(
                module, arguments, environment=variables, log=launch.log.absolute()
            )
        except NotForked as error:
            logger.warning("%s starts the slow way: %s", launch.job_id, error)
            return None
        self._children.adopt(child)
        return child

    def _ended(self, found: _Handle, handle: str) -> Ended | None:
        with self._lock:
            child = self._own.get(handle)
        if child is not None and (not isinstance(child, Forked) or child.is_told_of):
            code = child.poll()
            if code is None:
                return None
            self._children.reaped(child)
            return Ended(code, ended_with(code))
        if found.host != _here():
            return Ended(None, f"is out of reach: it ran on {found.host.partition('/')[0]}")
        return None if _is_there(found) else Ended(None, _GONE)

    def _mind_limits(self, found: _Handle, handle: str) -> None:
        limits = found.limits
        if limits == Limits():
            return
        now = time.monotonic()
        with self._lock:
            if now - self._measured.get(handle, 0.0) < _MEASURE_SECONDS:
                return
            self._measured[handle] = now
        over = _over(found, self._clock() - found.at)
        if over is not None:
            with self._lock:
                self._over.setdefault(handle, over)
            self.kill(handle)


def ended_with(code: int) -> str:
    """How a process ended that has this return code."""
    if code >= 0:
        return f"ended by itself with exit code {code} before the job was done"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, which has no name
        return f"was killed by signal {-code}"


def _over(found: _Handle, seconds: float) -> Ended | None:
    limits = found.limits
    if limits.wall_seconds is not None and seconds > limits.wall_seconds:
        return Ended(
            None, over_time(seconds, limits.wall_seconds, limits.stop_seconds), "wall_seconds"
        )
    excess = excess_of(found.pid, limits.memory_bytes, limits.processes)
    return None if excess is None else Ended(None, f"was ended as it {excess.what}", excess.limit)


def _is_there(found: _Handle) -> bool:
    return found.host == _here() and _began(found.pid) == found.began


def _began(pid: int) -> str | None:
    """What tells a process from all others that had its number; None: there is none."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        try:
            process = psutil.Process(pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time()}"
        except psutil.NoSuchProcess:
            return None
    try:
        # In ticks since the boot: psutil's time of day changes when the clock is put right.
        fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _here() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    name = boot.read_text().strip() if boot.exists() else f"{psutil.boot_time():.0f}"
    return f"{socket.gethostname()}/{name}"


def _read(handle: str) -> _Handle:
    kept: dict[str, Any] = json.loads(handle)  # Any: it is what `text` has written
    limits = Limits(**kept.pop("limits"))
    return _Handle(**kept, limits=limits)
