"""A real server inside this process, for the quickstart and for tests."""

import atexit
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

from rlcore import PlatformTimeout, RLEaaSError, Secret

from rleaas.server.interrupts import interrupts_held
from rleaas.server.listening import Listening, MakeState
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

_START_SECONDS = 30.0
# Longer than workers and requests are given to end in good order.
_END_SECONDS = 60.0
_END_NOW_SECONDS = 15.0
_GLANCE_SECONDS = 0.1


class LocalServer:
    """A context manager: inside it, a server answers at `url`; after it, nothing of it is left.

    Ctrl-C while it ends hurries it, and is raised when it has ended. Where Ctrl-C has kept it from
    being told to end, it ends with this process.

    Args:
        data_dir: where its data is kept; without it, in a directory that goes with the server.
        port: 0 takes any free one.
        api_key: the bearer key that callers need; None is the open mode, unless keys are required.
        require_key: whether callers need a key of the database even without an `api_key`.
        database_url: another database than a file in the data directory.
        max_workers: how many jobs run at the same time.
        make_state: builds the server's parts, for tests that replace some.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        port: int = 0,
        *,
        api_key: str | None = None,
        require_key: bool = False,
        database_url: str | None = None,
        max_workers: int = 2,
        make_state: MakeState = ServerState,
    ) -> None:
        self._data_dir = data_dir
        self._port = port
        self._api_key = api_key
        self._require_key = require_key
        self._database_url = database_url
        self._max_workers = max_workers
        self._make_state = make_state
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._listening: Listening | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def url(self) -> str:
        """Where the server answers."""
        return self._running().url

    @property
    def state(self) -> ServerState:
        """The server's parts."""
        return self._running().state

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start, and return when the server answers.

        Raises:
            ConfigurationError: the port or the data directory is taken.
            RLEaaSError: it did not come up.
        """
        data = self._data_dir
        if data is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rleaas-")
            data = Path(self._temporary.name)
        settings = ServerSettings(
            data_dir=data,
            api_key=Secret(self._api_key) if self._api_key else None,
            needs_keys=self._require_key,
            database_url=self._database_url,
            is_local=self._api_key is None and not self._require_key,
            max_workers=self._max_workers,
        )
        try:
            listening = Listening(settings, "127.0.0.1", self._port, make_state=self._make_state)
        except BaseException:
            self._clean()
            raise
        self._listening = listening
        atexit.register(self._stop_at_exit)
        ready = threading.Event()

        def run() -> None:
            try:
                listening.run(lambda _: ready.set())
            except BaseException as error:  # told to whoever waits for the start, or to `stop`
                self._failure = error
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="rleaas-server", daemon=True)
        self._thread.start()
        try:
            started = ready.wait(_START_SECONDS)
        except BaseException:
            # Ctrl-C: nobody calls `__exit__` after an `__enter__` that raised.
            self.stop()
            raise
        if not started:
            self.stop(now=True)
            raise PlatformTimeout(f"the server did not start within {_START_SECONDS:g} s")
        if self._failure is not None:
            failure = self._failure
            self._forget()
            raise RLEaaSError("the server did not start") from failure

    def stop(self, *, now: bool = False) -> None:
        """Stop, with every process that the server has started.

        Args:
            now: wait for no request and no process, as is done after Ctrl-C as well.

        Raises:
            KeyboardInterrupt: Ctrl-C came meanwhile; the server has ended all the same.
            PlatformTimeout: something in the server hangs; its processes have been killed.
        """
        listening, thread = self._listening, self._thread
        if listening is None:
            self._clean()
            return
        with interrupts_held(lambda: listening.stop(now=True)):
            try:
                if thread is not None:
                    self._end(listening, thread, now=now)
            finally:
                self._forget()

    def _end(self, listening: Listening, thread: threading.Thread, *, now: bool) -> None:
        listening.stop(now=now)
        if now or not _ended(thread, _END_SECONDS):
            listening.stop(now=True)
        if not _ended(thread, _END_NOW_SECONDS):
            listening.state.hurry()
            raise PlatformTimeout(
                f"the server at {listening.url} did not end within {_END_NOW_SECONDS:g} s",
                hint="Its processes were killed; its thread ends with this process",
            )

    def _stop_at_exit(self) -> None:
        self.stop(now=True)

    def _forget(self) -> None:
        atexit.unregister(self._stop_at_exit)
        self._listening = self._thread = None
        self._clean()

    def _running(self) -> Listening:
        if self._listening is None:
            raise RLEaaSError("the local server is not running", hint="Use it inside `with`")
        return self._listening

    def _clean(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _ended(thread: threading.Thread, seconds: float) -> bool:
    # In slices: a signal that comes just before a wait for a lock is noticed after it only.
    until = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < until:
        thread.join(_GLANCE_SECONDS)
    return not thread.is_alive()
