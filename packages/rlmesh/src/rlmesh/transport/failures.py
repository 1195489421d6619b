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

from rlmesh.transport.addresses import Address


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
    code, details = call.code(), call.details() or "no reason was given"
    where = f"{operation} at {address}"
    text = str(address)
    if code is grpc.StatusCode.UNAUTHENTICATED or code is grpc.StatusCode.PERMISSION_DENIED:
        return AccessDenied(
            f"{where} was refused: {details}",
            address=text,
            hint="Pass token= or ask for a new one.",
        )
    if code is grpc.StatusCode.UNAVAILABLE:
        return _unavailable(where, text, details, joined=joined)
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return SessionBusy(
            f"{where} was refused: {details}",
            address=text,
            hint="Close the other client, or serve a factory: each client then gets its own.",
        )
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _exhausted(where, text, details)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return CallTimeout(
            f"{where} did not answer within {seconds:g} s"
            if seconds is not None
            else f"{where} did not answer in time",
            operation=operation,
            seconds=seconds,
            layer="request" if joined else "connect",
            hint="Something accepts connections there, but it may not be an rlmesh server.",
        )
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return UnsupportedError(
            f"{where} is not offered: {details}", hint="Is this an rlmesh environment server?"
        )
    if code is grpc.StatusCode.CANCELLED:
        return SessionClosed(
            f"{where}: the session was ended by the server", address=text, hint="Dial it again."
        )
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return ProtocolException(f"{where} was not understood: {details}")
    return TransportError(f"{where} failed: {code.name}: {details}", address=text)


def _unavailable(where: str, address: str, details: str, *, joined: bool) -> Error:
    if joined:
        return SessionClosed(
            f"{where}: the connection was lost: {details}",
            address=address,
            hint="Is the server still running? reset() dials it again.",
        )
    return ServerUnreachable(
        f"{where}: nothing answers there: {details}",
        address=address,
        hint="Start the server, check the address, or pass wait_for_server_seconds=.",
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
