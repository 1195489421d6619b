"""Environments that live in processes of their own, as the server sees them."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Container
from concurrent.futures import Future
from typing import Any, Final

from rlcore import EnvironmentException
from rlcore.log import logger

from rlmesh.convert import contract_from_bytes
from rlmesh.protocol.faults import Fault, Occasion, error_of
from rlmesh.protocol.messages import Request
from rlmesh.server.main_script import UnguardedScript
from rlmesh.server.recipes import Recipe
from rlmesh.server.relay import Ended, apart, load_ours, receive, send
from rlmesh.server.vectors import Sort
from rlmesh.specs import EnvContract
from rlmesh.values import NUMPY, Backend

log = logger("rlmesh", "server")

GLANCE_MS: Final = 250
# What a client gave up on may still come to its end for so long.
GRACE_SECONDS: Final = 2.0
# How long a process may take to end after its last word.
EXIT_SECONDS: Final = 1.0
START: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from rlmesh.server.env_process import main; main({descriptor}, {parent})"
)


class Crashed(Exception):
    """The environment's process ended before it answered."""


class EnvProcess:
    """A process with one environment in it.

    Args:
        recipe: what to make there.
        start_seconds: how long that may take.

    Raises:
        ConfigurationError: the factory cannot be sent, or the script that has it starts a server
            whenever it is run.
        EnvironmentException: it raised, or its process ended or took too long.
    """

    def __init__(self, recipe: Recipe, *, start_seconds: float) -> None:
        preparation = recipe.sendable()
        self._end, theirs = socket.socketpair()
        self._deadline: float | None = None
        try:
            self._process = _spawner.start(theirs)
        except BaseException:
            self._end.close()
            raise
        finally:
            theirs.close()
        self._deadline = time.monotonic() + start_seconds
        try:
            send(self._end, preparation)
            note, _ = self._receive()
        except (Crashed, Ended) as error:
            self.kill()
            late = time.monotonic() >= self._deadline
            raise EnvironmentException(
                f"the environment was not made within {start_seconds:g} s in its process"
                if late
                else f"the process of an environment ended while it was made: {self.how_it_ended}",
                operation="make",
                hint="Raise env_start_seconds if it is only slow." if late else None,
            ) from error
        self._deadline = None
        self.was_given_up = False
        if note[0] != "made":
            self.kill()
            raise UnguardedScript if note[0] == "unguarded" else _failure("make", note[1])
        self.contract: EnvContract = contract_from_bytes(note[1])
        self.sort: Sort = note[2]
        self.reward_threshold: float | None = note[3]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def how_it_ended(self) -> str:
        """How the process ended, for people."""
        code = self._process.poll()
        if code is None:
            return "it still runs"
        if code >= 0:
            return f"exit code {code}"
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"

    def begin(self, capabilities: Container[str]) -> None:
        """Say what the session's client can do.

        Raises:
            Crashed: the process has ended.
        """
        self._send(("begin", capabilities))

    def ask(self, operation: str, request: Request) -> tuple[Any, list[memoryview]]:
        """Return what the process says to a request: a note, and the leaves beside it.

        Raises:
            Crashed: the process ended instead.
        """
        plain, leaves = apart(request)
        self._send((operation, plain), leaves)
        return self._receive()

    def end_episodes(self, lanes: tuple[int, ...]) -> Any:  # Any: a note of the process
        """Return what the process says to the end of the episodes in these lanes.

        Raises:
            Crashed: the process ended instead.
        """
        self._send(("end", lanes))
        return self._receive()[0]

    def give_up(self) -> None:
        """Let what runs come to its end for a moment, and end the process where it does not."""
        self._deadline = time.monotonic() + GRACE_SECONDS
        self.was_given_up = True

    def leave(self, seconds: float) -> None:
        """Have the environment closed and the process end; it is killed where that takes longer.

        Raises:
            EnvironmentException: the environment could not be closed.
            Crashed: its process ended instead, or was ended.
        """
        self._deadline = time.monotonic() + seconds
        fault: Fault | None = None
        try:
            self._send(("leave", None))
            note, _ = self._receive()
            fault = note[1]
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_SECONDS)
        finally:
            self.kill()
        if fault is not None:
            raise _failure("close", fault)

    def kill(self) -> None:
        """End the process and what it has started, at once."""
        # Its group, as an environment may have processes itself.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        self._end.close()

    def _send(self, note: object, parts: Any = ()) -> None:  # Any: leaves
        try:
            send(self._end, note, parts)
        except Ended as error:
            self._settle()
            self.kill()
            raise Crashed(self.how_it_ended) from error

    def _receive(self) -> tuple[Any, list[memoryview]]:
        try:
            return receive(self._end, load_ours, self._wait)
        except (Ended, pickle.UnpicklingError) as error:
            self._settle()
            self.kill()
            raise Crashed(self.how_it_ended) from error

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._end, select.POLLIN)
        while not poll.poll(GLANCE_MS):
            # Whatever it started may hold the connection open after its end.
            if not self.is_alive:
                raise Ended("its process ended")
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self.kill()
                raise Ended("it took too long")

    def _settle(self) -> None:
        # The connection ends a moment before the process does.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)


class Isolated:
    """A factory that makes an environment for each session, in a process of its own.

    One is made at once, as only an environment can tell its contract; the first session gets it.

    Args:
        recipe: what to make.
        start_seconds: how long a process may take until its environment is made.
        close_seconds: how long an environment may take to close.
    """

    private = True
    apart = True

    def __init__(self, recipe: Recipe, *, start_seconds: float, close_seconds: float) -> None:
        self._recipe = recipe
        self._start_seconds = start_seconds
        self._close_seconds = close_seconds
        self.backend: Backend = NUMPY
        spare = EnvProcess(recipe, start_seconds=start_seconds)
        self.contract = spare.contract
        self.sort: Sort = spare.sort
        self.reward_threshold = spare.reward_threshold
        self._spare: EnvProcess | None = spare
        self._lock = threading.Lock()
        self._collect: Callable[[EnvironmentException], None] | None = None

    def take(self) -> EnvProcess:
        """Return a process with an environment of the session's own.

        Raises:
            EnvironmentException: it could not be made, or is another than the first was.
        """
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None and spare.is_alive:
            return spare
        process = EnvProcess(self._recipe, start_seconds=self._start_seconds)
        if process.contract.digest != self.contract.digest:
            process.kill()
            raise EnvironmentException(
                f"the factory now makes {process.contract.id!r} with another contract than at "
                "first",
                operation="make",
                environment=self.contract.id,
                hint="A factory has to make the same environment each time.",
            )
        return process

    def give_back(self, env: EnvProcess | None) -> None:
        """Close a session's environment and end its process.

        Raises:
            EnvironmentException: it could not be closed, and nobody collects that.
        """
        if env is None:
            return
        collect = self._collect
        try:
            self._leave(env)
        except EnvironmentException as error:
            if collect is None:
                raise
            collect(error)

    def close(self) -> None:
        """End the process that no session took.

        Raises:
            EnvironmentException: its environment could not be closed.
        """
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            self._leave(spare)

    def collect(self, collect: Callable[[EnvironmentException], None]) -> None:
        """Hand over, from now on, why environments of sessions did not close."""
        self._collect = collect

    def _leave(self, env: EnvProcess) -> None:
        expected = env.is_alive and not env.was_given_up
        try:
            env.leave(self._close_seconds)
        except Crashed as crash:
            if expected and self._collect is not None:
                raise EnvironmentException(
                    f"an environment did not close in its process: {env.how_it_ended}",
                    operation="close",
                    environment=self.contract.id,
                ) from crash
            log.warning(
                "an environment did not close in good order: its process %s", env.how_it_ended
            )


class _Spawner:
    """Starts processes from one thread that never ends: they die with the thread that did."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pid = 0

    def start(self, end: socket.socket) -> subprocess.Popen[bytes]:
        """Start a process that has this end of a connection."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._work = queue.SimpleQueue()
                threading.Thread(
                    target=_work_off, args=(self._work,), name="rlmesh-spawner", daemon=True
                ).start()
        started: Future[subprocess.Popen[bytes]] = Future()

        def work() -> None:
            try:
                started.set_result(_popen(end))
            except BaseException as error:
                started.set_exception(error)

        self._work.put(work)
        return started.result()


def _work_off(work: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        work.get()()


def _popen(end: socket.socket) -> subprocess.Popen[bytes]:
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109 - entries are texts
    code = START.format(path=path, descriptor=end.fileno(), parent=os.getpid())
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[end.fileno()],
        start_new_session=True,
    )


def _failure(operation: str, fault: Fault) -> EnvironmentException:
    occasion = Occasion(operation, "", "", None, None, None)
    error = error_of(fault, occasion)
    return EnvironmentException(
        fault.message.partition(": ")[2] or fault.message,
        operation=operation,
        remote_type=getattr(error, "remote_type", None),
        remote_traceback=fault.debug_info or None,
    )


_spawner = _Spawner()
