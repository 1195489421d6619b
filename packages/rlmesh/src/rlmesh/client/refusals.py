"""Why a client does not do what it is asked: it is closed, lost, another's, or not ready."""

from __future__ import annotations

from rlcore import EnvironmentException, SessionClosed


def is_closed(address: str) -> SessionClosed:
    """Return the error of a client that was closed."""
    return SessionClosed(
        f"this client of {address} was closed", address=address, hint="Make a new one."
    )


def is_foreign(address: str) -> SessionClosed:
    """Return the error of a client in a process that was forked from its own.

    The threads that wait for replies stayed behind in the process that forked.
    """
    return SessionClosed(
        f"this client of {address} was made in another process",
        address=address,
        hint="Make a new one after the fork.",
    )


def was_lost(address: str) -> SessionClosed:
    """Return the error of a client that lost its session and must not open another."""
    return SessionClosed(
        f"this client of {address} lost its session, and was told not to open another",
        address=address,
        hint="Make a new one, or let it (reconnect=True).",
    )


def is_not_ready(environment: str, *, was_interrupted: bool) -> EnvironmentException:
    """Return the error of a step without a running episode."""
    why = "the last call was interrupted" if was_interrupted else "there is no running episode"
    return EnvironmentException(
        f"step of {environment!r}: {why}",
        code="not_ready",
        operation="step",
        environment=environment,
        hint="Call reset() to start again." if was_interrupted else "Call reset() first.",
    )
