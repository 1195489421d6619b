"""How an episode ends. A failure of anything but the model never becomes a score."""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """The one word for how an episode ended."""

    SUCCESS = "success"
    """The task reports success, or the run's own criterion says so."""
    FAILURE = "failure"
    """The task reports that it was not solved."""
    TRUNCATED = "truncated"
    """Cut off by a limit; nothing says whether the task was solved."""
    COMPLETED = "completed"
    """Ended by itself; nothing says whether the task was solved."""
    ENV_ERROR = "env_error"
    """The environment raised, or what it gave has not the form of its spaces or is no score.

    An observation may be out of a Box's bounds, or NaN: what that means, the model decides.
    """
    TIMEOUT = "timeout"
    """The environment did not answer in time."""
    INFRA_ERROR = "infra_error"
    """The connection or the server failed."""
    GRADER_ERROR = "grader_error"
    """The success criterion raised."""
    CANCELLED = "cancelled"
    """Stopped from outside before it ended."""

    @property
    def scored(self) -> bool:
        """Whether the episode counts into rewards and rates."""
        return self in _SCORED


_SCORED = frozenset({Outcome.SUCCESS, Outcome.FAILURE, Outcome.TRUNCATED, Outcome.COMPLETED})


def scored_outcome(*, success: bool | None, truncated: bool) -> Outcome:
    """Return the outcome of an episode that ran to its end."""
    if success is None:
        return Outcome.TRUNCATED if truncated else Outcome.COMPLETED
    return Outcome.SUCCESS if success else Outcome.FAILURE


class Coverage(NamedTuple):
    """How many episodes were asked for, how many have a score, how many failed without one."""

    asked: int
    scored: int
    failed: int

    @property
    def complete(self) -> bool:
        """Whether every episode that was asked for has a score."""
        return self.scored == self.asked

    def __str__(self) -> str:
        return f"{self.scored} of {self.asked} scored, {self.failed} failed"
