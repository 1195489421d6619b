"""Failures as they travel inside the conversation, and the exceptions they are on either side."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import IntEnum

from rlcore import (
    CallTimeout,
    EnvironmentException,
    Error,
    InvalidActionError,
    InvalidValueError,
    SessionClosed,
    UnsupportedError,
)

# Room for a deep traceback, small beside any message limit.
TRACEBACK_LIMIT = 64_000
# Characters: more of them help nobody, and a log or a terminal has to bear them.
MESSAGE_LIMIT = 64_000
UNSHOWN = "(its text cannot be shown)"


class FaultCode(IntEnum):
    """The wire's EnvErrorCode."""

    UNSPECIFIED = 0
    TIMEOUT = 1
    INVALID_ACTION = 2
    NOT_READY = 3
    BUSY = 4
    UNSUPPORTED = 5
    INTERNAL = 10
    CRASHED = 11
    CANCELLED = 12
    CLOSED = 13

    def __reduce_ex__(self, protocol: object) -> tuple[type[FaultCode], tuple[int]]:
        # Python 3.11.0 to 3.11.3 would name `getattr`, which no reader of ours lets a message call.
        return FaultCode, (int(self),)


_KNOWN = {int(code): code for code in FaultCode}


@dataclass(frozen=True, slots=True)
class Fault:
    """A request that failed: why, whether the session goes on, and the traceback behind it."""

    code: int
    message: str
    recoverable: bool
    debug_info: str = ""


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a client was doing when a fault arrived."""

    operation: str
    environment: str
    session_id: str
    episode_id: str | None
    seed: int | None
    step: int | None
    action: str | None = None


_ANY = Occasion("", "", "", None, None, None)


def environment_fault(operation: str, error: BaseException) -> Fault:
    """Return the fault for an exception that the environment raised, with its traceback."""
    # Where one of ours stands between, what the environment raised is the news.
    cause = error.__cause__ if isinstance(error, EnvironmentException) else None
    news = error if cause is None else cause
    message = f"{operation} failed: {type(news).__name__}: {text_of(news)}"
    return Fault(
        FaultCode.INTERNAL,
        message,
        recoverable=False,
        debug_info=traceback_of(news)[-TRACEBACK_LIMIT:],
    )


def text_of(error: BaseException) -> str:
    """Return what an exception says, cut off somewhere; a note where its class fails to say it."""
    try:
        text = str(error)
    except Exception:  # a foreign __str__ may raise anything, and the failure matters more
        return UNSHOWN
    return text if len(text) <= MESSAGE_LIMIT else f"{text[:MESSAGE_LIMIT]}… (cut off)"


def writable(text: str) -> str:
    """Return a text as the wire can carry it: lone surrogates, as in paths, are escaped."""
    return text.encode(errors="backslashreplace").decode()


def invalid_action(error: InvalidValueError) -> Fault:
    """Return the fault for an action outside its space; the environment did not see it."""
    return Fault(FaultCode.INVALID_ACTION, str(error), recoverable=True)


def refusal(code: FaultCode, message: str) -> Fault:
    """Return the fault for a request that is out of place; the session goes on."""
    return Fault(code, message, recoverable=True)


def error_of(fault: Fault, occasion: Occasion) -> Error:
    """Return the exception that a fault is for the caller."""
    code = _KNOWN.get(fault.code, FaultCode.UNSPECIFIED)
    if code is FaultCode.TIMEOUT:
        return CallTimeout(fault.message, operation=occasion.operation, layer="environment")
    if code is FaultCode.INVALID_ACTION:
        return InvalidActionError(fault.message)
    if code is FaultCode.UNSUPPORTED:
        return UnsupportedError(fault.message)
    if code in (FaultCode.CANCELLED, FaultCode.CLOSED):
        return SessionClosed(fault.message, hint="Call reset() to start again.")
    return EnvironmentException(
        f"{_where(occasion)}: {fault.message}",
        code=None if code is FaultCode.INTERNAL else code.name.lower(),
        operation=occasion.operation,
        environment=occasion.environment,
        session_id=occasion.session_id,
        episode_id=occasion.episode_id,
        seed=occasion.seed,
        step=occasion.step,
        action=occasion.action,
        remote_type=_remote_type(fault.message),
        remote_traceback=fault.debug_info or None,
    )


def code_of(fault: Fault) -> str:
    """Return the code of the exception that a fault is for the caller."""
    return error_of(fault, _ANY).code


def traceback_of(error: BaseException) -> str:
    """Return an exception's traceback as text; a note where its class fails to be formatted."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # a foreign exception may break its own formatting
        return f"{type(error).__name__} {UNSHOWN}"


def _where(occasion: Occasion) -> str:
    facts = [f"{occasion.operation} of {occasion.environment!r}"]
    if occasion.step is not None:
        facts.append(f"step {occasion.step}")
    if occasion.seed is not None:
        facts.append(f"seed {occasion.seed}")
    if occasion.action is not None:
        facts.append(f"action {occasion.action}")
    return ", ".join(facts)


def _remote_type(message: str) -> str | None:
    # The wire has no field for it; both our server and the published one write it in front.
    _, failed, rest = message.partition(" failed: ")
    name, colon, _ = rest.partition(":")
    return name if failed and colon and name.isidentifier() else None
