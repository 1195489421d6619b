"""The server's child processes: each in a group of its own, all stopped before the server ends."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Final, Protocol

# What children have to know of it they are told; the rest are secrets, or about other processes.
_OURS: Final = ("RLEAAS_", "RLMESH_TOKEN", "RLMESH_SERVE_")
_TOLD_TO_ALL: Final = frozenset({"RLEAAS_CACHE"})
# It opens the database where its URL holds no password.
_DATABASE_SECRETS: Final = frozenset({"PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE"})


class Child(Protocol):
    """A process that leads a group of its own."""

    @property
    def pid(self) -> int:
        """Its number, and that of its group."""
        ...

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        ...


class Children:
    """Starts processes and stops them with everything that they started themselves.

    They have the server's variables, but for its secrets.
    """

    def __init__(self) -> None:
        # A child that asks the kernel to die with its parent dies with the *thread* that started
        # it, and the threads that serve requests come and go.
        self._starter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rleaas-children")
        self._lock = threading.Lock()
        self._alive: set[Child] = set()
        self._closed = False
        self._hurried = False

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: IO[bytes],
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a process whose standard output and error go to `output`.

        Raises:
            RuntimeError: the server is stopping.
            OSError: the program cannot be started.
        """

        def start() -> subprocess.Popen[bytes]:
            with self._lock:
                if self._closed:
                    raise RuntimeError("the server is stopping; no process is started any more")
                child = subprocess.Popen(
                    command,
                    env=variables_of_child(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=tuple(pass_fds),
                    start_new_session=True,
                )
                self._alive.add(child)
                return child

        return self._starter.submit(start).result()

    def adopt(self, child: Child) -> None:
        """Count a process among the children that another has started for us."""
        with self._lock:
            self._alive.add(child)

    def stop(self, child: Child, *, grace: float) -> None:
        """Ask the process group to end, and after `grace` seconds make it end."""
        self.signal(child, signal.SIGTERM)
        try:
            child.wait(0.0 if self._hurried else grace)
        except subprocess.TimeoutExpired:
            self.signal(child, signal.SIGKILL)
            child.wait()
        self.reaped(child)

    def signal(self, child: Child, number: signal.Signals) -> None:
        """Send a signal to the process and to all that it started."""
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return  # all of them have ended

    def kill(self) -> None:
        """End every process at once, and wait for none from now on."""
        with self._lock:
            self._hurried = True
            left = list(self._alive)
        for child in left:
            self.signal(child, signal.SIGKILL)

    def reaped(self, child: Child) -> None:
        """Take note that the process has ended; what it left behind ends too."""
        self.signal(child, signal.SIGKILL)
        with self._lock:
            self._alive.discard(child)

    def close(self, *, grace: float = 5.0) -> None:
        """Stop every process that is left, all at the same time."""
        with self._lock:
            self._closed = True
            left = list(self._alive)
        for child in left:
            self.signal(child, signal.SIGTERM)
        for child in left:
            self.stop(child, grace=grace)
        self._starter.shutdown()


def variables_of_child(environment: Mapping[str, str]) -> dict[str, str]:
    """All variables of a child that is given these beside what it inherits."""
    return {**inherited(os.environ), **environment}


def inherited(variables: Mapping[str, str]) -> dict[str, str]:
    """Of the server's variables, those that its children may see."""
    return {
        name: value
        for name, value in variables.items()
        if name in _TOLD_TO_ALL or not (name.startswith(_OURS) or name in _DATABASE_SECRETS)
    }
