"""gRPC status names and EnvErrorCode names <-> data-plane error. Knows names only, no grpc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from rlcore.errors import ConfigurationError, Error, TokenRejected
from rlcore.mesh_errors import (
    AccessDenied,
    CallTimeout,
    EnvironmentException,
    IncompatibleError,
    InvalidActionError,
    InvalidValueError,
    ProtocolException,
    RLMeshException,
    ServerUnreachable,
    SessionBusy,
    SessionClosed,
    TransportError,
    UnsupportedError,
)

ENV_PREFIX = "ENV_ERROR_CODE_"

# The first class that an error belongs to decides, so the more particular ones stand first.
_GRPC_OF: Sequence[tuple[type[Error], str]] = (
    (TokenRejected, "UNAUTHENTICATED"),
    (AccessDenied, "UNAUTHENTICATED"),
    (ConfigurationError, "INVALID_ARGUMENT"),
    (InvalidValueError, "INVALID_ARGUMENT"),
    (IncompatibleError, "FAILED_PRECONDITION"),
    (ProtocolException, "INVALID_ARGUMENT"),
    # The published server refuses a second session so.
    (SessionBusy, "FAILED_PRECONDITION"),
    (SessionClosed, "ABORTED"),
    (CallTimeout, "DEADLINE_EXCEEDED"),
    (UnsupportedError, "UNIMPLEMENTED"),
    (TransportError, "UNAVAILABLE"),
)

_ENV_CODE_OF: Sequence[tuple[type[Error], str]] = (
    (CallTimeout, "TIMEOUT"),
    (InvalidActionError, "INVALID_ACTION"),
    (SessionBusy, "BUSY"),
    (UnsupportedError, "UNSUPPORTED"),
    (SessionClosed, "CLOSED"),
)

_TRANSPORT_OF: Mapping[str, tuple[type[TransportError], str]] = {
    "UNAVAILABLE": (ServerUnreachable, "Check that a server is running there."),
    "UNAUTHENTICATED": (AccessDenied, "Pass the server's token, or ask for a new one."),
    "PERMISSION_DENIED": (AccessDenied, "Use a credential that has this permission."),
    "FAILED_PRECONDITION": (SessionBusy, "Close the other session, or try again later."),
    "RESOURCE_EXHAUSTED": (TransportError, "Send smaller values, or raise the message limit."),
    "CANCELLED": (SessionClosed, "Reset to open a new session."),
    "ABORTED": (SessionClosed, "Reset to open a new session."),
}

_PROTOCOL_OF: Mapping[str, tuple[type[RLMeshException], str]] = {
    "UNIMPLEMENTED": (UnsupportedError, "Check that the address is an rlmesh environment server."),
    "INVALID_ARGUMENT": (ProtocolException, "Check that both sides speak rlmesh-wire-v1."),
}


class EnvironmentFacts(TypedDict, total=False):
    """What is known of where an environment failed: see `EnvironmentException`."""

    operation: str | None
    environment: str | None
    session_id: str | None
    episode_id: str | None
    seed: int | None
    step: int | None
    remote_type: str | None
    remote_traceback: str | None


def grpc_code_for(error: Error) -> str:
    """Return the name of the gRPC status that tells a client of an error."""
    return next((name for kind, name in _GRPC_OF if isinstance(error, kind)), "INTERNAL")


def error_from_grpc(
    code_name: str,
    details: str,
    *,
    address: str,
    operation: str,
    seconds: float | None = None,
) -> RLMeshException:
    """Return the error that a gRPC status stands for; `operation` is what was being done."""
    said = details.strip() or code_name
    if code_name == "DEADLINE_EXCEEDED":
        limit = "" if seconds is None else f" within {seconds:g} s"
        return CallTimeout(
            f"{operation} at {address!r} was not answered{limit}",
            operation=operation,
            seconds=seconds,
            layer="request",
            hint="Give it a longer timeout, or look at what the environment is doing.",
        )
    message = f"{operation} at {address!r} failed: {said}"
    if code_name in _TRANSPORT_OF:
        transport, hint = _TRANSPORT_OF[code_name]
        return transport(message, address=address, hint=hint)
    if code_name in _PROTOCOL_OF:
        kind, hint = _PROTOCOL_OF[code_name]
        return kind(message, hint=hint)
    return ProtocolException(f"{message} ({code_name})", hint="Look at the server's log.")


def env_error_code_for(error: BaseException) -> str:
    """Return the EnvErrorCode, without its prefix, that tells a client of an error in a session."""
    return next((name for kind, name in _ENV_CODE_OF if isinstance(error, kind)), "INTERNAL")


def error_from_env_code(
    code_name: str, message: str, *, seconds: float | None = None, **facts: Unpack[EnvironmentFacts]
) -> RLMeshException:
    """Return the error that an EnvError stands for; its code may carry its enum's prefix."""
    match code_name.removeprefix(ENV_PREFIX):
        case "TIMEOUT":
            return CallTimeout(
                message,
                operation=facts.get("operation"),
                seconds=seconds,
                layer="environment",
                hint="Give the environment more time, or mend what hangs in it.",
            )
        case "INVALID_ACTION":
            return InvalidActionError(message)
        case "UNSUPPORTED":
            return UnsupportedError(message)
        case "BUSY":
            return SessionBusy(message, hint="Close the other session, or try again later.")
        case "CLOSED" | "CANCELLED":
            return SessionClosed(message, hint="Reset to open a new session.")
        case _:
            return EnvironmentException(message, **facts)
