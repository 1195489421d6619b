"""What a server answers: handshakes, sessions, and requests to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from rlcore.log import logger

from rlmesh.protocol.handshake import PRIVATE_SESSIONS, SUBSET_STEP, YES, answer
from rlmesh.protocol.this_peer import this_peer
from rlmesh.server.conversation import Codecs, Conversation
from rlmesh.server.environments import Environments
from rlmesh.server.options import ServeOptions
from rlmesh.transport.handshake_wire import (
    read_hello,
    read_shutdown,
    write_shutdown_answer,
    write_welcome,
)

log = logger("rlmesh", "server")


class EnvService:
    """The environment service of one server, and the sessions that are open in it."""

    def __init__(
        self,
        environments: Environments,
        *,
        options: ServeOptions,
        may_be_stopped: Callable[[], bool],
        stop: Callable[[], None],
    ) -> None:
        self._environments = environments
        self._codecs = Codecs(environments)
        self._options = options
        self._may_be_stopped = may_be_stopped
        self._stop = stop
        self._sessions: set[Conversation] = set()
        self._lock = threading.Lock()
        self._last_request = time.monotonic()

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What the server can do beyond the protocol's core."""
        return {
            SUBSET_STEP: YES,
            **({PRIVATE_SESSIONS: YES} if self._environments.private else {}),
        }

    def handshake(self, request: bytes) -> bytes:
        """Answer a client's handshake."""
        self._last_request = time.monotonic()
        welcome = answer(
            read_hello(request),
            declared=self._options.workflow_edition,
            capabilities=self.capabilities,
            peer=this_peer(),
        )
        return write_welcome(welcome, self._environments.contract)

    def open_session(self) -> Conversation:
        """Return a new session.

        Raises:
            SessionBusy: there is no place for it.
        """
        session = Conversation(
            self._environments,
            self._codecs,
            on_close=self._forget,
        )
        with self._lock:
            self._sessions.add(session)
        return session

    def shutdown(self, request: bytes) -> bytes:
        """Answer a client's request to stop."""
        reason = read_shutdown(request)
        if not self._may_be_stopped():
            return write_shutdown_answer(
                accepted=False,
                message="this server does not let clients stop it (allow_remote_shutdown)",
            )
        log.info("a client asked the server to stop: %s", reason)
        threading.Thread(target=self._stop, daemon=True).start()
        return write_shutdown_answer(accepted=True, message="the server is shutting down")

    def sessions(self) -> list[Conversation]:
        """Return the sessions that hold or wait for an environment."""
        with self._lock:
            return list(self._sessions)

    def busy(self) -> bool:
        """Tell whether a request is being answered."""
        return any(session.busy for session in self.sessions())

    def idle_since(self) -> float:
        """Return the monotonic time of the last request, now if one is being answered."""
        sessions = self.sessions()
        if any(session.busy for session in sessions):
            return time.monotonic()
        with self._lock:
            return max([self._last_request, *(session.last_request for session in sessions)])

    def _forget(self, session: Conversation) -> None:
        with self._lock:
            self._sessions.discard(session)
            # What it did still counts after it has gone.
            self._last_request = max(self._last_request, session.last_request)
