"""One environment served by a process of its own."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from rlcore import RLEaaSError, Secret

from rleaas.server.children import Children
from rleaas.server.envhost import handover
from rleaas.server.envhost.connections import has_connections
from rleaas.server.rules.worlds import served_as


class DidNotStart(RLEaaSError):
    """The environment did not come up; the message is the reason."""

    default_code = "environment_did_not_start"


class Served(Protocol):
    """An environment that answers at an address."""

    def wait_ready(self, timeout: float) -> str:
        """Wait until it answers, and say at which address.

        Raises:
            DidNotStart: it did not come up in time, or at all, or was stopped.
        """
        ...

    def ended(self) -> str | None:
        """How it ended, or None while it runs."""
        ...

    def wait(self) -> str:
        """Block until it ends, and say how."""
        ...

    def in_use(self) -> bool:
        """Whether somebody is connected to it, or that cannot be told."""
        ...

    def stop(self) -> None:
        """End it, from any thread; a `wait_ready` under way ends with it."""
        ...


class Launcher(Protocol):
    """Brings up an environment; the server's tests have one without processes."""

    def launch(
        self, source: str, kwargs: Mapping[str, object], *, key: Secret, log: Path
    ) -> Served:
        """Begin to serve `source`.

        Raises:
            DidNotStart: it cannot even begin.
        """
        ...


# What the operator's variables say about servers of their own is not about these; empty is unset.
OTHER_SERVERS = dict.fromkeys(
    ("RLMESH_TOKEN", "RLMESH_SERVE_TLS", "RLMESH_SERVE_TLS_KEY", "RLMESH_SERVE_TLS_CLIENT_CA"), ""
)


class ProcessLauncher:
    """Serves environments with `python -m rlmesh.serve`.

    Args:
        children: starts the processes.
        host: the address of this machine at which they serve.
        linger: for how many seconds at most they go on while somebody steps them, when this server
            dies; None: they end with it.
    """

    def __init__(
        self, children: Children, host: str = "127.0.0.1", *, linger: float | None = None
    ) -> None:
        self._children = children
        self._host = host
        self._linger = linger

    def launch(
        self, source: str, kwargs: Mapping[str, object], *, key: Secret, log: Path
    ) -> Served:
        """Start the process.

        Raises:
            DidNotStart: there is no program, or no room for it.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        source, kwargs = served_as(source, kwargs)
        told = handover.place(log).absolute()
        reading, writing = os.pipe()
        try:
            with log.open("wb") as output:
                child = self._children.start(
                    serve_command(source, kwargs, writing, self._host, linger=self._linger),
                    environment={
                        **OTHER_SERVERS,
                        "RLMESH_TOKEN_KEY": key.reveal(),
                        "PYTHONUNBUFFERED": "1",
                        **({handover.VARIABLE: str(told)} if told.exists() else {}),
                    },
                    output=output,
                    pass_fds=[writing],
                )
        except BaseException as error:
            os.close(reading)
            if isinstance(error, OSError):
                raise DidNotStart(f"the process cannot be started: {error}") from error
            raise
        finally:
            os.close(writing)
        return EnvironmentProcess(self._children, child, log, reading)


class EnvironmentProcess:
    """A running `rlmesh.serve`, which writes its address to a pipe when it serves."""

    def __init__(
        self, children: Children, child: subprocess.Popen[bytes], log: Path, reading: int
    ) -> None:
        self._children = children
        self._child = child
        self._log = log
        self._reading = reading
        self._serves = False

    def wait_ready(self, timeout: float) -> str:
        """Wait for the address; asked once.

        Raises:
            DidNotStart: with the last line of the process's output as the reason.
        """
        try:
            address = _ready_line(self._reading, self, timeout)
        finally:
            os.close(self._reading)
        self._serves = True
        return address

    def ended(self) -> str | None:
        """How the process ended, or None while it runs."""
        code = self._child.poll()
        if code is None and _has_ended(self._child.pid):
            code = self._child.wait()
        return None if code is None else self._how(code)

    def wait(self) -> str:
        """Block until the process ends, and say how."""
        code = self._child.wait()
        self._children.reaped(self._child)
        return self._how(code)

    def in_use(self) -> bool:
        """Whether the process holds a connection, or this system does not tell."""
        return has_connections(self._child.pid) is not False

    def stop(self) -> None:
        """End the process; one that does not serve yet has nothing to finish."""
        self._children.stop(self._child, grace=3.0 if self._serves else 0.0)

    def last_output(self) -> str:
        """What the process said last, in words."""
        said = last_line(self._log)
        return f"its last output: {said}" if said else "it said nothing"

    def _how(self, code: int) -> str:
        said = last_line(self._log) or "it said nothing"
        return f"{ended_with(code)}: {said}"


def _has_ended(pid: int) -> bool:
    """Whether a child is over, as the system has it.

    `Popen.poll` says None for as long as another thread is inside of `Popen.wait`, which is some
    time more than the process lives.
    """
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # the other thread has collected it, and is about to say how
        return True


def serve_command(
    source: str,
    kwargs: Mapping[str, object],
    ready_fd: int,
    host: str,
    *,
    linger: float | None = None,
) -> list[str]:
    """The command that serves an environment, and ends when this server is gone.

    With `linger` it ends when nobody has a session any more, or after so many seconds.
    """
    command = [sys.executable, "-m", "rlmesh.serve", "--env", source]
    command += ["--address", f"tcp://{host}:0", "--ready-fd", str(ready_fd)]
    if kwargs:
        command += ["--kwargs-json", json.dumps(kwargs)]
    if linger is not None:
        command += ["--linger", f"{linger:g}"]
    return [*command, "--exit-with-parent"]


def ended_with(code: int) -> str:
    """How a process ended that has this return code."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal, which has no name
        return f"killed by signal {-code}"


def last_line(log: Path) -> str | None:
    """The last line of a process's output that says something."""
    lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
    said = [line.strip() for line in lines if line.strip()]
    return said[-1].removeprefix("error: ") if said else None


def _ready_line(reading: int, process: EnvironmentProcess, timeout: float) -> str:
    deadline = time.monotonic() + timeout
    received = b""
    while b"\n" not in received:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            process.stop()
            raise DidNotStart(f"it did not come up within {timeout:g} s; {process.last_output()}")
        chunk = os.read(reading, 4096)
        if not chunk:
            process.stop()
            raise DidNotStart(process.wait())
        received += chunk
    return received.decode().strip()
