"""Processes with an environment each, for runs of several workers."""

import threading
from time import monotonic

from rlcore import RLMeshException
from rlcore.log import logger

from rlmesh.runs.worker_folder import WorkerFolder
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions

log = logger("rlmesh", "runs")

DRAIN_SECONDS = 0.5
CLOSE_SECONDS = 3.0
# Beyond what the server itself takes, before its processes are left to die with this one.
PATIENCE_SECONDS = 10.0


class Workers:
    """A private server that makes an environment for each client, in a process of its own.

    It listens on a unix socket in a folder that only this user can enter. The processes end with
    it, and with this process, whatever ends that.

    Args:
        factory: what makes an environment; it is sent to the processes.
        count: how many there are to be at once.

    Raises:
        ConfigurationError: the factory cannot be sent to another process.
        EnvironmentException: it raised there.
    """

    def __init__(self, factory: object, count: int) -> None:
        self._folder = WorkerFolder()
        try:
            self._server = EnvServer(
                factory,
                f"unix://{self._folder.path}/workers.sock",
                options=ServeOptions(
                    isolation="process",
                    # One that hangs keeps its place for a moment after it was given up.
                    max_sessions=2 * count,
                    drain_timeout_seconds=DRAIN_SECONDS,
                    close_timeout_seconds=CLOSE_SECONDS,
                ),
            )
            self._server.start()
        except BaseException:
            self._folder.remove()
            raise
        self._failures: list[RLMeshException] = []

    @property
    def address(self) -> str:
        """Where an environment can be had."""
        return self._server.address

    def closing(self) -> None:
        """Learn that environments are being closed because the run is over."""
        self._server.collect_close_failures(self._failures.append)

    def close(self) -> None:
        """End all processes, within seconds; a Ctrl-C meanwhile is heard afterwards.

        Raises:
            KeyboardInterrupt: one came.
            RLMeshException: an environment could not be closed in good order; it is gone.
        """
        ending = threading.Thread(target=self._end, name="rlmesh-run-end", daemon=True)
        ending.start()
        interruption: KeyboardInterrupt | None = None
        until = monotonic() + DRAIN_SECONDS + CLOSE_SECONDS + PATIENCE_SECONDS
        while ending.is_alive() and monotonic() < until:
            try:
                ending.join(until - monotonic())
            except KeyboardInterrupt as error:
                # What is being ended would otherwise be left half ended.
                interruption = error
        self._folder.remove()
        if interruption is not None:
            raise interruption
        if self._failures:
            first, *others = self._failures
            for other in others:
                first.add_note(f"Another environment did not close either: {other}")
            raise first

    def _end(self) -> None:
        try:
            self._server.shutdown()
        except RLMeshException as error:
            self._failures.append(error)
