"""A client's connection to a served model: who answers there, and streams to ask it over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rlcore import (
    CallTimeout,
    Endpoint,
    Error,
    IdentityError,
    UnsupportedError,
)

from rlmesh.backends.content import Content
from rlmesh.client.dialling import Destination, dial_with
from rlmesh.protocol.handshake import Welcome, accept, greet
from rlmesh.protocol.model_requests import (
    MODEL_CHUNK,
    MODEL_COMPONENT,
    MODEL_CONTENT,
    MODEL_DIGEST,
    MODEL_NAME,
)
from rlmesh.protocol.this_peer import this_peer
from rlmesh.transport.connection import Connection
from rlmesh.transport.handshake_wire import (
    read_shutdown_answer,
    read_welcome,
    write_hello,
    write_shutdown,
)
from rlmesh.transport.methods import MODEL_HANDSHAKE, MODEL_JOIN, MODEL_SHUTDOWN
from rlmesh.transport.model_lane import ModelLane

AGAIN: Final = "The next episode asks it again; is the server still running?"


@dataclass(frozen=True, slots=True)
class Answering:
    """A connection to a served model, and what its handshake said."""

    connection: Connection
    welcome: Welcome
    edition: str

    @property
    def about(self) -> Mapping[str, str]:
        """What the server says of itself; nothing, where it is a published one."""
        peer = self.welcome.peer
        return {} if peer is None else peer.extra

    @property
    def name(self) -> str:
        """What the model is called: by its server, or by where it is."""
        return self.about.get(MODEL_NAME) or str(self.connection.address)

    @property
    def digest(self) -> str | None:
        """The digest of the model's content, where the server tells."""
        return self.about.get(MODEL_DIGEST)

    @property
    def content(self) -> Content | None:
        """What the model is made of, where the server tells."""
        digest, _, gaps = self.about.get(MODEL_CONTENT, "").partition(" ")
        return Content(digest, (gaps,) if gaps else ()) if digest else None

    @property
    def native_chunk(self) -> int | None:
        """How many actions it makes at a time, where the server tells."""
        told = self.about.get(MODEL_CHUNK, "")
        return int(told) if told.isdecimal() else None


class ModelLink:
    """A connection to one served model.

    Raises:
        Error: as `dialling.dial`.
    """

    def __init__(self, destination: Destination, *, request_seconds: float | None) -> None:
        self.answering = dial_with(destination, _shake_hands)
        self._destination = destination
        self._request_seconds = request_seconds
        self._is_fresh = True

    @property
    def address(self) -> str:
        """Where it is."""
        return str(self.answering.connection.address)

    def lane(self) -> ModelLane:
        """Return a new stream to ask over; after the first, it is made sure who answers now.

        Raises:
            IdentityError: another model answers there by now.
            Error: as `dialling.dial`.
        """
        if not self._is_fresh:
            self._meet_again()
        self._is_fresh = False
        connection = self.answering.connection
        stream = connection.stream(MODEL_JOIN, timeout=self._request_seconds, again=AGAIN)
        return ModelLane(stream)

    def shutdown(self, reason: str) -> bool:
        """Ask the server to stop; False when it does not let clients do that."""
        reply = self.answering.connection.call(
            MODEL_SHUTDOWN,
            write_shutdown(reason),
            operation="shutdown",
            timeout=self._request_seconds,
        )
        accepted, _ = read_shutdown_answer(reply)
        return accepted

    def close(self) -> None:
        """Close the connection."""
        self.answering.connection.close()

    def _meet_again(self) -> None:
        before = self.answering
        now = dial_with(self._destination, _shake_hands)
        before.connection.close()
        self.answering = now
        if (now.name, now.digest) != (before.name, before.digest):
            raise IdentityError(
                f"another model answers at {self.address} by now: {now.name!r} of the digest "
                f"{now.digest}, before it was {before.name!r} of {before.digest}",
                expected=before.digest,
                actual=now.digest,
                hint="Start another run for it: results of two models do not mix.",
            )


def hinted(error: Error, *, address: str) -> Error:
    """Return an error of the connection with advice that is about models."""
    match error:
        case CallTimeout(layer="request"):
            error.hint = (
                f"The model at {address} may hang; raise request_timeout_seconds if it is only "
                "slow. The next episode asks it again."
            )
        case UnsupportedError(code="unsupported"):
            error.hint = "Is this an rlmesh model server? RemoteEnv is for environments."
        case _ if error.hint is not None and "reset()" in error.hint:
            error.hint = AGAIN
        case _:
            pass
    return error


def _shake_hands(connection: Connection, _: Endpoint, destination: Destination) -> Answering:
    try:
        reply = connection.call(
            MODEL_HANDSHAKE,
            write_hello(
                greet(declared=destination.declared_edition, peer=this_peer(MODEL_COMPONENT))
            ),
            operation="handshake",
            timeout=destination.connect_seconds,
        )
    except Error as error:
        hinted(error, address=str(connection.address))
        raise
    welcome, _contract = read_welcome(reply)
    edition = accept(welcome, declared=destination.declared_edition)
    return Answering(connection, welcome, edition)
