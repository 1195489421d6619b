"""A failed call, as the error that it is for the caller."""

from __future__ import annotations

from typing import cast

import grpc
from rlcore import (
    AccessDenied,
    CallTimeout,
    Error,
    ProtocolException,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
    TransportError,
    UnsupportedError,
)

from rlmesh.protocol.opening import (
    CONNECTION_LOST,
    CUT_OFF,
    SERVER_GONE,
    SESSION_UNKNOWN,
    SHUTTING_DOWN,
)
from rlmesh.transport.addresses import Address

# How the system says that no process has the address; a way that is only broken sounds different.
NOBODY_THERE = ("Connection refused", "No such file or directory")

AGAIN = "Call reset() to start again."
SESSION_ENDS = {
    "NOT_FOUND": SESSION_UNKNOWN,
    # The first attempt to open it has arrived meanwhile: the next one will find it.
    "ALREADY_EXISTS": CONNECTION_LOST,
    # What gRPC says of a connection whose bytes were cut off or mangled.
    "INTERNAL": CONNECTION_LOST,
    "UNKNOWN": CONNECTION_LOST,
}

# Characters of a reason. Trailers take 8 KiB; one character takes up to 12 bytes in them.
MOST_WORDS = 500


def failure_of(
    error: grpc.RpcError, *, operation: str, address: Address, seconds: float | None, joined: bool
) -> Error:
    """Return our error for one of gRPC's.

    Args:
        error: what the call raised; it must have ended.
        operation: what was asked for.
        address: where.
        seconds: the patience of the caller, for a timeout's text.
        joined: whether a session was open, so that losing it is the news.
    """
    call = cast("grpc.Call", error)
    return refusal_of(
        call.code().name,
        call.details() or "no reason was given",
        operation=operation,
        address=address,
        seconds=seconds,
        joined=joined,
    )


def refusal_of(
    code: str,
    details: str,
    *,
    operation: str,
    address: Address,
    seconds: float | None,
    joined: bool,
) -> Error:
    """Return our error for the name of a gRPC code and what was said; else as `failure_of`."""
    where = f"{operation} at {address}"
    text = str(address)
    if code == "UNAUTHENTICATED" or code == "PERMISSION_DENIED":
        return AccessDenied(
            f"{where} was refused: {details}",
            address=text,
            hint="Pass token=, set RLMESH_TOKEN, or ask for a new one.",
        )
    if code == "UNAVAILABLE":
        return _unavailable(where, text, details, joined=joined)
    if code == "FAILED_PRECONDITION":
        return SessionBusy(
            f"{where} was refused: {details}",
            address=text,
            hint="Close the other client, or serve a factory: each client then gets its own.",
        )
    if code == "RESOURCE_EXHAUSTED":
        return _exhausted(where, text, details)
    if code == "DEADLINE_EXCEEDED":
        return CallTimeout(
            f"{where} did not answer within {seconds:g} s"
            if seconds is not None
            else f"{where} did not answer in time",
            operation=operation,
            seconds=seconds,
            layer="request" if joined else "connect",
            hint="Something accepts connections there, but it may not be an rlmesh server.",
        )
    if code == "UNIMPLEMENTED":
        return UnsupportedError(
            f"{where} is not offered: {details}", hint="Is this an rlmesh environment server?"
        )
    if code == "CANCELLED":
        return _cancelled(where, text, details, joined=joined)
    if code == "INVALID_ARGUMENT":
        return ProtocolException(f"{where} was not understood: {details}")
    if joined and (end := SESSION_ENDS.get(code)) is not None:
        return SessionClosed(f"{where}: {details}", address=text, code=end, hint=AGAIN)
    return TransportError(f"{where} failed: {code}: {details}", address=text)


def too_late(operation: str, address: Address, seconds: float | None) -> CallTimeout:
    """Return the error about an answer in a session that did not come in time."""
    return CallTimeout(
        f"{operation} at {address} did not answer within {seconds or 0.0:g} s",
        operation=operation,
        seconds=seconds,
        layer="request",
        hint="The environment may hang. reset() starts a new session; "
        "raise request_timeout_seconds if it is only slow.",
    )


def _unavailable(where: str, address: str, details: str, *, joined: bool) -> Error:
    if joined:
        return SessionClosed(
            f"{where}: the connection was lost: {details}",
            address=address,
            code=_loss(details),
            hint="Is the server still running? reset() dials it again.",
        )
    return ServerUnreachable(
        f"{where}: nothing answers there: {details}",
        address=address,
        hint="Start the server, check the address, or pass wait_for_server_seconds=.",
    )


def brief(reason: str) -> str:
    """Return a reason that fits into the trailers of a call, in whatever letters it is."""
    return reason if len(reason) <= MOST_WORDS else f"{reason[:MOST_WORDS]}…"


def _loss(details: str) -> str:
    if SHUTTING_DOWN in details:
        return SERVER_GONE
    return SERVER_GONE if any(sign in details for sign in NOBODY_THERE) else CONNECTION_LOST


def _cancelled(where: str, address: str, details: str, *, joined: bool) -> Error:
    if joined:
        # All that a server can say by gRPC while it waits for a request.
        return SessionClosed(
            f"{where}: the server ended the connection", address=address, code=CUT_OFF, hint=AGAIN
        )
    return ServerUnreachable(
        f"{where}: the server turned the call away: {details}",
        address=address,
        hint="It has too much to do; pass wait_for_server_seconds= to try again.",
    )


def _exhausted(where: str, address: str, details: str) -> Error:
    if "larger than max" in details:
        return ProtocolException(
            f"{where}: a message is too large: {details}", code="message_too_large"
        )
    return SessionBusy(
        f"{where} was refused: {details}",
        address=address,
        hint="Close a client, or raise max_sessions.",
    )
