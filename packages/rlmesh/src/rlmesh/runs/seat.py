"""One open environment of a run, and what becomes of it when it is lost."""

from collections.abc import Callable
from typing import Any, cast

from rlcore import EnvironmentIdentity, Error, IdentityError, RLMeshException
from rlcore.log import logger

from rlmesh.runs.driven import takes_trial
from rlmesh.runs.failing import Failing
from rlmesh.runs.helper_thread import Until
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.signals import CannotGoOn, EpisodeFailed
from rlmesh.runs.targets import Target
from rlmesh.runs.timed import Timed

log = logger("rlmesh", "runs")

FAILED_IN_A_ROW = 10
"""An environment that fails so often without an episode in between is taken to be broken."""


class Seat:
    """What a player has: an environment, or a successor of it.

    Args:
        target: the environment.

    Attributes:
        target: the environment as it was opened.
        reset: the environment's own, bounded where the calls are.
        step: likewise.
        takes_trial: whether it declares the reset option `trial_index`.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.takes_trial = takes_trial(target.env)
        self._identity = target.env.identity
        self._timed: Timed | None = None
        self._is_bounded = False
        self._step_seconds: float | None = None
        self._lost_in_a_row = 0
        self._failed_in_a_row = 0
        self._sit_down()

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Which environment it is, where it has a contract."""
        return self.target.env.identity

    @property
    def action_space(self) -> object:
        """What one environment is stepped with, as it says itself."""
        return getattr(self.target.env, "action_space", None)

    def bound(self, step_seconds: float | None) -> None:
        """Have calls take no longer than this, and none go on after `until`.

        The environment's calls are made on another thread from now on, where it has no timeouts
        of its own.
        """
        self._step_seconds, self._is_bounded = step_seconds, True
        self._sit_down()

    def free(self) -> None:
        """Let calls take as long as they like again, on the thread that makes them."""
        timed, self._timed, self._is_bounded = self._timed, None, False
        if timed is not None and timed.is_stuck:
            self._timed, self._is_bounded = timed, True
            return
        if timed is not None:
            timed.leave()
        self._sit_down()

    def until(self, until: Until) -> None:
        """Let no call go on after a moment, where calls are bounded."""
        if self._timed is not None:
            self._timed.until = until

    def played(self) -> None:
        """Note that an episode came to its end."""
        self._lost_in_a_row = self._failed_in_a_row = 0

    def recover(self, failure: EpisodeFailed) -> bool:
        """Make an environment that failed usable again, and tell whether it is another one now.

        One that was made in this process is made anew after any failure: what it raised may have
        left it broken. A server decides that by itself.

        Args:
            failure: what became of it.

        Raises:
            CannotGoOn: nothing can be played here any more.
            IdentityError: another environment is served now.
        """
        stuck = self._timed is not None and self._timed.is_stuck
        spoilt = not self.target.is_remote and self.target.reopen is not None
        if not failure.was_lost and not stuck and not spoilt:
            self._lost_in_a_row = 0
            self._require_hope(failure)
            return False
        # What is slow may be in time again; what cannot be reached twice will not be.
        self._lost_in_a_row += failure.outcome is Outcome.INFRA_ERROR
        if self.target.reopen is not None:
            self._reopen(self.target.reopen, failure)
            return True
        told = _told(failure)
        if stuck and self._timed is not None and not self._timed.comes_back():
            reason = f"the environment hangs, and was given and not made here: {told}"
            raise CannotGoOn(reason, failure.error)
        if self._lost_in_a_row > 1:
            raise CannotGoOn(f"two episodes in a row were lost: {told}", failure.error)
        return False

    def close(self, *, close_env: bool) -> None:
        """Release what the run opened here."""
        self._close(self.target, close_env=close_env)

    def hang_up(self) -> None:
        """Have a call that waits for a server fail at once; from any thread.

        A client that was given to the run is the caller's, and stays open.
        """
        if self.target.is_remote and self.target.owned:
            self.target.env.close()

    def _sit_down(self) -> None:
        env = cast("Any", self.target.env)  # Any: one environment or many lanes
        self.reset: Callable[..., Any] = env.reset
        self.step: Callable[..., Any] = env.step
        if self._is_bounded:
            self._timed = Timed(self.target.env, self._step_seconds)
            self.reset, self.step = self._timed.reset, self._timed.step

    def _require_hope(self, failure: EpisodeFailed) -> None:
        self._failed_in_a_row += 1
        count = self._failed_in_a_row
        if count == FAILED_IN_A_ROW and self.target.reopen is None:
            raise CannotGoOn(
                f"{count} episodes in a row failed, and the environment was given and not made "
                f"here, so it cannot be made anew: {_told(failure)}",
                failure.error,
            )

    def _reopen(self, open_again: Callable[[], Target], failure: EpisodeFailed) -> None:
        lost = self.target
        timed = self._timed
        try:
            self.target = open_again()
        except IdentityError:
            raise
        except Error as error:
            reason = f"the environment was lost ({_told(failure)}) and cannot be opened again"
            raise CannotGoOn(f"{reason}: {error}", error) from error
        self._sit_down()
        if _is_same(lost, self.target):
            if timed is not None:
                timed.leave()
            return
        try:
            if timed is None:
                lost.close(close_env=False)
            else:
                timed.close(lambda: lost.close(close_env=False))
        except RLMeshException as error:
            log.warning("what is left of a lost environment did not close: %s", error)
        found = self.identity
        if found != self._identity:
            reason = f"the environment was {self._identity} and is now {found}"
            raise CannotGoOn(reason, None)

    def _close(self, target: Target, *, close_env: bool) -> None:
        if self._timed is None:
            target.close(close_env=close_env)
        else:
            self._timed.close(lambda: target.close(close_env=close_env))


def _is_same(one: Target, other: Target) -> bool:
    """Whether a factory made what it had made before, which closing would end."""
    first, second = one.env, other.env
    return isinstance(first, Failing) and isinstance(second, Failing) and first.env is second.env


def _told(failure: EpisodeFailed) -> str:
    return f"{type(failure.error).__name__}: {failure.error}"
