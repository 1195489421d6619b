"""Plays episodes on one environment, one after another."""

import math
from time import perf_counter

from rlcore import (
    CallTimeout,
    EnvironmentException,
    InvalidActionError,
    RLMeshException,
    TransportError,
)

from rlmesh.models.seeds import TRIAL_INDEX_OPTION
from rlmesh.runs.budget import Plan
from rlmesh.runs.episode import Episode
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.match import Halted, Match
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.seat import Seat
from rlmesh.runs.signals import EpisodeFailed, failed, why_no_score
from rlmesh.runs.telemetry import SETTLE_EVERY, Telemetry
from rlmesh.runs.times import Times


class Player:
    """Takes episodes from a match and plays them on its seat.

    Args:
        match: what is played, for whom, and under which rules.
        seat: the environment.
        place: its number among the places of the run.

    Attributes:
        playing: the episodes that have no result yet.
        telemetry: what was measured here.
        advisories: what limits the record of what was played here.
    """

    def __init__(self, match: Match, seat: Seat, place: int) -> None:
        self.seat = seat
        self.playing: list[Episode] = []
        self.advisories: list[str] = []
        self.telemetry = Telemetry()
        self._match = match
        self._place = place
        self._times = Times(
            self.telemetry,
            env_is_remote=seat.target.is_remote,
            model_is_remote=match.predictor.is_remote,
        )

    def play(self) -> None:
        """Play until nothing is left.

        Raises:
            CannotGoOn: nothing can be played here any more.
            Enough: somebody who watches ended the run, or its time is up.
        """
        match = self._match
        try:
            while (plan := match.board.take()) is not None:
                self._play(plan)
                match.check_wishes()
        except Halted:
            return

    def _play(self, plan: Plan) -> None:
        match = self._match
        match.announcer.episode_start(plan)
        episode = Episode(plan, self._place)
        self.playing = [episode]
        failure: EpisodeFailed | None = None
        try:
            self._run(episode)
        except EpisodeFailed as error:
            failure = error
        except CallTimeout as error:
            match.hung(self.playing, error)
            raise
        except BaseException as error:
            match.predictor.end_after(error, [episode])
            raise
        known, episode.known = episode.known, None
        match.predictor.end(known)
        self.telemetry.settle()
        if failure is None:
            self.seat.played()
            match.ended(self.playing, episode, episode.finished(match.grader), None)
        else:
            match.failed(self.playing, episode, failure)
            if failure.of_model:
                match.ask_again(failure)
            elif not match.board.is_done and self.seat.recover(failure):
                match.predictor.bind(self.seat)

    def _run(self, episode: Episode) -> None:  # noqa: C901 - one loop, without calls in between
        match, seat, plan = self._match, self.seat, episode.plan
        announcer, control, board = match.announcer, match.control, match.board
        watched, ticks, place = announcer.wants_steps, announcer.ticks, self._place
        limits = match.limits
        most_steps = limits.steps
        ends_at = math.inf if limits.seconds is None else episode.started + limits.seconds
        until = match.until_now()
        if match.is_bounded:
            seat.until(until)
        observation = self._reset(plan, episode)
        known = episode.known = match.begin(plan, until)
        announcer.reset(plan, observation, place)
        predict, step, clock = match.predictor.predict, seat.step, perf_counter
        times = self._times
        add_prediction, add_step, add_round = times.predict, times.step, times.round
        handle = seat.target.handle
        steps, reward_sum, predict_s, step_s = 0, 0.0, 0.0, 0.0
        cut = False
        last = clock()
        try:
            while True:
                before = clock()
                try:
                    action = predict(observation, known)
                except (TransportError, CallTimeout) as error:
                    raise match.without_model(error) from error
                predicted = clock()
                try:
                    following, reward, terminated, truncated, info = step(action)
                except InvalidActionError:
                    raise
                except RLMeshException as error:
                    raise failed(error) from error
                stepped = clock()
                total = reward_sum + reward
                if not math.isfinite(total):
                    raise self._no_score(reward, total, plan, steps)
                steps += 1
                if not steps % SETTLE_EVERY:
                    self.telemetry.settle()
                reward_sum = total
                predict_s += predicted - before
                step_s += stepped - predicted
                add_step((stepped - predicted) * 1000)
                add_round((stepped - last) * 1000)
                if handle is not None:
                    times.step_served((stepped - predicted) * 1000, handle.last_timing)
                if known.predicted_now:
                    add_prediction((predicted - before) * 1000)
                    if known.timing is not None:
                        times.prediction_served((predicted - before) * 1000, known.timing)
                last = stepped
                if not terminated and (steps >= most_steps or stepped >= ends_at):
                    cut = not truncated
                    truncated = True
                skips = control is not None and control.asked and control.take_skip(place)
                if skips and not terminated:
                    cut = cut or not truncated
                    truncated = True
                if watched:
                    fresh = known.predicted_now
                    announcer.step(
                        StepEvent(
                            episode=plan.index,
                            seed=plan.seed,
                            step=steps - 1,
                            observation=observation,
                            action=action,
                            reward=reward,
                            terminated=terminated,
                            truncated=truncated,
                            info=info,
                            predict_ms=(predicted - before) * 1000 if fresh else 0.0,
                            step_ms=(stepped - predicted) * 1000,
                            next_observation=following,
                            lane=place,
                            cut=cut,
                        )
                    )
                if ticks:
                    announcer.tick(steps)
                if control is not None and control.asked:
                    # After the step was told, so that who watches sees where the run stands.
                    paused = control.wait() if terminated or truncated else match.obey()
                    ends_at += paused
                    last += paused
                if terminated or truncated:
                    episode.terminated, episode.truncated = terminated, truncated
                    episode.info = info
                    return
                if board.halted:
                    raise Halted
                observation = following
        finally:
            episode.steps, episode.reward = steps, reward_sum
            episode.predict_s, episode.step_s = predict_s, step_s

    def _reset(self, plan: Plan, episode: Episode) -> object:
        before = perf_counter()
        try:
            if self.seat.takes_trial:
                options = {TRIAL_INDEX_OPTION: plan.trial}
                observation, episode.info = self.seat.reset(seed=plan.seed, options=options)
            else:
                observation, episode.info = self.seat.reset(seed=plan.seed)
        except RLMeshException as error:
            raise failed(error) from error
        self._times.reset((perf_counter() - before) * 1000)
        return observation

    def _no_score(self, reward: float, total: float, plan: Plan, steps: int) -> EpisodeFailed:
        identity = self.seat.identity
        name = None if identity is None else identity.name
        whose = "" if name is None else f" of {name!r}"
        where = f"(seed {plan.seed}, step {steps + 1})"
        error = EnvironmentException(
            f"step{whose} {where} gave no score: {why_no_score(reward, total)}",
            operation="step",
            environment=name,
            seed=plan.seed,
            step=steps + 1,
        )
        return EpisodeFailed(Outcome.ENV_ERROR, error)
