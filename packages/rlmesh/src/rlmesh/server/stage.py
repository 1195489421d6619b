"""What a conversation drives: one environment, a list of them, or one that steps many at once."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rlcore import InvalidObservationError, InvalidValueError

from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault, invalid_action, refusal
from rlmesh.protocol.messages import RenderAnswer, Request, ResetAnswer, StepAnswer, Timing

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments

now = time.perf_counter_ns
NS_PER_MS: Final = 1_000_000


class Failed(Exception):
    """A request that ends in a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Stage(ABC):
    """The environments of one session, called in its thread.

    Every operation raises `Failed` for a request that cannot be answered.
    """

    def __init__(self, environments: Environments) -> None:
        self._environments = environments
        self._taken: Any = None  # Any: whatever the server was given, or its factory made

    @abstractmethod
    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start episodes."""

    @abstractmethod
    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Take a step."""

    @abstractmethod
    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw one lane."""

    @abstractmethod
    def end(self, lanes: Sequence[int] = ()) -> list[Episode]:
        """End the episodes of these lanes, or of all; return what nobody was told of.

        These lanes have to be reset before they can be stepped.
        """

    def give_up(self) -> None:
        """Hear, from another thread, that nobody waits any more for what is running."""
        return  # what runs in a thread cannot be ended; it comes to its own end

    def leave(self) -> None:
        """Give the environments back.

        Raises:
            EnvironmentException: one could not be closed.
        """
        taken, self._taken = self._taken, None
        self._environments.give_back(taken)

    def _take(self) -> Any:  # Any: whatever the server was given, or its factory made
        if self._taken is None:
            try:
                self._taken = self._environments.take()
            except BaseException as error:
                raise Failed(environment_fault("make", error)) from error
        return self._taken


def in_time(request: Request, what: str, taken_ns: int) -> None:
    """Do nothing when the environment took no longer than the request allows.

    Raises:
        Failed: it did.
    """
    if request.timeout_ms and taken_ns > request.timeout_ms * NS_PER_MS:
        message = f"{what} took longer than {request.timeout_ms} ms; its result was dropped"
        raise Failed(refusal(FaultCode.TIMEOUT, message))


def misused(message: str) -> Failed:
    """Return the failure of a request that names lanes, seeds or ids that cannot be."""
    return Failed(refusal(FaultCode.INVALID_ACTION, message))


def not_ready(message: str) -> Failed:
    """Return the failure of a step that comes too early."""
    return Failed(refusal(FaultCode.NOT_READY, message))


def bad_action(error: InvalidValueError) -> Failed:
    """Return the failure of a step whose action is none of the space."""
    return Failed(invalid_action(error))


def bad_observation(operation: str, error: InvalidValueError) -> Failed:
    """Return the failure of an environment that gave what is no observation of its space."""
    told = InvalidObservationError(error.message, path=error.path)
    return Failed(environment_fault(operation, told))
