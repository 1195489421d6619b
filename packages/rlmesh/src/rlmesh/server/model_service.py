"""What a model's server answers: handshakes, streams, and requests to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from rlcore.log import logger

from rlmesh.protocol.handshake import INSPECT, MORE_SPACES, TENSORS, YES, Peer, answer
from rlmesh.protocol.model_requests import (
    CONCURRENT_PREDICT,
    INSTRUCTION,
    MODEL_CHUNK,
    MODEL_COMPONENT,
    MODEL_CONTENT,
    MODEL_CORNERS,
    MODEL_DIGEST,
    MODEL_FRAMEWORK,
    MODEL_NAME,
    ROWS,
)
from rlmesh.protocol.this_peer import this_peer
from rlmesh.server.model_driver import Driver
from rlmesh.server.model_route import Route
from rlmesh.server.model_session import ModelSession, Send
from rlmesh.server.options import ServeOptions
from rlmesh.server.served_model import ServedModel
from rlmesh.transport.handshake_wire import (
    read_hello,
    read_shutdown,
    write_shutdown_answer,
    write_welcome,
)

log = logger("rlmesh", "server")


class ModelService:
    """The model service of one server, and the clients that are there.

    Attributes:
        model: what is served.
        driver: what calls it.
    """

    def __init__(
        self,
        model: ServedModel,
        *,
        options: ServeOptions,
        may_be_stopped: Callable[[], bool],
        stop: Callable[[], None],
        extra: Mapping[str, str],
    ) -> None:
        self._extra = extra
        self.model = model
        self.driver = Driver()
        self._options = options
        self._may_be_stopped = may_be_stopped
        self._stop = stop
        self._started = self._last_request = time.monotonic()
        self._lock = threading.Lock()
        self._sessions: set[ModelSession] = set()
        self._asked_before = 0
        self._faults_before: dict[str, int] = {}

    @property
    def capabilities(self) -> Mapping[str, str]:
        """What the server can do beyond the protocol's core."""
        return {
            CONCURRENT_PREDICT: YES,
            TENSORS: YES,
            MORE_SPACES: YES,
            INSTRUCTION: YES,
            ROWS: YES,
            **({INSPECT: YES} if self._options.inspectable else {}),
        }

    def handshake(self, request: bytes) -> bytes:
        """Answer a client's handshake."""
        self.heard()
        welcome = answer(
            read_hello(request),
            declared=self._options.workflow_edition,
            capabilities=self.capabilities,
            peer=self._peer(),
        )
        return write_welcome(welcome, None)

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

    def open(self, peer: str, send: Send) -> ModelSession:
        """Return what a new client's requests go to."""
        self.heard()
        session = ModelSession(self, peer, send)
        with self._lock:
            self._sessions.add(session)
        return session

    def forget(self, session: ModelSession) -> None:
        """Keep nothing of a client that left but what it counted."""
        with self._lock:
            if session not in self._sessions:
                return
            self._sessions.discard(session)
            self._asked_before += session.asked
            for code, count in session.faults.items():
                self._faults_before[code] = self._faults_before.get(code, 0) + count

    def route(self, env_id: str) -> Route | None:
        """Return a route that any client resolved under this name, as published servers do."""
        for session in self.sessions():
            route = session.routes.get(env_id)
            if route is not None:
                return route
        return None

    def sessions(self) -> list[ModelSession]:
        """Return the clients that are there."""
        with self._lock:
            return list(self._sessions)

    def heard(self) -> None:
        """Note that a client has asked for something."""
        self._last_request = time.monotonic()

    def busy(self) -> bool:
        """Tell whether a request is being answered."""
        return self.driver.busy

    def idle_since(self) -> float:
        """Return the monotonic time of the last request, now if one is being answered."""
        if self.busy():
            return time.monotonic()
        return max(self._last_request, self.driver.last_job)

    def quietly(self, action: Callable[[], None]) -> None:
        """Do what nobody waits for; what fails in it goes to the log."""
        try:
            action()
        except Exception:
            log.exception("the model %r failed at the end of an episode", self.model.name)

    def status(self) -> dict[str, object]:
        """Return what the server is doing, as plain data."""
        sessions = self.sessions()
        faults = dict(self._faults_before)
        for session in sessions:
            for code, count in tuple(session.faults.items()):
                faults[code] = faults.get(code, 0) + count
        return {
            "model": self.model.name,
            "digest": self.model.digest,
            "version": this_peer(MODEL_COMPONENT).package_version,
            "uptime_seconds": time.monotonic() - self._started,
            "places": self._options.max_sessions,
            "places_taken": len(sessions),
            "sessions": [
                {
                    "peer": session.peer,
                    "age_seconds": time.monotonic() - session.started,
                    "routes": [route.contract.id for route in tuple(session.routes.values())],
                    "requests": session.asked,
                    "in_progress": session.in_progress,
                    "faults": dict(session.faults),
                }
                for session in sessions
            ],
            "total": {
                "requests": self._asked_before + sum(session.asked for session in sessions),
                "model_calls": self.driver.calls,
                "observations": self.driver.rows,
                "faults": sum(faults.values()),
                "faults_by_code": faults,
            },
        }

    def _peer(self) -> Peer:
        model, peer = self.model, this_peer(MODEL_COMPONENT)
        about = {
            MODEL_NAME: model.name,
            MODEL_FRAMEWORK: model.framework,
            MODEL_CORNERS: ",".join(model.corners),
        }
        if model.digest is not None:
            about[MODEL_DIGEST] = model.digest
        if model.content is not None:
            about[MODEL_CONTENT] = f"{model.content.digest} {model.content.gaps}".rstrip()
        if model.native_chunk is not None:
            about[MODEL_CHUNK] = str(model.native_chunk)
        return replace(peer, extra={**peer.extra, **about, **self._extra})
