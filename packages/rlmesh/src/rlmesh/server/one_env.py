"""A stage with one environment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlcore import InvalidValueError

from rlmesh.protocol.episodes import Episode, EpisodeLedger
from rlmesh.protocol.faults import FaultCode, environment_fault, refusal
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
from rlmesh.server.frames import drawn_of
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

if TYPE_CHECKING:
    from rlmesh.server.codecs import Codecs
    from rlmesh.server.environments import Environments

THE_LANE: tuple[list[int], ...] = ([], [0])
MASKS = (b"\0", b"\1")


class OneEnv(Stage):
    """Drives one environment; it is lane 0."""

    def __init__(self, environments: Environments, codecs: Codecs) -> None:
        super().__init__(environments)
        self._decode = codecs.action.decode
        self._encode = codecs.observation.encode
        self._env: Any = None  # Any: whatever has reset and step
        self._ledger = EpisodeLedger()
        self._was_reset = False

    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start an episode."""
        self._check_lane(request)
        seed = request.seeds[0] if request.seeds else None
        arguments: dict[str, object] = {}
        if seed is not None:
            arguments["seed"] = seed
        if request.options is not None:
            arguments["options"] = request.options
        env = self._env = self._take()
        called = now()
        try:
            answer = env.reset(**arguments)
        except BaseException as error:
            raise Failed(environment_fault("reset", error)) from error
        timing.user = now() - called
        in_time(request, "env.reset", timing.user)
        self._was_reset = True
        episode_id = request.episode_ids[0] if request.episode_ids else ""
        self._ledger.begin(episode_id, seed, time.time_ns())
        observation, info = checked_reset(answer)
        return ResetAnswer(self._encoded("reset", observation), info, timing)

    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Take a step."""
        if request.lanes:
            self._check_lane(request)
        if not self._was_reset:
            raise not_ready("step before the first reset")
        if request.action is None:
            raise misused("the step has no action")
        try:
            action = self._decode(request.action)
        except InvalidValueError as error:
            raise bad_action(error) from error
        called = now()
        try:
            answer = self._env.step(action)
        except BaseException as error:
            raise Failed(environment_fault("step", error)) from error
        timing.user = now() - called
        if request.timeout_ms:
            in_time(request, "env.step", timing.user)
        try:
            given = checked_outcome(answer)
        except (TypeError, ValueError) as error:
            raise Failed(environment_fault("step", error)) from error
        return StepAnswer(
            self._encoded("step", given.observation),
            (given.reward,),
            MASKS[given.terminated],
            MASKS[given.truncated],
            given.info,
            timing,
            request.lanes,
            self._account(given),
        )

    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw the environment."""
        self._check_lane(request)
        env = self._env = self._take()
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
        """End the episode."""
        self._was_reset = False
        return self._ledger.close(time.time_ns())

    def _encoded(self, operation: str, observation: object) -> Leaves:
        try:
            return self._encode(observation)
        except InvalidValueError as error:
            raise bad_observation(operation, error) from error

    def _account(self, given: Given) -> Sequence[CompletedEpisode]:
        episode = self._ledger.running
        if episode is not None:
            episode.steps += 1
            episode.reward += given.reward
        if not (given.terminated or given.truncated or self._ledger.has_unreported):
            return ()
        completed = [CompletedEpisode(cut_off) for cut_off in self._ledger.take_unreported()]
        if episode is not None and (given.terminated or given.truncated):
            self._ledger.end(
                episode,
                terminated=given.terminated,
                truncated=given.truncated,
                now_ns=time.time_ns(),
            )
            completed.append(CompletedEpisode(episode, given.info))
        return completed

    def _check_lane(self, request: Request) -> None:
        lanes = list(request.lanes)
        if lanes in THE_LANE:
            return
        if request.kind == "render" and len(lanes) > 1:
            raise Failed(refusal(FaultCode.UNSUPPORTED, "one lane can be rendered at a time"))
        raise misused(f"lanes {lanes} were asked for; this server has lane 0 only")
