"""A verifier's Python function in a process of its own: the server runs no code of users."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from types import TracebackType
from typing import Any, Self

from rlcore import GraderError

from rleaas.server.children import variables_of_child
from rleaas.verify.means import FunctionSource
from rleaas.verify.trajectory import Trajectory
from rleaas.verify.verdict import Verdict, verdict_of
from rleaas.verify.work import Work

START_SECONDS = 60.0
CALL_SECONDS = 10.0
"""How long the source may take to load, and one call; the process itself gives up earlier."""
_LONGEST_ANSWER = 10_000_000


class FunctionProcess:
    """Judges by a function in a child process, which ends with the context."""

    def __init__(self, source: FunctionSource) -> None:
        self._source = source
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def verifier(self) -> str:
        """Its id."""
        return self._source.verifier

    @property
    def version(self) -> int | None:
        """Its version."""
        return self._source.version

    @property
    def looks_at_observations(self) -> bool:
        """It may look at anything."""
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def judge(self, trajectory: Trajectory, work: Work | None = None) -> Verdict:
        """Say what the function says of the episode.

        Raises:
            GraderError: it failed, took too long, or its process is gone.
        """
        seconds = CALL_SECONDS
        if self._process is None:
            self._start()
            seconds = START_SECONDS
        said = self._asked({"trajectory": trajectory.to_json()}, seconds)
        if "error" in said:
            error = said["error"]
            raise GraderError(self.verifier, error["reason"], error["detail"])
        return verdict_of(said["verdict"])

    def _start(self) -> None:
        source = self._source
        self._process = subprocess.Popen(
            [sys.executable, "-m", "rleaas.training.rewards.verifier_process"],
            env=variables_of_child({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._send(
            {
                "source": source.source,
                "function": source.function,
                "threshold": source.threshold,
                "policy": {
                    "hard_fail": source.policy.hard_fail,
                    "penalty": source.policy.penalty,
                    "log_failure": source.policy.log_failure,
                },
                "verifier": source.verifier,
                "version": source.version,
            }
        )

    def _asked(self, question: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._send(question)
        line = self._line(seconds)
        if line is None:
            self._end()
            raise GraderError(
                self.verifier, "timeout", f"its function did not answer within {seconds:g} s"
            )
        if not line:
            code = self._end()
            raise GraderError(
                self.verifier, "exception", f"its function's process ended with code {code}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # reading its answer tells that it has ended
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _line(self, seconds: float) -> bytes | None:
        """A line; empty: the process has ended; None: nothing came in time."""
        assert self._process is not None
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        place = self._process.stdout.fileno()
        found = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(place, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    return None
                part = os.read(place, 65_536)
                if not part or len(found) > _LONGEST_ANSWER:
                    return b""
                found += part
        return bytes(found)

    def _end(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # what it was told last it never read
                    stream.close()
        return process.wait()
