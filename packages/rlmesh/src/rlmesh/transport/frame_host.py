"""The server's side of lanes: listen, let clients in who shook hands, give each its session."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping

from rlcore import ProtocolException, RLMeshException, Secret, SessionBusy, SessionClosed
from rlcore.log import logger

from rlmesh.protocol.offers import LaneOffer
from rlmesh.protocol.opening import (
    LEASE_SECONDS,
    SESSION_EXISTS,
    SESSION_UNKNOWN,
    SHUTTING_DOWN,
    Opening,
    read_opening,
)
from rlmesh.transport.access import Access
from rlmesh.transport.addresses import Address
from rlmesh.transport.carrier import Registry, wait_in_line
from rlmesh.transport.client_process import client_process
from rlmesh.transport.frame_carrier import IN_MEMORY_FROM, FrameCarrier
from rlmesh.transport.frame_listeners import Listeners
from rlmesh.transport.frames import (
    ADMITTED,
    NOTE_LIMIT,
    NOTICE,
    OPEN,
    REFUSED,
    WELCOME,
    Broken,
    FrameEnd,
    Garbled,
    Overdue,
    TooLarge,
    read_headers,
)
from rlmesh.transport.limits import LONGEST_QUEUE, SILENT_PART
from rlmesh.transport.shared_memory import SharedMemory
from rlmesh.transport.tls import ServerTls

log = logger("rlmesh", "server")
# Connections to a listener that have not shown the secret; more of them are hung up on.
MOST_STRANGERS = 64
STRANGER_SECONDS = 5.0
CROWD_SECONDS = 0.5
PARTING_SECONDS = 0.5
GLANCE_SECONDS = 0.01
PAGE = 4096


class FrameHost:
    """A private unix socket, and a second TCP port where the server is reached by TCP.

    Args:
        address: where the server is dialled.
        registry: its sessions.
        access: who may come in.
        max_sessions: how many sessions there can be.
        message_limit: the bytes of the largest message.
        lane_port: the second port; 0: a free one.
        tls: what the second port shows.
        answer_bytes: the bytes of the largest observation that is usual.

    Raises:
        BindError: the second port that was asked for cannot be had.
    """

    def __init__(
        self,
        address: Address,
        registry: Registry,
        *,
        access: Access,
        max_sessions: int,
        message_limit: int,
        lane_port: int = 0,
        tls: ServerTls | None = None,
        answer_bytes: int = 0,
    ) -> None:
        self._registry = registry
        self._access = access
        self._limit = message_limit
        # Some more for what stands between leaves.
        wanted = answer_bytes + answer_bytes // 8 if answer_bytes >= IN_MEMORY_FROM else 0
        self._memory_size = -(-wanted // PAGE) * PAGE
        self._tls = None if tls is None else tls.ssl_context()
        self._secret = secrets.token_hex(32)
        self._stopping = False
        self._guests = threading.BoundedSemaphore(2 * max_sessions + LONGEST_QUEUE)
        self._carriers: set[FrameCarrier] = set()
        self._lock = threading.Lock()
        self._listeners = Listeners(address, lane_port)
        self.offer = LaneOffer(
            Secret(self._secret),
            self._listeners.path,
            self._listeners.beside,
            self._listeners.port,
        )

    def start(self) -> None:
        """Begin to answer."""
        for listener in self._listeners.sockets:
            # One each, so that strangers from the network do not keep out those of this host.
            strangers = threading.BoundedSemaphore(MOST_STRANGERS)
            threading.Thread(
                target=self._accept, args=(listener, strangers), name="rlmesh-lanes", daemon=True
            ).start()

    def refuse_new_connections(self) -> None:
        """Let nobody in any more; sessions end after the request they are at."""
        self._stopping = True
        self._listeners.close()

    def stop(self) -> None:
        """Part from all clients; a session that hangs in its environment is cut off."""
        self.refuse_new_connections()
        patience = time.monotonic() + PARTING_SECONDS
        for carrier in self._here():
            carrier.cut()
        while self._here() and time.monotonic() < patience:
            time.sleep(GLANCE_SECONDS)
        for carrier in self._here():
            carrier.break_off()

    def _here(self) -> list[FrameCarrier]:
        with self._lock:
            return list(self._carriers)

    def _accept(self, listener: socket.socket, strangers: threading.BoundedSemaphore) -> None:
        while not self._stopping:
            try:
                connected, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return
                time.sleep(GLANCE_SECONDS)  # out of descriptors, as it may be for a while
                continue
            # Many honest clients may come at once; they are not strangers for long.
            if not strangers.acquire(timeout=CROWD_SECONDS):
                connected.close()
                continue
            threading.Thread(
                target=self._meet, args=(connected, strangers), name="rlmesh-lane", daemon=True
            ).start()

    def _meet(self, connected: socket.socket, strangers: threading.BoundedSemaphore) -> None:
        end: FrameEnd | None = None
        handed_on = False
        try:
            try:
                end = self._end_of(connected)
                said = self._first_words(end)
            finally:
                strangers.release()
            if said is not None:
                handed_on = self._let_in(end, said)
        except (OSError, Broken, Overdue, Garbled, TooLarge) as error:
            log.debug("somebody at a lane was sent away: %s", error)
        finally:
            if end is None:
                connected.close()
            elif not handed_on:
                end.close()

    def _end_of(self, connected: socket.socket) -> FrameEnd:
        connected.settimeout(STRANGER_SECONDS)
        end = FrameEnd(connected, limit=self._limit)
        if not end.is_local:
            keep_alive(connected, self._registry.lease_seconds / 2)
            if self._tls is not None:
                end = FrameEnd(
                    self._tls.wrap_socket(connected, server_side=True), limit=self._limit
                )
        end.be_patient(STRANGER_SECONDS)
        return end

    def _first_words(self, end: FrameEnd) -> Mapping[str, object] | None:
        """Return what a client says whom we may believe; None: it was sent away."""
        frame = end.receive(limit=NOTE_LIMIT)
        if frame.kind != OPEN:
            raise Garbled(f"a frame of kind {frame.kind:#x} instead of an opening")
        said = frame.note()
        secret = said.get("secret")
        if not isinstance(secret, str) or not hmac.compare_digest(
            secret.encode(), self._secret.encode()
        ):
            _refuse(end, "PERMISSION_DENIED", "another server is meant")
            return None
        end.say(WELCOME, {"watches": end.is_local and _can_watch(end.socket)})
        return said

    def _let_in(self, end: FrameEnd, said: Mapping[str, object]) -> bool:
        """Give the client its session; True: the connection is another thread's from now on."""
        headers = read_headers(said)
        if self._stopping:
            _refuse(end, "UNAVAILABLE", SHUTTING_DOWN)
            return False
        refusal = self._access.refusal(headers.get("authorization"))
        if refusal is not None:
            _refuse(end, "UNAUTHENTICATED", refusal)
            return False
        if not self._guests.acquire(blocking=False):
            _refuse(end, "RESOURCE_EXHAUSTED", "too many clients wait already")
            return False
        # Given back when the carrier is released, once there is one.
        place = [self._guests]
        try:
            return self._attend(end, said, read_opening(headers, end.peer), place)
        except RLMeshException as error:
            _refuse(end, _code_of(error), error.message)
            return False
        finally:
            for guests in place:
                guests.release()

    def _attend(
        self,
        end: FrameEnd,
        said: Mapping[str, object],
        opening: Opening,
        place: list[threading.BoundedSemaphore],
    ) -> bool:
        known = self._registry.find(opening)
        if known is not None:
            carrier = self._admit(end, said, opening, place)
            try:
                known.attach(carrier)
            except SessionClosed as error:
                _refuse(end, _code_of(error), error.message)
                carrier.release()
            return True
        session = wait_in_line(self._registry.open(opening), lambda position: _tell(end, position))
        try:
            carrier = self._admit(end, said, opening, place)
        except BaseException:
            session.end("its client has gone")
            session.go_on()
            raise
        session.live(carrier)
        return False

    def _admit(
        self,
        end: FrameEnd,
        said: Mapping[str, object],
        opening: Opening,
        place: list[threading.BoundedSemaphore],
    ) -> FrameCarrier:
        memory, descriptor = self._memory_for(end, said)
        client = client_process(end.socket) if end.is_local else None
        carrier = FrameCarrier(
            end,
            memory=memory,
            stopping=lambda: self._stopping,
            client=client,
            on_release=self._forget,
            silence_seconds=(
                self._registry.lease_seconds * SILENT_PART
                if opening.resumable or client is not None
                else None
            ),
        )
        place.clear()
        with self._lock:
            self._carriers.add(carrier)
        try:
            end.say(
                ADMITTED,
                {
                    "limit": self._limit,
                    "memory": 0 if memory is None else memory.size,
                    "headers": (
                        {LEASE_SECONDS: f"{self._registry.lease_seconds:g}"}
                        if opening.resumable
                        else {}
                    ),
                },
            )
            if descriptor is not None:
                SharedMemory.send(end.socket, descriptor)
        except BaseException:
            carrier.release()
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return carrier

    def _memory_for(
        self, end: FrameEnd, said: Mapping[str, object]
    ) -> tuple[SharedMemory, int] | tuple[None, None]:
        if not (end.is_local and said.get("memory") is True and self._memory_size):
            return None, None
        try:
            return SharedMemory.made(self._memory_size)
        except OSError as error:
            log.info("answers go through the socket, as there is no shared memory: %s", error)
            return None, None

    def _forget(self, carrier: FrameCarrier) -> None:
        with self._lock:
            self._carriers.discard(carrier)
        self._guests.release()


def keep_alive(connected: socket.socket, seconds: float) -> None:
    """Have the system notice within so many seconds that the other side has vanished."""
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    pause = max(1, int(seconds / 4))
    for name, value in (
        ("TCP_KEEPIDLE", pause),
        ("TCP_KEEPINTVL", pause),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", max(1000, int(seconds * 1000))),
    ):
        option = getattr(socket, name, None)
        if option is not None:  # not every system has all of them
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


def _can_watch(connected: socket.socket) -> bool:
    process = client_process(connected)
    if process is None:
        return False
    process.close()
    return True


def _code_of(error: RLMeshException) -> str:
    match error:
        case ProtocolException():
            return "INVALID_ARGUMENT"
        case SessionBusy(code="sessions_exhausted"):
            return "RESOURCE_EXHAUSTED"
        case SessionBusy(code=code):
            return "ALREADY_EXISTS" if code == SESSION_EXISTS else "FAILED_PRECONDITION"
        case SessionClosed(code=code):
            return "NOT_FOUND" if code == SESSION_UNKNOWN else "UNAVAILABLE"
        case _:
            return "UNAVAILABLE"


def _tell(end: FrameEnd, position: int) -> None:
    # Also to one that did not ask for it: this is how we hear that it has gone.
    end.say(NOTICE, {"position": position})


def _refuse(end: FrameEnd, code: str, details: str) -> None:
    with contextlib.suppress(OSError, Overdue):  # it has gone, and need not be told
        end.say(REFUSED, {"code": code, "details": details})
