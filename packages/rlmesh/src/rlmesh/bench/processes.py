"""The processes of a measurement: each is started, asked and ended within a time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any, cast

from rlcore import CallTimeout, RLMeshException
from rlcore.environ import snapshot

START_SECONDS = 60.0
END_SECONDS = 10.0
CHUNK = 1 << 16
PREFIX = "RLMESH_"
# What a child says last tells why it failed; more than this is no line of a table.
LAST_WORDS = 300


class MeasurementFailed(RLMeshException):
    """A measurement came to nothing; the others go on."""

    default_code = "measurement_failed"


class Child:
    """A process in a session of its own: Ctrl-C in the terminal is for the bench, not for it.

    Args:
        name: what it is called in errors.
        *arguments: the module that it runs, and its arguments.
        settings: whether it sees the user's RLMESH_ variables, which are about other servers.
        pass_fds: descriptors that it inherits.
    """

    def __init__(
        self, name: str, *arguments: str, settings: bool, pass_fds: tuple[int, ...] = ()
    ) -> None:
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            env={
                variable: text
                for variable, text in snapshot().items()
                if settings or not variable.startswith(PREFIX)
            },
            pass_fds=pass_fds,
        )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def failure(self) -> MeasurementFailed:
        """Return an error that tells how the process ended, and what it said last."""
        try:
            # Its pipes are closed a moment before it is gone.
            how = f"ended with exit code {self._process.wait(END_SECONDS)}"
        except subprocess.TimeoutExpired:
            how = "closed its pipes"
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "it said nothing")
        return MeasurementFailed(f"the {self.name} {how}: {last[-LAST_WORDS:]}")

    def read_line(self, descriptor: int, seconds: float) -> str:
        """Return the next line that arrives.

        Raises:
            CallTimeout: none arrives in time.
            MeasurementFailed: the process ended before.
        """
        deadline, found = time.monotonic() + seconds, bytearray()
        with selectors.DefaultSelector() as waiting:
            waiting.register(descriptor, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                if not waiting.select(max(0.0, deadline - time.monotonic())):
                    raise CallTimeout(
                        f"the {self.name} said nothing for {seconds:g} s",
                        operation="bench",
                        seconds=seconds,
                        layer="bench",
                        hint="Does the environment hang?",
                    )
                part = os.read(descriptor, CHUNK)
                if not part:
                    raise self.failure()
                found += part
        return found.decode().strip()

    def end(self) -> None:
        """End the process; it gets a while to do so in good order."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._log.close()


class ServerProcess(Child):
    """`rlmesh serve` for one environment, as a user would start it."""

    def __init__(self, source: str, address: str, *options: str) -> None:
        reader, writer = os.pipe()
        self._ready = reader
        try:
            super().__init__(
                "server",
                "rlmesh.serve",
                source,
                "--address",
                address,
                "--exit-with-parent",
                "--ready-fd",
                str(writer),
                *options,
                settings=False,
                pass_fds=(writer,),
            )
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)

    def address(self) -> str:
        """Return where it serves, once it does.

        Raises:
            CallTimeout: it does not come up.
            MeasurementFailed: it ended.
        """
        return self.read_line(self._ready, START_SECONDS)

    def end(self) -> None:
        """End the process."""
        super().end()
        os.close(self._ready)


class ClientProcess(Child):
    """A worker that steps.

    Args:
        settings: whether it sees the user's RLMESH_ variables: a token, or whom to trust.
        name: what it is called in errors.
    """

    def __init__(self, *, settings: bool, name: str = "client") -> None:
        super().__init__(name, "rlmesh.bench.worker", settings=settings)

    def loaded(self) -> float:
        """Return how long it took to load the library, once it has."""
        return float(self._answer(START_SECONDS)["import_s"])

    def tell(self, command: Mapping[str, object]) -> None:
        """Send a command and do not wait.

        Raises:
            MeasurementFailed: the process has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self.failure() from error

    def answer(self, seconds: float) -> dict[str, Any]:  # Any: what JSON holds
        """Return the answer to a command.

        Raises:
            MeasurementFailed: the command failed, or the process has ended.
            CallTimeout: it does not answer in time.
        """
        answer = self._answer(seconds)
        if "failed" in answer:
            raise MeasurementFailed(str(answer["failed"]))
        return answer

    def _answer(self, seconds: float) -> dict[str, Any]:  # Any: as above
        assert self._process.stdout is not None
        line = self.read_line(self._process.stdout.fileno(), seconds)
        return cast("dict[str, Any]", json.loads(line))
