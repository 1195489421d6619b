"""A stage with a list of environments, each of which is a lane."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rlcore import InvalidValueError

from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import environment_fault
from rlmesh.protocol.lane_infos import FINAL_INFO, FINAL_OBS, in_columns, in_rows
from rlmesh.protocol.lane_ledger import LaneLedger
from rlmesh.protocol.messages import (
    CompletedEpisode,
    Leaves,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.protocol.outcome import checked_outcome, checked_reset
from rlmesh.server.frames import drawn_of
from rlmesh.server.lane_requests import chosen_lanes, masked_lanes, one_lane, seeds_of
from rlmesh.server.stage import (
    Failed,
    Stage,
    bad_action,
    bad_observation,
    in_time,
    misused,
    not_ready,
    now,
)
from rlmesh.specs import AutoresetMode

if TYPE_CHECKING:
    from rlmesh.server.codecs import Codecs
    from rlmesh.server.environments import Environments
    from rlmesh.server.vectors import LaneSet

Env = Any  # whatever has reset and step
Info = Mapping[str, object]


class LaneStage(Stage):
    """Drives a list of environments, one after another, all in the session's thread.

    When one of them raises in a step of all, those before it have been stepped and those after it
    have not.

    A lane whose episode is over goes on being stepped where nothing resets it, as on published
    servers: their clients step all lanes until the last of them has ended. What its steps give then
    is the environment's to say.

    Args:
        environments: where they come from.
        codecs: of their contract.
        columns: whether infos are laid out as gymnasium has them, or as published servers do.
    """

    def __init__(self, environments: Environments, codecs: Codecs, *, columns: bool) -> None:
        super().__init__(environments)
        self._codecs = codecs
        self._count = codecs.num_envs
        self._all = range(self._count)
        self._columns = columns
        self._mode = codecs.autoreset_mode
        self._resets_itself = False
        self._ledger = LaneLedger(self._count)
        self._was_reset = [False] * self._count
        self._over = [False] * self._count
        self._last: list[object] = [None] * self._count

    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start episodes in all lanes, in those that are named, or in those of a mask."""
        asked = chosen_lanes(request, self._count)
        options, mask = masked_lanes(request, self._count)
        wanted = asked if mask is None else mask
        seeds = seeds_of(request, wanted, self._count)
        envs = self._lanes().envs
        if mask is not None and not all(self._was_reset[lane] for lane in set(asked) - set(wanted)):
            raise not_ready("a reset of some lanes before the first reset of all")
        infos: dict[int, Info] = {}
        started = now()
        for lane in wanted:
            arguments: dict[str, object] = {}
            if seeds[lane] is not None:
                arguments["seed"] = seeds[lane]
            if options is not None:
                arguments["options"] = dict(options)
            self._last[lane], infos[lane] = _reset(envs[lane], lane, arguments)
        timing.user = now() - started
        in_time(request, "env.reset", timing.user)
        clock = time.time_ns()
        ids = _ids(request, asked)
        for lane in wanted:
            self._was_reset[lane], self._over[lane] = True, False
            self._ledger.begin(lane, ids.get(lane, ""), seeds[lane], clock)
        leaves = self._encoded("reset", [self._last[lane] for lane in asked])
        told = [lane in infos for lane in asked]
        info = self._laid_out([infos.get(lane, {}) for lane in asked], told)
        return ResetAnswer(leaves, info, timing)

    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Step all lanes, or those that are named."""
        lanes = chosen_lanes(request, self._count) if request.lanes else self._all
        for lane in lanes:
            if not self._was_reset[lane]:
                raise not_ready(f"step of lane {lane} before its first reset")
        actions = self._actions(request, len(lanes))
        envs = self._lanes().envs
        count = len(lanes)
        observations: list[object] = []
        rewards: list[float] = []
        terminated, truncated = bytearray(count), bytearray(count)
        infos: list[Info] = []
        finals: list[tuple[int, Info]] = []
        rolled: list[int] = []
        over, last = self._over, self._last
        started = now()
        for place, lane in enumerate(lanes):
            if over[lane] and self._mode is not AutoresetMode.DISABLED and not self._resets_itself:
                # Next-step: the action is for an episode that is over, and is not looked at.
                last[lane], info = _reset(envs[lane], lane, {})
                over[lane] = False
                rolled.append(lane)
                rewards.append(0.0)
            else:
                try:
                    given = checked_outcome(envs[lane].step(actions[place]))
                except BaseException as error:
                    raise Failed(environment_fault(f"step of lane {lane}", error)) from error
                last[lane], info = given.observation, given.info
                rewards.append(given.reward)
                terminated[place], truncated[place] = given.terminated, given.truncated
                if given.terminated or given.truncated:
                    finals.append((place, info))
                    info = self._end_lane(envs[lane], lane, given.observation, info)
            observations.append(last[lane])
            infos.append(info)
        timing.user = now() - started
        if request.timeout_ms:
            in_time(request, "env.step", timing.user)
        flags = bytes(terminated), bytes(truncated)
        completed = self._account(request, lanes, rewards, flags, finals, rolled)
        told = [bool(a or b) for a, b in zip(terminated, truncated, strict=True)]
        return StepAnswer(
            self._encoded("step", observations),
            rewards,
            *flags,
            self._laid_out(infos, told),
            timing,
            request.lanes,
            completed,
        )

    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw one lane."""
        lane = one_lane(request, self._count)
        env = self._lanes().envs[lane]
        called = now()
        try:
            frame = env.render()
        except BaseException as error:
            raise Failed(environment_fault(f"render of lane {lane}", error)) from error
        timing.user = now() - called
        in_time(request, "env.render", timing.user)
        drawn, odd = drawn_of(frame)
        return RenderAnswer(drawn, timing, odd)

    def end(self, lanes: Sequence[int] = ()) -> list[Episode]:
        """End the episodes of these lanes, or of all."""
        ended = [lane for lane in lanes if 0 <= lane < self._count] if lanes else self._all
        for lane in ended:
            self._was_reset[lane] = self._over[lane] = False
        self._ledger.cut_off(ended, time.time_ns())
        return self._ledger.take_unreported()

    def _lanes(self) -> LaneSet:
        taken: LaneSet = self._take()
        self._resets_itself = taken.resets_itself
        return taken

    def _actions(self, request: Request, count: int) -> Sequence[Any]:
        if request.action is None:
            raise misused("the step has no action")
        codec = self._codecs.actions
        try:
            return codec.split(codec.decode(request.action, count), count)
        except InvalidValueError as error:
            raise bad_action(error) from error

    def _encoded(self, operation: str, observations: list[object]) -> Leaves:
        try:
            return self._codecs.observations.encode(observations, len(observations))
        except InvalidValueError as error:
            raise bad_observation(operation, error) from error

    def _end_lane(self, env: Env, lane: int, observation: object, info: Info) -> Info:
        """Note that a lane's episode is over, and reset it where that is to be done at once."""
        if self._mode is not AutoresetMode.SAME_STEP or self._resets_itself:
            self._over[lane] = True
            return info
        self._last[lane], fresh = _reset(env, lane, {})
        return {**fresh, FINAL_OBS: observation, FINAL_INFO: dict(info)}

    def _account(
        self,
        request: Request,
        lanes: Sequence[int],
        rewards: Sequence[float],
        flags: tuple[bytes, bytes],
        finals: Sequence[tuple[int, Info]],
        rolled: Sequence[int],
    ) -> Sequence[CompletedEpisode]:
        ledger, clock = self._ledger, time.time_ns() if finals or rolled else 0
        ids = request.episode_ids
        ledger.name(lanes, ids)
        if len(lanes) == self._count and lanes is self._all:
            ledger.count(np.asarray(rewards))
        else:
            for lane, reward in zip(lanes, rewards, strict=True):
                ledger.count_one(lane, reward)
        if rolled:
            named = _ids(request, lanes)
            for lane in rolled:
                ledger.begin(lane, named.get(lane, ""), None, clock)
        if not (finals or ledger.has_unreported):
            return ()
        completed = [CompletedEpisode(episode) for episode in ledger.take_unreported()]
        for place, info in finals:
            terminated, truncated = bool(flags[0][place]), bool(flags[1][place])
            episode = ledger.finish(
                lanes[place], terminated=terminated, truncated=truncated, now_ns=clock
            )
            if episode is not None:
                completed.append(CompletedEpisode(episode, info))
            if self._mode is AutoresetMode.SAME_STEP:
                ledger.begin(lanes[place], None, None, clock)
        return completed

    def _laid_out(self, infos: Sequence[Info], told: Sequence[bool]) -> Info:
        if self._columns and len(infos) > 1:
            return in_columns(infos)
        return in_rows(infos, told)


def _reset(env: Env, lane: int, arguments: Mapping[str, object]) -> tuple[object, Info]:
    try:
        return checked_reset(env.reset(**arguments))
    except BaseException as error:
        raise Failed(environment_fault(f"reset of lane {lane}", error)) from error


def _ids(request: Request, lanes: Sequence[int]) -> dict[int, str]:
    return dict(zip(lanes, request.episode_ids, strict=False))
