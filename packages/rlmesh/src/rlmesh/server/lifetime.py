"""How a server begins, goes on and ends, whatever it serves."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rlcore import CallTimeout, RLMeshException, SessionClosed
from rlcore.environ import variable
from rlcore.log import logger

from rlmesh.server.options import ServeOptions
from rlmesh.transport.tls import ServerTls

log = logger("rlmesh", "server")

REMOTE_SHUTDOWN_VARIABLE: Final = "RLMESH_ALLOW_REMOTE_SHUTDOWN"
# How often waits look around; nothing depends on it but how late they notice.
GLANCE_SECONDS: Final = 0.05
# After so long without a request or a session, nobody is using the server.
CALM_SECONDS: Final = 3.0


class Lifetime(ABC):
    """A server that is bound when it is made, serves from `start` on, and stops once."""

    _options: ServeOptions
    _tls: ServerTls | None

    def _be_born(self) -> None:
        """Prepare to be started; before anything that could stop it."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._started = False
        self._stopping = False

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients dial, with the port that was taken."""

    @property
    def tls_fingerprint(self) -> str | None:
        """What clients pin (`tls=`), or None without TLS."""
        return None if self._tls is None else self._tls.fingerprint

    @property
    def in_use(self) -> bool:
        """Whether clients have sessions, or have asked something just now."""
        return time.monotonic() - self._idle_since() < CALM_SECONDS

    @property
    def options(self) -> ServeOptions:
        """The limits of the server."""
        return self._options

    def start(self) -> None:
        """Serve in the background.

        Raises:
            SessionClosed: it was started before, or has stopped.
        """
        with self._lock:
            if self._started or self._stopping:
                raise SessionClosed(
                    f"the server at {self.address} was started before",
                    address=self.address,
                    hint=f"Make a new {type(self).__name__}.",
                )
            self._started = True
        self._open()
        if self._options.idle_timeout_seconds is not None:
            threading.Thread(
                target=self._stop_when_idle,
                args=(self._options.idle_timeout_seconds,),
                daemon=True,
            ).start()

    def serve(self) -> None:
        """Serve until `shutdown` is called elsewhere, or Ctrl-C.

        Raises:
            KeyboardInterrupt: Ctrl-C, after the server has shut down.
        """
        self.start()
        try:
            self.wait()
        finally:
            self.shutdown()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server has stopped; False when it still serves after `timeout` seconds.

        Raises:
            SessionClosed: it was never started.
        """
        if not self._started:
            raise SessionClosed(
                f"the server at {self.address} was not started",
                address=self.address,
                hint="Call start() first.",
            )
        return self._stopped.wait(timeout)

    def shutdown(self) -> None:
        """Stop serving: let running calls finish, end all sessions, close what is served.

        A client that is attached but idle does not delay it. A second call does nothing.

        Raises:
            CallTimeout: what is served is still being called, or does not close; it is left so.
            RLMeshException: it could not be closed.
        """
        with self._lock:
            first, self._stopping = not self._stopping, True
        if not first:
            self._stopped.wait(self._options.drain_seconds + self._options.close_seconds)
            return
        try:
            self._drain()
        finally:
            self._end()
            self._stopped.set()

    def __enter__(self) -> Self:
        if not self._started:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()

    @abstractmethod
    def _open(self) -> None:
        """Begin to answer."""

    @abstractmethod
    def _drain(self) -> None:
        """Stop answering, and close what is served."""

    @abstractmethod
    def _end(self) -> None:
        """Let go of what only the server needed, however it ended."""

    @abstractmethod
    def _idle_since(self) -> float:
        """Return the monotonic time of the last request, now if one is being answered."""

    def _shut_down_quietly(self) -> None:
        try:
            self.shutdown()
        except (CallTimeout, RLMeshException):
            log.exception("the server at %s did not shut down in good order", self.address)

    def _may_be_stopped(self) -> bool:
        said = (variable(REMOTE_SHUTDOWN_VARIABLE) or "").lower()
        return self._options.allow_remote_shutdown or said in ("1", "true")

    def _wait_while(self, condition: Callable[[], object], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while condition():
            if time.monotonic() >= deadline:
                return False
            self._stopped.wait(GLANCE_SECONDS)
        return True

    def _stop_when_idle(self, seconds: float) -> None:
        started = time.monotonic()
        while True:
            left = max(started, self._idle_since()) + seconds - time.monotonic()
            if left <= 0:
                break
            if self._stopped.wait(left):
                return
        log.info("the server at %s stops after %g s without a request", self.address, seconds)
        self._shut_down_quietly()
