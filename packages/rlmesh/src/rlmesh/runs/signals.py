"""What players tell a run by raising it; none of these is ever raised out of one."""

from math import isfinite

from rlcore import (
    CallTimeout,
    EnvironmentException,
    IdentityError,
    InvalidObservationError,
    RLMeshException,
)

from rlmesh.runs.outcomes import Outcome


class EpisodeFailed(Exception):
    """The environment failed, or the way to it or to the model: the episode has no score."""

    def __init__(self, outcome: Outcome, error: RLMeshException, *, of_model: bool = False) -> None:
        super().__init__(outcome, error)
        self.outcome = outcome
        self.error = error
        self.of_model = of_model

    @property
    def was_lost(self) -> bool:
        """Whether the way to the environment is in doubt, and not only its episode."""
        return self.outcome is not Outcome.ENV_ERROR


class CannotGoOn(Exception):
    """What is left of the run cannot be played: here, or `everywhere`."""

    def __init__(
        self, reason: str, cause: BaseException | None, *, everywhere: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause
        self.everywhere = everywhere


class Enough(Exception):
    """The run ends early, as it was asked to: its result so far is what it returns."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def failed(error: RLMeshException) -> EpisodeFailed:
    """Return what an error of the environment's side means for its episode.

    Raises:
        KeyboardInterrupt: it is one.
        IdentityError: it is one: no episode could be compared with those that were played.
    """
    if isinstance(error, KeyboardInterrupt | IdentityError):
        raise error
    if isinstance(error, EnvironmentException | InvalidObservationError):
        return EpisodeFailed(Outcome.ENV_ERROR, error)
    if isinstance(error, CallTimeout):
        return EpisodeFailed(Outcome.TIMEOUT, error)
    return EpisodeFailed(Outcome.INFRA_ERROR, error)


def why_no_score(reward: float, total: float) -> str:
    """Return what is wrong with a reward, or with the sum of an episode's with it."""
    return f"reward is {reward}" if not isfinite(reward) else f"its rewards add up to {total}"
