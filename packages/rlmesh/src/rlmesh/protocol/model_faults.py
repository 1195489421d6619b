"""Failures of a served model as they travel, and what they are for the caller."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rlcore import (
    Error,
    ModelException,
    ProtocolException,
    SessionBusy,
    SessionClosed,
    UnsupportedError,
)

from rlmesh.protocol.faults import TRACEBACK_LIMIT, text_of, traceback_of

_INTERNAL: Final = "internal error: "


class ModelFaultCode(IntEnum):
    """The wire's ModelErrorCode."""

    UNSPECIFIED = 0
    INVALID_REQUEST = 2
    NOT_CONFIGURED = 3
    BUSY = 4
    UNSUPPORTED = 5
    INTERNAL = 10
    CANCELLED = 12
    CLOSED = 13


@dataclass(frozen=True, slots=True)
class ModelFault:
    """A request that failed: why, whether the same may go well later, the traceback behind it."""

    code: int
    message: str
    recoverable: bool = True
    debug_info: str = ""


class ModelRefusal(Exception):
    """A request to a model that cannot be answered; `fault` is what its sender is told."""

    def __init__(self, code: ModelFaultCode, message: str, *, recoverable: bool = True) -> None:
        super().__init__(message)
        self.fault = ModelFault(code, message, recoverable)


class ModelFaultReceived(Exception):
    """A served model's answer was a fault."""

    def __init__(self, fault: ModelFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client was asking a served model when a fault arrived."""

    operation: str
    model: str
    address: str
    environment: str | None = None
    episode_id: str | None = None
    seed: int | None = None


def fault_of(error: BaseException) -> ModelFault:
    """Return the fault for whatever was raised while a request was answered.

    What a model raises is told by its class and text, as published servers do, with its traceback.
    """
    if isinstance(error, ModelRefusal):
        return error.fault
    return ModelFault(
        ModelFaultCode.INTERNAL,
        f"{_INTERNAL}{type(error).__name__}: {text_of(error)}",
        recoverable=False,
        debug_info=traceback_of(error)[-TRACEBACK_LIMIT:],
    )


def model_error_of(fault: ModelFault, asked: Asked) -> Error:
    """Return the exception that a fault is for the caller."""
    where = f"{asked.operation} by the model {asked.model!r} at {asked.address}"
    text = f"{where}: {fault.message}"
    match fault.code:
        case ModelFaultCode.INVALID_REQUEST:
            return ProtocolException(text)
        case ModelFaultCode.UNSUPPORTED:
            return UnsupportedError(text)
        case ModelFaultCode.BUSY:
            return SessionBusy(text, address=asked.address)
        case ModelFaultCode.CANCELLED | ModelFaultCode.CLOSED:
            return SessionClosed(text, address=asked.address)
        case _:
            return ModelException(
                text,
                operation=asked.operation,
                model=asked.model,
                address=asked.address,
                environment=asked.environment,
                episode_id=asked.episode_id,
                seed=asked.seed,
                remote_type=_remote_type(fault.message),
                remote_traceback=fault.debug_info or None,
            )


def _remote_type(message: str) -> str | None:
    # The wire has no field for it; our servers and published ones write it in front.
    _, internal, rest = message.partition(_INTERNAL)
    name, colon, _ = rest.partition(":")
    return name if internal and colon and name.isidentifier() else None
