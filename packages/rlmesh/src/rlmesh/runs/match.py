"""What the players of a run share: what is to be played, for whom, and under which rules."""

import uuid
from dataclasses import replace
from math import inf
from time import monotonic

from rlcore import CallTimeout, TransportError

from rlmesh.models.policy import PolicyEpisode
from rlmesh.runs.announcer import Announcer
from rlmesh.runs.budget import Limits, Plan
from rlmesh.runs.episode import Episode
from rlmesh.runs.grading import Grader
from rlmesh.runs.helper_thread import Until
from rlmesh.runs.interrupts import uninterrupted
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.predictor import Predictor
from rlmesh.runs.results import EpisodeResult
from rlmesh.runs.scoreboard import Scoreboard
from rlmesh.runs.signals import CannotGoOn, Enough, EpisodeFailed
from rlmesh.runs.views import ViewControl


class Halted(Exception):
    """The run ends while an episode is played; a signal to its player, never raised out of it."""


class Match:
    """One run as its players see it.

    Args:
        board: the episodes.
        predictor: the policy.
        announcer: who is told.
        grader: what success is.
        limits: where an episode is cut off, and how long it may take in all.
        retries: how often an episode without a score is tried again.
        run_seconds: how long the run may take.
        players: how many there are.
        control: what somebody asks who watches.

    Attributes:
        is_bounded: whether a moment may come after which no call may go on.
    """

    def __init__(
        self,
        board: Scoreboard,
        predictor: Predictor,
        announcer: Announcer,
        *,
        grader: Grader,
        limits: Limits,
        retries: int = 0,
        run_seconds: float | None = None,
        players: int = 1,
        control: ViewControl | None = None,
    ) -> None:
        self.board = board
        self.predictor = predictor
        self.announcer = announcer
        self.grader = grader
        self.limits = limits
        self.control = control
        self.is_bounded = run_seconds is not None or limits.timeout is not None
        self._retries = retries
        self._players = players
        self._losses = 0
        self._run_seconds = run_seconds
        self._id = uuid.uuid4().hex
        self._over_at = inf if run_seconds is None else monotonic() + run_seconds

    def episode_id(self, plan: Plan) -> str:
        """Return what an attempt at an episode is called."""
        again = "" if plan.attempt == 1 else f"-{plan.attempt}"
        return f"{self._id}-{plan.index}{again}"

    def until_now(self) -> Until:
        """Return until when the calls of an episode that starts now may go on."""
        until = Until(self._over_at, "run")
        if self.limits.timeout is not None:
            return until.sooner(monotonic() + self.limits.timeout, "episode")
        return until

    def begin(self, plan: Plan, until: Until) -> PolicyEpisode:
        """Open an attempt at an episode for the policy, whose predictions end by a moment.

        Raises:
            EpisodeFailed: a served model cannot be reached.
        """
        try:
            return self.predictor.begin(self.episode_id(plan), plan.seed, until)
        except (TransportError, CallTimeout) as error:
            raise self.without_model(error) from error

    def without_model(self, error: TransportError | CallTimeout) -> EpisodeFailed:
        """Return what it means for an episode that a served model was lost or is too slow.

        Raises:
            CallTimeout: it is a model that hangs.
            Enough: the time of the run is up.
        """
        if self.predictor.is_stuck:
            if isinstance(error, CallTimeout) and error.layer == "run":
                raise self._too_late()
            raise error
        slow = isinstance(error, CallTimeout)
        return EpisodeFailed(Outcome.TIMEOUT if slow else Outcome.INFRA_ERROR, error, of_model=True)

    def ask_again(self, failure: EpisodeFailed) -> None:
        """Have a model that was lost asked again by the next episode.

        Raises:
            CannotGoOn: it was lost again and again.
        """
        self._losses += failure.outcome is Outcome.INFRA_ERROR
        # Players lose one server at the same time, and that is one loss.
        if self._losses > self._players and not self.board.is_done:
            told = f"{type(failure.error).__name__}: {failure.error}"
            raise CannotGoOn(
                f"the model was lost again and again: {told}", failure.error, everywhere=True
            )

    def ended(
        self,
        playing: list[Episode],
        episode: Episode,
        result: EpisodeResult,
        error: BaseException | None,
    ) -> None:
        """Take the result of an episode, which is then no longer among those that are played."""
        with uninterrupted():
            playing.remove(episode)
            try:
                self.announcer.keep(result)
            finally:
                self.board.record(result, error)
        if result.outcome.scored:
            self._losses = 0
        self.board.judge()  # asks the caller's rules, which may raise or take long
        self.announcer.episode_end(result)

    def failed(self, playing: list[Episode], episode: Episode, failure: EpisodeFailed) -> None:
        """Take the failure of an episode: it is tried again, or that is its result.

        Raises:
            Halted: it failed because the run ends.
            Enough: it failed because the time of the run is up.
        """
        self.check_end(failure)
        self.announcer.error(failure.error)
        if episode.plan.attempt <= self._retries:
            playing.remove(episode)
            self.board.give_back(replace(episode.plan, attempt=episode.plan.attempt + 1))
            return
        result = episode.failed(failure.outcome, failure.error)
        self.ended(playing, episode, result, failure.error)

    def hung(self, playing: list[Episode], error: CallTimeout) -> None:
        """Take it that a call beside the environment took too long, while these were played.

        Raises:
            CannotGoOn: it was the model, which is of no use any more.
        """
        if self.predictor.is_stuck:
            for episode in list(playing):
                self.ended(playing, episode, episode.failed(Outcome.TIMEOUT, error), error)
            raise CannotGoOn(f"the model hangs: {error}", error, everywhere=True)

    def check_end(self, failure: EpisodeFailed) -> None:
        """Do nothing where a failure is one.

        Raises:
            Halted: the run ends, and that is why a call failed.
            Enough: the time of the run is up, and that is why a call did not return.
        """
        if self.board.halted:
            raise Halted
        if failure.outcome is Outcome.TIMEOUT and monotonic() >= self._over_at:
            raise self._too_late()

    def _too_late(self) -> Enough:
        return Enough(f"run_timeout_seconds={self._run_seconds:g} are over")

    def obey(self) -> float:
        """Do what somebody who watches has asked; return how many seconds were paused.

        Raises:
            Enough: it was the end of the run.
        """
        control = self.control
        if control is None:
            return 0.0
        paused = control.wait()
        self.check_wishes()
        return paused

    def check_wishes(self) -> None:
        """Do nothing unless somebody who watches has asked for the end, and something is left.

        Raises:
            Enough: that is so.
        """
        control = self.control
        if control is not None and control.quit_requested and not self.board.is_done:
            raise Enough("somebody who watched ended it")
