"""A server that listens: its socket, its web server and its parts, started and stopped together."""

import asyncio
import errno
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi.concurrency import run_in_threadpool
from rlcore import ConfigurationError

from rleaas.server.app import create_app
from rleaas.server.data_lock import DataLock
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.server.web_connection import KEEP_ALIVE_SECONDS, connections, room_for_connections

MakeState = Callable[[ServerSettings], ServerState]

# For what came while workers were ended.
_GRACE_SECONDS = 1
_LOOK_SECONDS = 0.02
_LAST_WORD_SECONDS = 0.5
_BACKLOG = 2048
_TICK_SECONDS = 0.1
_ROUNDS_TO_CLOSE = 6


class Listening:
    """Bound from the start, so that its URL is known and a taken port is an error at once."""

    def __init__(
        self,
        settings: ServerSettings,
        host: str,
        port: int,
        *,
        make_state: MakeState = ServerState,
    ) -> None:
        """Take the data directory and the port.

        Raises:
            ConfigurationError: one of the two is taken or cannot be had.
        """
        self._lock = DataLock(settings.data_dir, shared=settings.shares_data)
        try:
            self._socket = _bind(host, port)
        except BaseException:
            self._lock.release()
            raise
        try:
            self.state = make_state(settings)
        except BaseException:
            self._socket.close()
            self._lock.release()
            raise
        self.url = _url(self._socket, host)
        self._web = _WebServer(
            uvicorn.Config(
                create_app(self.state),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                http=connections(room_for_connections()),
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    def run(self, on_ready: Callable[[str], None]) -> None:
        """Serve until `stop`; then end every child process and close the database."""

        def started() -> None:
            self.state.start(self.url)
            on_ready(self.url)

        self._web.on_started = started
        self._web.before_drain = self.state.drain
        self._web.before_shutdown = self.state.scheduler.stop
        self._web.drain_seconds = self.state.settings.drain_seconds
        try:
            self._web.run(sockets=[self._socket])
        finally:
            try:
                self.state.stop()
            finally:
                self._socket.close()
                self._lock.release()

    def stop(self, *, now: bool = False) -> None:
        """End `run`, from any thread or signal handler; `now` waits for no request or process."""
        self._web.ask_to_exit()
        if now and not self._web.force_exit:
            self._web.force_exit = True
            # Not here: a signal handler must not wait for a lock of the thread it interrupts.
            hurry = threading.Thread(target=self.state.hurry, name="rleaas-hurry", daemon=True)
            try:
                hurry.start()
            except RuntimeError:  # at the end of the interpreter: it starts no thread any more
                self.state.hurry()


class _WebServer(uvicorn.Server):
    """uvicorn without its own signal handling, which would end the process before our children."""

    on_started: Callable[[], None]
    before_drain: Callable[[], None]
    before_shutdown: Callable[[], None]
    drain_seconds: float

    _loop: asyncio.AbstractEventLoop | None = None
    _asked: asyncio.Event

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def ask_to_exit(self) -> None:
        """End soon; from any thread or signal handler."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._asked.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.on_started()

    async def main_loop(self) -> None:
        # As uvicorn's, which looks only at every tick whether it shall end.
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._asked.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Still listening: whoever asks whether the server is ready hears that it stops.
        await run_in_threadpool(self.before_drain)
        until = time.monotonic() + self.drain_seconds
        while (busy := set(self.server_state.tasks)) and not self.force_exit:
            left = until - time.monotonic()
            if left <= 0:
                break
            await asyncio.wait(busy, timeout=min(left, _LOOK_SECONDS))
        # Workers are told while they can still be heard.
        await run_in_threadpool(self.before_shutdown)
        await super().shutdown(sockets)
        cut_short = set(self.server_state.tasks)
        if self.force_exit:
            for task in cut_short:
                task.cancel()
        if cut_short:  # they have been cancelled, and still answer that
            await asyncio.wait(cut_short, timeout=_LAST_WORD_SECONDS)
        # What is left is the acceptance of connections that came in the last moment.
        if accepting := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(accepting, timeout=_LAST_WORD_SECONDS)
        # What is still open after the grace period is dropped, not left to the loop's end.
        for _ in range(_ROUNDS_TO_CLOSE):
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError) as error:
        raise ConfigurationError(
            f"cannot listen on host {host!r}, port {port}: {error}",
            code="host_unknown",
            hint="Use --host 127.0.0.1",
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Listening from here on: with SO_REUSEADDR two bound sockets could share the port until one
        # of them listens.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        in_use = error.errno == errno.EADDRINUSE
        raise ConfigurationError(
            f"port {port} on {host!r} is in use already"
            if in_use
            else f"cannot listen on {host!r}, port {port}: {error.strerror}",
            code="port_in_use" if in_use else "cannot_listen",
            hint="Use another with --port, or --port 0 for any free one",
        ) from error
    return listener


def _url(listener: socket.socket, host: str) -> str:
    port = int(listener.getsockname()[1])
    shown = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
