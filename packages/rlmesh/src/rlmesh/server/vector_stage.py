"""A stage with one environment that steps many lanes at once, such as gymnasium's vector ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray
from rlcore import InvalidValueError

from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault, refusal
from rlmesh.protocol.lane_infos import FINAL_INFO, lane_of
from rlmesh.protocol.lane_ledger import LaneLedger
from rlmesh.protocol.lane_outcome import GivenLanes, checked_lanes
from rlmesh.protocol.messages import (
    CompletedEpisode,
    Leaves,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.protocol.outcome import checked_reset
from rlmesh.server.frames import drawn_of
from rlmesh.server.lane_requests import (
    RESET_MASK,
    chosen_lanes,
    masked_lanes,
    one_lane,
    seeds_of,
)
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
from rlmesh.server.vectors import resets_by_mask, says_it_is_disabled
from rlmesh.specs import AutoresetMode

if TYPE_CHECKING:
    from rlmesh.server.codecs import Codecs
    from rlmesh.server.environments import Environments


SET: Final = b"\1"


class VectorStage(Stage):
    """Drives an environment of many lanes: all of them in each step."""

    def __init__(self, environments: Environments, codecs: Codecs) -> None:
        super().__init__(environments)
        self._codecs = codecs
        self._count = codecs.num_envs
        self._mode = codecs.autoreset_mode
        self._ledger = LaneLedger(self._count)
        self._was_reset = False
        self._over: NDArray[np.bool_] = np.zeros(self._count, np.bool_)
        self._any_over = False
        self._refuses_finished = False
        self._frames: object = None

    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start episodes in all lanes, or in some where the environment can do that."""
        asked = chosen_lanes(request, self._count)
        options, mask = masked_lanes(request, self._count)
        wanted = asked if mask is None else mask
        partial = len(wanted) < self._count
        seeds = seeds_of(request, wanted, self._count)
        env = self._take()
        self._refuses_finished = says_it_is_disabled(env)
        arguments = self._arguments(request, seeds, options)
        if partial:
            if not resets_by_mask(env):
                message = "this environment cannot reset some of its lanes only"
                raise Failed(refusal(FaultCode.UNSUPPORTED, message))
            if not self._was_reset:
                raise not_ready("a reset of some lanes before the first reset of all")
            flags = np.zeros(self._count, np.bool_)
            flags[list(wanted)] = True
            arguments["options"] = {**(options or {}), RESET_MASK: flags}
        called = now()
        try:
            answer = env.reset(**arguments)
        except BaseException as error:
            raise Failed(environment_fault("reset", error)) from error
        timing.user = now() - called
        in_time(request, "env.reset", timing.user)
        observation, info = checked_reset(answer)
        self._begin(wanted, dict(zip(asked, request.episode_ids, strict=False)), seeds)
        return ResetAnswer(self._rows("reset", observation, asked), info, timing)

    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Step all lanes."""
        if request.lanes and list(chosen_lanes(request, self._count)) != list(range(self._count)):
            message = "this environment steps all of its lanes together"
            raise Failed(refusal(FaultCode.UNSUPPORTED, message))
        if not self._was_reset:
            raise not_ready("step before the first reset")
        if self._any_over and self._refuses_finished:
            over = np.flatnonzero(self._over).tolist()
            raise not_ready(f"step of lanes {over} after their episodes; reset them ({RESET_MASK})")
        action = self._action(request)
        env = self._take()
        self._frames = None
        called = now()
        try:
            answer = env.step(action)
        except BaseException as error:
            raise Failed(environment_fault("step", error)) from error
        timing.user = now() - called
        if request.timeout_ms:
            in_time(request, "env.step", timing.user)
        try:
            given = checked_lanes(answer, self._count)
        except (TypeError, ValueError) as error:
            raise Failed(environment_fault("step", error)) from error
        terminated, truncated = given.terminated.tobytes(), given.truncated.tobytes()
        ends = SET in terminated or SET in truncated
        return StepAnswer(
            self._encoded("step", given.observation),
            given.rewards.tolist(),
            terminated,
            truncated,
            given.info,
            timing,
            request.lanes,
            self._account(request, given, ends=ends),
        )

    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw one lane; the environment draws all of them at once, once between two steps."""
        lane = one_lane(request, self._count)
        env = self._take()
        if getattr(env, "render_mode", None) is None:
            return RenderAnswer(None, timing)
        called = now()
        if self._frames is None:
            try:
                self._frames = env.render()
            except BaseException as error:
                raise Failed(environment_fault("render", error)) from error
        timing.user = now() - called
        in_time(request, "env.render", timing.user)
        frames = self._frames
        if frames is None:
            return RenderAnswer(None, timing)
        many = isinstance(frames, tuple | list | np.ndarray)
        drawings = cast("Sequence[object]", frames if many else ())
        if len(drawings) != self._count:
            odd = f"{type(frames).__name__} without a place for each lane"
            return RenderAnswer(None, timing, odd)
        drawn, odd = drawn_of(drawings[lane])
        return RenderAnswer(drawn, timing, odd)

    def end(self, lanes: Sequence[int] = ()) -> list[Episode]:
        """End all episodes."""
        self._was_reset = False
        return self._ledger.close(time.time_ns())

    def _arguments(
        self, request: Request, seeds: list[int | None], options: Mapping[str, Any] | None
    ) -> dict[str, object]:
        arguments: dict[str, object] = {}
        if len(request.seeds) == 1 and not request.lanes:
            # Any environment takes a number; a list is gymnasium's own habit.
            arguments["seed"] = request.seeds[0]
        elif request.seeds:
            arguments["seed"] = seeds
        if options is not None:
            arguments["options"] = dict(options)
        return arguments

    def _begin(
        self, lanes: Sequence[int], ids: Mapping[int, str], seeds: Sequence[int | None]
    ) -> None:
        clock = time.time_ns()
        self._was_reset = True
        self._frames = None
        for lane in lanes:
            self._ledger.begin(lane, ids.get(lane, ""), seeds[lane], clock)
        self._over = self._over.copy()
        self._over[list(lanes)] = False
        self._any_over = bool(self._over.any())

    def _action(self, request: Request) -> object:
        if request.action is None:
            raise misused("the step has no action")
        try:
            return self._codecs.actions.decode(request.action, self._count)
        except InvalidValueError as error:
            raise bad_action(error) from error

    def _encoded(self, operation: str, observation: object) -> Leaves:
        try:
            return self._codecs.observations.encode(observation, self._count)
        except InvalidValueError as error:
            raise bad_observation(operation, error) from error

    def _rows(self, operation: str, observation: object, lanes: Sequence[int]) -> Leaves:
        if len(lanes) == self._count and list(lanes) == list(range(self._count)):
            return self._encoded(operation, observation)
        codec = self._codecs.observations
        try:
            values = codec.split(observation, self._count)
            return codec.encode([values[lane] for lane in lanes], len(lanes))
        except InvalidValueError as error:
            raise bad_observation(operation, error) from error

    def _account(
        self, request: Request, given: GivenLanes, *, ends: bool
    ) -> Sequence[CompletedEpisode]:
        ledger, before = self._ledger, self._over
        ledger.name(range(self._count), request.episode_ids)
        ledger.count(given.rewards)
        if not (ends or self._any_over or ledger.has_unreported):
            return ()
        rolls = self._any_over and self._mode is AutoresetMode.NEXT_STEP
        over = self._over = given.terminated | given.truncated
        self._any_over = ends
        if rolls:
            self._roll(before, given, request.episode_ids)
        if not (self._any_over or ledger.has_unreported):
            return ()
        completed = [CompletedEpisode(episode) for episode in ledger.take_unreported()]
        clock = time.time_ns()
        for lane in np.flatnonzero(over).tolist():
            episode = ledger.finish(
                lane,
                terminated=bool(given.terminated[lane]),
                truncated=bool(given.truncated[lane]),
                now_ns=clock,
            )
            if episode is not None:
                completed.append(CompletedEpisode(episode, self._final_info(given.info, lane)))
            if self._mode is AutoresetMode.SAME_STEP:
                ledger.begin(lane, None, None, clock)
        if self._mode is AutoresetMode.SAME_STEP:
            self._any_over = False
        return completed

    def _roll(self, over: NDArray[np.bool_], given: GivenLanes, ids: Sequence[str]) -> None:
        """Start the next episodes of lanes that were over before this step."""
        wrong = over & ((given.rewards != 0.0) | given.terminated | given.truncated)
        if wrong.any():
            lane = int(np.flatnonzero(wrong)[0])
            message = (
                f"step failed: RuntimeError: the environment says that it resets a lane in the "
                f"step after its episode; in lane {lane} that step gave the reward "
                f"{given.rewards[lane]} or ended an episode"
            )
            raise Failed(Fault(FaultCode.INTERNAL, message, recoverable=False))
        clock = time.time_ns()
        for lane in np.flatnonzero(over).tolist():
            self._ledger.begin(lane, ids[lane] if lane < len(ids) else "", None, clock)

    def _final_info(self, info: Mapping[str, object], lane: int) -> dict[str, object]:
        final = info.get(FINAL_INFO) if self._mode is AutoresetMode.SAME_STEP else None
        own = cast("Mapping[str, object]", final) if isinstance(final, Mapping) else info
        return lane_of(own, lane, self._count)
