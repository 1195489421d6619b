"""The methods of a model that serve it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from rlcore import SessionClosed

if TYPE_CHECKING:
    from rlcore import Secret

    from rlmesh.models.model import Model
    from rlmesh.models.served import Served
    from rlmesh.server.model_server import ModelServer
    from rlmesh.server.options import ServeOptions
    from rlmesh.server.protection import TlsOption

SIGNAL_GLANCE_SECONDS = 0.1


class ModelServeOptions(TypedDict, total=False):
    """Keyword arguments of `Model.serve` and `Model.start`: those of `ModelServer`."""

    host: str | None
    port: int | None
    path: str | None
    transport: str | None
    options: ServeOptions | None
    close_model_on_shutdown: bool
    token: str | Secret | None
    token_key: str | Secret | None
    token_subject: str | None
    tls: TlsOption
    allow_insecure: bool
    workflow_edition: str | None
    peer_extra: Mapping[str, str] | None


class Serving:
    """What a model can do to be served: each of these is a short way to a `ModelServer`."""

    _server: ModelServer | None = None

    def serve(self, address: str | None = None, **options: Unpack[ModelServeOptions]) -> None:
        """Serve this model until `shutdown` is called elsewhere, Ctrl-C, SIGTERM or idleness.

        It returns in all of these cases, after the model was closed.

        Args:
            address: `tcp://HOST:PORT`, `HOST:PORT`, a port, or `unix:///PATH`; by default a free
                port on the loopback interface.
            **options: those of `ModelServer`.

        Raises:
            BindError: the address is taken or not allowed.
            ConfigurationError: it is public and has neither token nor TLS, or an option is wrong.
            CallTimeout: the model hangs, and was left so.
        """
        self.start(address, **options)
        with _signals() as received:
            # A signal that comes just before a wait does not end it: an endless one would miss it.
            while not (received or self.wait(SIGNAL_GLANCE_SECONDS)):
                pass
        self.shutdown()

    def start(self, address: str | None = None, **options: Unpack[ModelServeOptions]) -> str:
        """Serve this model in the background and return the address, as `serve` takes them.

        Raises:
            SessionClosed: it is being served already.
            Error: as `serve`.
        """
        from rlmesh.server.model_server import ModelServer

        running = self._server
        if running is not None and not running.wait(0):
            raise SessionClosed(
                f"the model is being served at {running.address}",
                address=running.address,
                hint="Use a ModelServer for each address, or call shutdown() first.",
            )
        server = ModelServer(self, address, **options)
        server.start()
        self._server = server
        return server.address

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is served no more; False when it still is after `timeout` seconds.

        Raises:
            SessionClosed: it was never served.
        """
        return self._serving().wait(timeout)

    def shutdown(self) -> None:
        """Stop serving: running predictions finish, the model is closed.

        A second call is fine, and so is one before it was ever served, which does nothing.

        Raises:
            CallTimeout: the model is still being called, or does not close; it is left so.
            ModelException: its `close` raised.
        """
        if self._server is not None:
            self._server.shutdown()

    @property
    def address(self) -> str:
        """Where it is served, with the port that was taken.

        Raises:
            SessionClosed: it was never served.
        """
        return self._serving().address

    def as_served(self) -> Served:
        """Return what a server needs of this model."""
        from rlmesh.models.served import Served

        # Mixed into models only, which are made below this room.
        return Served(cast("Model[Any, Any]", self))  # Any: served to whichever environments

    def _serving(self) -> ModelServer:
        if self._server is None:
            raise SessionClosed("the model is not being served", hint="Call start() first.")
        return self._server


@contextlib.contextmanager
def _signals() -> Generator[list[int]]:
    """Collect SIGINT and SIGTERM instead of acting on them, where this is the main thread."""
    received: list[int] = []

    def hear(number: int, _: FrameType | None) -> None:
        received.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
