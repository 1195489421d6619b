"""The server's end of a zygote: a process that has imported what workers need, and forks them."""

import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from rleaas.server.children import Children

_MODULE: Final = "rleaas.training.zygote"
# It answers in milliseconds; on a full machine it may have to wait for its turn.
_ANSWER_SECONDS: Final = 10.0
_MOST_BYTES: Final = 1 << 16
_GLANCE_SECONDS: Final = 0.02
# Threads that begin at an import would make a fork unsafe.
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class NotForked(Exception):
    """No worker was forked, and none will be for this request."""


class Forked:
    """A worker that the zygote has forked; it answers as `subprocess.Popen` does."""

    def __init__(self, zygote: "Zygote", pid: int) -> None:
        self._zygote = zygote
        self.pid = pid

    @property
    def is_told_of(self) -> bool:
        """Whether somebody is there who would say how it ends, or has said so."""
        return self._zygote.code(self.pid) is not None or self._zygote.is_alive

    def poll(self) -> int | None:
        """Its exit code; None: it runs, or nobody saw it end."""
        return self._zygote.code(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; -9 where nobody saw it.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if not self._zygote.is_alive and not Path(f"/proc/{self.pid}").exists():
                return -9
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
            time.sleep(_GLANCE_SECONDS)
        return code


class Zygote:
    """Starts the process when it is first wanted, and asks it for forks when it is ready.

    Args:
        children: starts the process.
        log: where it writes what goes wrong.
        only: modules to import, in place of those of workers.
    """

    def __init__(self, children: Children, log: Path, *, only: Sequence[str] | None = None) -> None:
        self._children = children
        self._log = log
        self._only = only
        self._lock = threading.RLock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._codes: dict[int, int] = {}
        self._answers: list[dict[str, object]] = []

    @property
    def is_ready(self) -> bool:
        """Whether it has imported everything."""
        with self._lock:
            self._hear()
            return self._ready

    @property
    def is_alive(self) -> bool:
        """Whether there is one."""
        with self._lock:
            self._hear()
            return self._line is not None

    def warm(self) -> None:
        """Start the process, unless it is there, or has been and gone.

        Raises:
            OSError: it cannot be started.
            RuntimeError: the server is stopping.
        """
        with self._lock:
            if self._process is not None or not sys.platform.startswith("linux"):
                return
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            command = [sys.executable, "-m", _MODULE, "--socket", str(theirs.fileno())]
            if self._only is not None:
                command += ["--only", *self._only]
            self._log.parent.mkdir(parents=True, exist_ok=True)
            try:
                with self._log.open("ab") as output:
                    self._process = self._children.start(
                        command, environment=_ONE_THREAD, output=output, pass_fds=[theirs.fileno()]
                    )
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
            self._line = ours

    def fork(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        log: Path,
    ) -> Forked:
        """Start `python -m module arguments` as a fork, in a process group of its own.

        Raises:
            NotForked: it is not ready, or cannot fork.
        """
        asked = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "log": os.fspath(log),
        }
        with self._lock:
            self._hear()
            if self._line is None or not self._ready:
                raise NotForked("the zygote is not ready")
            try:
                self._line.send(json.dumps(asked).encode())
            except OSError as error:
                # Too long a message, or nobody is there; what is asked for was not heard.
                raise NotForked(f"the zygote does not listen: {error}") from error
            answer = self._answer()
        pid = answer.get("pid")
        if not isinstance(pid, int):
            raise NotForked(f"the zygote refuses: {answer.get('refused')}")
        return Forked(self, pid)

    def code(self, pid: int) -> int | None:
        """The exit code of a fork that has ended."""
        with self._lock:
            self._hear()
            return self._codes.get(pid)

    def close(self) -> None:
        """End the process; its forks are left as they are."""
        with self._lock:
            process, self._ready = self._process, False
            self._hang_up()
        if process is not None:
            self._children.stop(process, grace=0.0)

    def _answer(self) -> dict[str, object]:
        end = time.monotonic() + _ANSWER_SECONDS
        while not self._answers:
            self._hear(max(0.0, end - time.monotonic()))
            if self._answers:
                break
            if self._line is None or time.monotonic() >= end:
                return self._given_up()
        return self._answers.pop(0)

    def _given_up(self) -> dict[str, object]:
        """End a zygote that does not answer; a fork of which it has told is there all the same."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._hear()
        self._hang_up()
        # A fork that nobody was told of ends by itself.
        return self._answers.pop(0) if self._answers else {"refused": "it does not answer"}

    def _hear(self, seconds: float = 0.0) -> None:
        while self._line is not None and select.select([self._line], [], [], seconds)[0]:
            try:
                message = self._line.recv(_MOST_BYTES)
            except ConnectionError:
                message = b""
            if not message:
                self._hang_up()
                return
            seconds = 0.0
            told = cast("dict[str, object]", json.loads(message))
            ended, code = told.get("ended"), told.get("code")
            if isinstance(ended, int) and isinstance(code, int):
                self._codes[ended] = code
            elif "ready" in told:
                self._ready = True
            else:
                self._answers.append(told)
                return

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line, self._ready = None, False
