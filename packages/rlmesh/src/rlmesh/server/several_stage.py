"""A stage with several environments of one factory, each with episodes of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlcore import EnvironmentException, InvalidValueError
from rlcore.log import logger

from rlmesh.protocol.episodes import Episode, EpisodeLedger
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault, refusal
from rlmesh.protocol.messages import (
    CompletedEpisode,
    Leaves,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.protocol.outcome import Given, checked_outcome, checked_reset
from rlmesh.protocol.several import in_one
from rlmesh.server.frames import drawn_of
from rlmesh.server.lane_requests import chosen_lanes, one_lane
from rlmesh.server.stage import (
    NS_PER_MS,
    Failed,
    Stage,
    bad_action,
    bad_observation,
    in_time,
    misused,
    not_ready,
    now,
)
from rlmesh.server.validation import refused_observation

if TYPE_CHECKING:
    from rlmesh.server.codecs import Codecs
    from rlmesh.server.environments import Environments

log = logger("rlmesh", "server")

Env = Any  # whatever has reset and step
Info = Mapping[str, object]


def makes_several(environments: Environments) -> bool:
    """Tell whether a session can have several of them.

    Where each is to have a process of its own, a session has one: what ends a process would end the
    episodes of the others in it.
    """
    return environments.private and environments.sort == "one" and not environments.apart


class _Seat:
    """One environment, made for its first reset, and its episodes."""

    __slots__ = ("env", "lane", "ledger", "runs")

    def __init__(self, lane: int) -> None:
        self.lane = lane
        self.env: Env = None
        self.runs = False
        self.ledger = EpisodeLedger()


class SeveralStage(Stage):
    """Drives several environments, one after another, in the session's thread.

    They have nothing to do with one another: each is made when it is first reset, is reset by
    itself, and fails by itself; where one fails in a step, the others are stepped all the same, and
    the answer says which (`rlmesh.protocol.several`). One that has failed is closed, and made anew
    by its next reset.
    """

    def __init__(self, environments: Environments, codecs: Codecs) -> None:
        super().__init__(environments)
        self._codecs = codecs
        self._seats = [_Seat(lane) for lane in range(codecs.num_envs)]
        self._all = range(codecs.num_envs)
        # Stands where a failure has none; it means nothing.
        self._some_observation: object = None

    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start an episode in one environment."""
        if len(request.lanes) != 1:
            raise misused("environments of a session are reset one by one")
        (lane,) = chosen_lanes(request, len(self._seats))
        seat = self._seats[lane]
        seed = request.seeds[0] if request.seeds else None
        arguments: dict[str, object] = {} if seed is None else {"seed": seed}
        if request.options is not None:
            arguments["options"] = request.options
        seat.runs = False
        try:
            if seat.env is None:
                seat.env = self._environments.take()
        except BaseException as error:
            raise Failed(environment_fault("make", error)) from error
        called = now()
        try:
            observation, info = checked_reset(seat.env.reset(**arguments))
        except BaseException as error:
            self._give_up(seat)
            raise Failed(environment_fault("reset", error)) from error
        timing.user = now() - called
        in_time(request, "env.reset", timing.user)
        try:
            leaves = self._codecs.observations.encode([observation], 1)
            self._require_in_range(leaves)
        except InvalidValueError as error:
            self._give_up(seat)
            raise bad_observation("reset", error) from error
        self._some_observation = observation
        seat.runs = True
        name = request.episode_ids[0] if request.episode_ids else ""
        seat.ledger.begin(name, seed, time.time_ns(), lane)
        return ResetAnswer(leaves, in_one([info]), timing)

    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Step all environments, or those that are named."""
        lanes = chosen_lanes(request, len(self._seats)) if request.lanes else self._all
        actions = self._actions(request, len(lanes))
        if self._some_observation is None:
            raise not_ready("a step before the first reset")
        seats = [self._seats[lane] for lane in lanes]
        slowest = request.timeout_ms * NS_PER_MS
        observations: list[object] = []
        rewards: list[float] = []
        told: list[Info | Fault] = []
        terminated, truncated = bytearray(len(seats)), bytearray(len(seats))
        completed: list[CompletedEpisode] = []
        started = before = now()
        for place, seat in enumerate(seats):
            given = self._stepped(seat, actions[place])
            if slowest:
                after = now()
                if after - before > slowest:
                    given = _too_slow(request)
                before = after
            if isinstance(given, Fault):
                observations.append(self._some_observation)
                rewards.append(0.0)
                told.append(given)
                continue
            observations.append(given.observation)
            rewards.append(given.reward)
            told.append(given.info)
            terminated[place], truncated[place] = given.terminated, given.truncated
            if given.terminated or given.truncated or seat.ledger.has_unreported:
                completed += _completed(seat.ledger, given)
        timing.user = now() - started
        leaves = self._encoded(seats, observations, told)
        flags = bytes(terminated), bytes(truncated)
        info = in_one(told) if any(told) else {}
        return StepAnswer(leaves, rewards, *flags, info, timing, request.lanes, completed)

    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw one environment."""
        lane = one_lane(request, len(self._seats))
        env = self._seats[lane].env
        if env is None:
            raise misused(f"environment {lane} is rendered before its first reset")
        called = now()
        try:
            frame = env.render()
        except BaseException as error:
            raise Failed(environment_fault("render", error)) from error
        timing.user = now() - called
        in_time(request, "env.render", timing.user)
        drawn, odd = drawn_of(frame)
        return RenderAnswer(drawn, timing, odd)

    def end(self, lanes: Sequence[int] = ()) -> list[Episode]:
        """End the episodes of these environments, or of all."""
        ended = [lane for lane in lanes if 0 <= lane < len(self._seats)] if lanes else self._all
        episodes: list[Episode] = []
        for lane in ended:
            self._seats[lane].runs = False
            episodes += self._seats[lane].ledger.close(time.time_ns())
        return episodes

    def leave(self) -> None:
        """Close all environments.

        Raises:
            EnvironmentException: one could not be closed.
        """
        failure: EnvironmentException | None = None
        for seat in self._seats:
            env, seat.env, seat.runs = seat.env, None, False
            try:
                self._environments.give_back(env)
            except EnvironmentException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _stepped(self, seat: _Seat, action: Any) -> Given | Fault:
        if not seat.runs:
            return not_ready(f"step of environment {seat.lane} before its reset").fault
        try:
            given = checked_outcome(seat.env.step(action))
        except BaseException as error:
            self._give_up(seat)
            return environment_fault("step", error)
        episode = seat.ledger.running
        if episode is not None:
            episode.steps += 1
            episode.reward += given.reward
        return given

    def _give_up(self, seat: _Seat) -> None:
        """Close an environment that has failed; the news is why, not how that goes."""
        env, seat.env, seat.runs = seat.env, None, False
        try:
            self._environments.give_back(env)
        except EnvironmentException:
            log.exception("an environment that had failed could not be closed")

    def _actions(self, request: Request, count: int) -> Sequence[Any]:
        if request.action is None:
            raise misused("the step has no action")
        codec = self._codecs.actions
        try:
            return codec.split(codec.decode(request.action, count), count)
        except InvalidValueError as error:
            raise bad_action(error) from error

    def _require_in_range(self, leaves: Leaves) -> None:
        """Do nothing for one observation that the server lets pass.

        Raises:
            InvalidObservationError: the server is strict, and it is out of range.
        """
        check = self._codecs.checks.each
        faults = () if check is None else check(leaves, 1)
        if faults:
            raise refused_observation(faults[0])

    def _encoded(
        self, seats: Sequence[_Seat], observations: list[object], told: list[Info | Fault]
    ) -> Leaves:
        """Return the observations; one that is none of the space is a failure of its own."""
        batch, encode = self._codecs.observations, self._codecs.observation.encode
        count, check = len(observations), self._codecs.checks.each
        if batch.fixed_sizes is None:
            try:
                leaves = batch.encode(observations, count)
                if check is None or not check(leaves, count):
                    return leaves
            except InvalidValueError:
                pass  # which of them it is, shows below
        each: list[Leaves] = []
        for place, observation in enumerate(observations):
            try:
                encoded = encode(observation)
                if check is not None:
                    self._require_in_range(encoded)
                each.append(encoded)
            except InvalidValueError as error:
                self._give_up(seats[place])
                told[place] = bad_observation("step", error).fault
                observations[place] = self._some_observation
                each.append(encode(self._some_observation))
        if batch.fixed_sizes is None:
            return batch.encode(observations, count)
        # Encodings of one length, side by side, are the encoding of all; a few are soon joined.
        return [b"".join(leaf) for leaf in zip(*each, strict=True)]


def _completed(ledger: EpisodeLedger, given: Given) -> list[CompletedEpisode]:
    episode = ledger.running
    completed = [CompletedEpisode(cut_off) for cut_off in ledger.take_unreported()]
    if episode is not None and (given.terminated or given.truncated):
        ledger.end(
            episode,
            terminated=given.terminated,
            truncated=given.truncated,
            now_ns=time.time_ns(),
        )
        completed.append(CompletedEpisode(episode, given.info))
    return completed


def _too_slow(request: Request) -> Fault:
    message = f"env.step took longer than {request.timeout_ms} ms; its result was dropped"
    return refusal(FaultCode.TIMEOUT, message)
