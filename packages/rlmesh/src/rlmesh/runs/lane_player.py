"""Plays episodes on an environment that steps many lanes at once."""

import re
from collections import deque
from dataclasses import dataclass
from math import inf, isfinite
from time import perf_counter
from typing import Any, Final, cast

import numpy as np
from rlcore import (
    CallTimeout,
    EnvironmentException,
    InvalidActionError,
    RLMeshException,
    TransportError,
    UnsupportedError,
)

from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.policy import PolicyEpisode
from rlmesh.models.seeds import TRIAL_INDEX_OPTION
from rlmesh.runs.budget import Plan
from rlmesh.runs.episode import Episode
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.lane_values import LaneValues, listed
from rlmesh.runs.local_lanes import RESET_MASK
from rlmesh.runs.match import Halted, Match
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.seat import Seat
from rlmesh.runs.signals import EpisodeFailed, failed, why_no_score
from rlmesh.runs.telemetry import SETTLE_EVERY, Telemetry
from rlmesh.runs.times import Times
from rlmesh.specs import AutoresetMode, EnvContract

# Any, in this room: batched observations and actions, and what environments say.

_BLAMED: Final = re.compile(r"\b(?:step|reset) of lane (\d+)\b")


@dataclass(frozen=True, slots=True)
class _Given:
    """What a step gave, an element for each lane."""

    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    info: dict[str, Any]

    def ends(self, lane: int) -> bool:
        """Whether it ended the episode of a lane."""
        return self.terminated[lane] or self.truncated[lane]


class LanePlayer:
    """Takes episodes from a match and plays as many of them at once as there are lanes.

    A lane whose episode is over is reset with the seed of the next one, by gymnasium's
    `reset_mask`, whatever the environment would do by itself at the end of an episode. Where it
    takes no mask, lanes wait until all are over, and then all are reset with seeds. One that takes
    no seed for each lane is started with the first seed alone, and its episodes have none. What an
    environment does in lanes that nobody plays in counts for nothing.

    When a call for all lanes fails, it may not be known whose fault that is. Then each of their
    episodes is played again, by itself, so that none is charged with another's failure.

    Args:
        match: what is played, for whom, and under which rules.
        seat: the environment.
        place: the number of its first lane among the places of the run.
        framework: whose values its observations are.

    Attributes:
        playing: the episodes that have no result yet.
        telemetry: what was measured here.
        advisories: what limits the record of what was played here.
    """

    def __init__(self, match: Match, seat: Seat, place: int, framework: FrameworkName) -> None:
        self.seat = seat
        self.playing: list[Episode] = []
        self.telemetry = Telemetry()
        self.advisories: list[str] = []
        self._match = match
        self._first = place
        contract = cast("EnvContract", seat.target.env.env_contract)
        self._values = LaneValues(contract, framework)
        self._called = contract.id
        self._count = contract.num_envs
        self._has_to_be_reset = contract.autoreset_mode is AutoresetMode.DISABLED
        self._measured = 0
        self._masks = True
        self._lane_seeds = True
        self._was_reset = False
        self._suspects: deque[Plan] = deque()
        self._alone = False
        self._over: set[int] = set()
        self._observed: Any = None
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
        try:
            while True:
                try:
                    if not self._fill():
                        return
                    self._round()
                except EpisodeFailed as failure:
                    self._fail(failure)
        except Halted as error:
            self._match.predictor.end_after(error, self.playing)
            return
        except CallTimeout as error:
            self._match.hung(self.playing, error)
            raise
        except BaseException as error:
            self._match.predictor.end_after(error, self.playing)
            raise

    def _fill(self) -> bool:
        """Start episodes in lanes that are free; tell whether any is played."""
        if not self.playing:
            tells_trials_apart = self._masks or not self.seat.takes_trial
            self._alone = bool(self._suspects) or not tells_trials_apart
        elif self._alone or not self._masks:
            return True
        fresh = self._taken()
        # Options are for all lanes of a reset, and each episode has its own trial.
        groups = [[episode] for episode in fresh] if self.seat.takes_trial else [fresh]
        while fresh and groups and self._start(groups[0]):
            del groups[0]
        for episode in reversed([episode for group in groups for episode in group]):
            self.playing.remove(episode)
            self._match.board.give_back(episode.plan)
        if self._over and self._masks and self._has_to_be_reset and self.playing:
            self._reset(dict.fromkeys(self._over), whole=False)
        return bool(self.playing)

    def _taken(self) -> list[Episode]:
        match = self._match
        fresh: list[Episode] = []
        busy = {episode.place for episode in self.playing}
        for place in range(self._first, self._first + self._count):
            if place in busy:
                continue
            if self._suspects:
                plan: Plan | None = self._suspects.popleft()
            else:
                plan = match.board.take(wait=not busy and not fresh)
            if plan is None:
                break
            match.announcer.episode_start(plan)
            fresh.append(Episode(plan, place))
            self.playing.append(fresh[-1])
            if self._alone:
                break
        return fresh

    def _start(self, fresh: list[Episode]) -> bool:
        """Reset lanes for their episodes; False: this environment resets all lanes or none."""
        match = self._match
        whole = not any(episode.known is not None for episode in self.playing)
        until = match.until_now()
        if match.is_bounded:
            self.seat.until(until)
        try:
            self._reset({episode.place - self._first: episode.plan for episode in fresh}, whole)
        except UnsupportedError as error:
            if whole:
                raise failed(error) from error
            self._masks = False
            return False
        rows = self._values.rows(self._observed)
        for episode in fresh:
            episode.started = perf_counter()
            episode.is_seeded = self._lane_seeds
            plan = episode.plan
            episode.known = match.begin(plan, until)
            match.announcer.reset(plan, rows[episode.place - self._first], episode.place)
        return True

    def _reset(self, plans: dict[int, Plan | None], whole: bool) -> None:
        count = self._count
        given = [plan for plan in plans.values() if plan is not None]
        options: dict[str, Any] = {}
        seeds: list[int | None] | None = None
        if whole:
            # Lanes that nobody plays in get a seed too: not every server takes one for some only.
            seeds = [(plans.get(lane) or given[0]).seed for lane in range(count)]
        else:
            mask = np.zeros(count, np.bool_)
            mask[list(plans)] = True
            options[RESET_MASK] = mask
            if given:
                seeds = [
                    None if (plan := plans.get(lane)) is None else plan.seed
                    for lane in range(count)
                ]
        if self.seat.takes_trial and given:
            options[TRIAL_INDEX_OPTION] = given[0].trial
        before = perf_counter()
        try:
            self._observed = self._reset_with(seeds, options or None)
        except UnsupportedError:
            raise
        except RLMeshException as error:
            raise failed(error) from error
        self._was_reset = True
        self._times.reset((perf_counter() - before) * 1000)
        self._over -= set(range(count)) if whole else set(plans)

    def _reset_with(self, seeds: list[int | None] | None, options: dict[str, Any] | None) -> Any:
        reset = self.seat.reset
        if seeds is None or not self._lane_seeds:
            # It was started with a seed, and goes on with its own random numbers.
            return reset(seed=None, options=options)[0]
        try:
            return reset(seed=seeds, options=options)[0]
        except EnvironmentException:
            # Whether it takes seeds for lanes shows only when it is asked.
            if self._was_reset:
                raise
            try:
                observed, _ = reset(seed=seeds[0], options=options)
            except EnvironmentException:
                pass  # then it was not the seeds: what it said first is what is wrong
            else:
                self._lane_seeds = False
                self.advisories.append(
                    f"{self._called} takes one seed for all lanes: it was started with {seeds[0]}, "
                    "and its episodes have no seeds of their own"
                )
                return observed
            raise

    def _round(self) -> None:
        """Take a step in every lane."""
        match = self._match
        played = sorted(self.playing, key=lambda episode: episode.place)
        before = perf_counter()
        known = [cast("PolicyEpisode", episode.known) for episode in played]
        lanes = [episode.place - self._first for episode in played]
        actions = self._actions(known, lanes)
        predicted = perf_counter()
        try:
            following, rewards, terminated, truncated, info = self.seat.step(actions)
        except InvalidActionError:
            raise
        except RLMeshException as error:
            raise failed(error) from error
        stepped = perf_counter()
        given = _Given(listed(rewards), listed(terminated), listed(truncated), info)
        self._require_scores(given.rewards, played)
        self._measure((predicted - before) * 1000, (stepped - predicted) * 1000, known)
        for episode in played:
            episode.predict_s += predicted - before
            episode.step_s += stepped - predicted
            self._count_step(episode, given, stepped)
        if match.announcer.wants_steps:
            times = (predicted - before) * 1000, (stepped - predicted) * 1000
            self._show(played, actions, following, given, times)
        if match.announcer.ticks:
            match.announcer.tick(sum(episode.steps for episode in played))
        self._observed = following
        self._over |= {lane for lane in range(self._count) if given.ends(lane)}
        self._finish([one for one in played if one.terminated or one.truncated], given)
        self._times.round((perf_counter() - before) * 1000)
        if match.control is not None and match.control.asked:
            # After the step was told, so that who watches sees where the run stands.
            paused = match.obey()
            for episode in self.playing:
                episode.started += paused
        if match.board.halted:
            raise Halted

    def _measure(self, predict_ms: float, step_ms: float, known: list[PolicyEpisode]) -> None:
        times = self._times
        self._measured += 1
        if not self._measured % SETTLE_EVERY:
            self.telemetry.settle()
        times.step(step_ms)
        handle = self.seat.target.handle
        if handle is not None:
            times.step_served(step_ms, handle.last_timing)
        asked = next((one for one in known if one.predicted_now), None)
        if asked is not None:
            times.predict(predict_ms)
            times.prediction_served(predict_ms, asked.timing)

    def _actions(self, known: list[PolicyEpisode], lanes: list[int]) -> Any:
        predict, are_all = self._match.predictor.predict_batch, len(lanes) == self._count
        batch = self._observed if are_all else self._values.some(self._observed, lanes)
        try:
            actions = predict(batch, known)
        except (TransportError, CallTimeout) as error:
            raise self._match.without_model(error) from error
        return actions if are_all else self._values.filled(actions, lanes)

    def _finish(self, ended: list[Episode], given: "_Given") -> None:
        match = self._match
        for episode in ended:
            self._end(episode)
            episode.info, _ = self._values.info(given.info, episode.place - self._first)
            match.ended(self.playing, episode, episode.finished(match.grader), None)
        if ended:
            self.seat.played()

    def _show(
        self,
        played: list[Episode],
        actions: Any,
        following: Any,
        given: "_Given",
        times: tuple[float, float],
    ) -> None:
        single = self._values.actions(actions, self._count)
        rows, following_rows = self._values.rows(self._observed), self._values.rows(following)
        for episode in played:
            lane = episode.place - self._first
            info, last = self._values.info(given.info, lane)
            self._match.announcer.step(
                StepEvent(
                    episode=episode.plan.index,
                    seed=episode.plan.seed,
                    step=episode.steps - 1,
                    observation=rows[lane],
                    action=single[lane],
                    reward=given.rewards[lane],
                    terminated=episode.terminated,
                    truncated=episode.truncated,
                    info=info,
                    predict_ms=times[0],
                    step_ms=times[1],
                    next_observation=following_rows[lane] if last is None else last,
                    lane=episode.place,
                    cut=episode.truncated and not given.truncated[lane],
                )
            )

    def _count_step(self, episode: Episode, given: "_Given", now: float) -> None:
        lane = episode.place - self._first
        reward, terminated = given.rewards[lane], given.terminated[lane]
        truncated = given.truncated[lane]
        limits, control = self._match.limits, self._match.control
        episode.steps += 1
        episode.reward += reward
        episode.terminated, episode.truncated = bool(terminated), bool(truncated)
        if terminated:
            return
        ends_at = inf if limits.seconds is None else episode.started + limits.seconds
        if episode.steps >= limits.steps or now >= ends_at:
            episode.truncated = True
        if control is not None and control.asked and control.take_skip(episode.place):
            episode.truncated = True

    def _require_scores(self, rewards: list[float], played: list[Episode]) -> None:
        for episode in played:
            lane = episode.place - self._first
            total = episode.reward + rewards[lane]
            if not isfinite(total):
                why = why_no_score(rewards[lane], total)
                error = EnvironmentException(
                    f"step of lane {lane} gave no score: {why}",
                    operation="step",
                )
                raise EpisodeFailed(Outcome.ENV_ERROR, error)

    def _fail(self, failure: EpisodeFailed) -> None:
        """Charge the episodes that a failure is known to be of; have the others played again."""
        match = self._match
        match.check_end(failure)
        played = list(self.playing)
        for episode in played:
            self._end(episode)
        charged = self._charged(played, failure)
        for episode in reversed(played):
            if episode not in charged:
                self.playing.remove(episode)
                if charged:
                    match.board.give_back(episode.plan)
                else:
                    # Not given back: nobody else may take them meanwhile, who would not know.
                    self._suspects.appendleft(episode.plan)
        for episode in charged:
            match.failed(self.playing, episode, failure)
        self._over.clear()
        if failure.of_model:
            match.ask_again(failure)
            return
        if not match.board.is_done and self.seat.recover(failure):
            match.predictor.bind(self.seat)

    def _charged(self, played: list[Episode], failure: EpisodeFailed) -> list[Episode]:
        if len(played) == 1 or failure.of_model or failure.outcome is Outcome.INFRA_ERROR:
            return played
        said = _BLAMED.search(str(failure.error))
        if said is None:
            return []
        return [episode for episode in played if episode.place - self._first == int(said[1])]

    def _end(self, episode: Episode) -> None:
        known, episode.known = episode.known, None
        self._match.predictor.end(known)
