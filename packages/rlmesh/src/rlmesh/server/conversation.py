"""One client's session: requests in, answers out; it knows no transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rlcore import EnvironmentException, InvalidObservationError, InvalidValueError
from rlcore.log import logger

from rlmesh.codec import NUMPY, Codec, compile_codec
from rlmesh.protocol.editions import EDITION, runs
from rlmesh.protocol.episodes import Episode, EpisodeLedger
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault, invalid_action, refusal
from rlmesh.protocol.messages import (
    Answer,
    Closed,
    CompletedEpisode,
    Configured,
    Leaves,
    Refused,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.protocol.outcome import Given, checked_outcome, checked_reset
from rlmesh.server.frames import png_of

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments

log = logger("rlmesh", "server")
now = time.perf_counter_ns
NS_PER_MS = 1_000_000
THE_LANE: tuple[list[int], ...] = ([], [0])
MASKS = (b"\0", b"\1")


class Failed(Exception):
    """A request that ends in a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Codecs:
    """The codecs of a contract, compiled once for all sessions."""

    def __init__(self, environments: Environments) -> None:
        contract = environments.contract
        self.action: Codec = compile_codec(contract.action_space, backend=NUMPY, strict_nan=True)
        self.observation: Codec = compile_codec(contract.observation_space, backend=NUMPY)


class Conversation:
    """Answers the requests of one session, in its thread."""

    def __init__(
        self,
        environments: Environments,
        codecs: Codecs,
        *,
        on_close: Callable[[Conversation], None],
    ) -> None:
        environments.admit()
        self._on_close = on_close
        self.busy = False
        self.last_request = time.monotonic()
        self._environments = environments
        self._decode = codecs.action.decode
        self._encode = codecs.observation.encode
        self._env: Any = None  # Any: whatever has reset and step
        self._ledger = EpisodeLedger()
        self._was_reset = False
        self._closed = False
        self._told: set[str] = set()

    def answer(self, request: Request) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether the session is over after it."""
        self.busy = True
        timing = Timing(now())
        over = False
        try:
            try:
                answer = self._answer(request, timing)
            except Failed as failure:
                answer = self._failed(failure.fault, timing)
                over = not failure.fault.recoverable and not request.lanes
            if over or request.kind == "close":
                over = True
                # Before the reply: whoever reads it may come back for the place at once.
                self.close()
            timing.total = now() - timing.total
            return answer, over
        finally:
            self.last_request = time.monotonic()
            self.busy = False

    def too_large(self, operation: str, size: int, limit: int) -> Refused:
        """Return what is answered where an answer exceeds what a message may hold."""
        message = f"{operation} failed: its reply has {size} bytes, the limit is {limit}"
        refused = self._failed(Fault(FaultCode.INTERNAL, message, recoverable=False), Timing())
        self.close()
        return refused

    def note_simplified(self, keys: Sequence[str]) -> None:
        """Warn, once for each, of info values that could not travel as they are."""
        new = sorted(set(keys) - self._told)
        if new:
            self._told.update(new)
            log.warning("info values that cannot travel as they are were simplified: %s", new)

    def close(self) -> None:
        """Give the environment back; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        env, self._env = self._env, None
        try:
            self._environments.give_back(env)
        except EnvironmentException:
            log.exception("an environment could not be closed at the end of its session")
        finally:
            self._on_close(self)

    def _answer(self, request: Request, timing: Timing) -> Answer:
        kind = request.kind
        if kind == "step":
            return self._step(request, timing)
        if kind == "reset":
            return self._reset(request, timing)
        if kind == "render":
            return self._render(request, timing)
        if kind == "close":
            return Closed(self._ledger.close(time.time_ns()), timing)
        if kind == "configure":
            return self._configure(request, timing)
        raise Failed(refusal(FaultCode.UNSUPPORTED, "the request asks for nothing that is known"))

    def _configure(self, request: Request, timing: Timing) -> Configured:
        if not runs(request.edition):
            message = f"this server runs {EDITION!r}, not the edition {request.edition!r}"
            raise Failed(Fault(FaultCode.INVALID_ACTION, message, recoverable=False))
        return Configured(timing)

    def _reset(self, request: Request, timing: Timing) -> ResetAnswer:
        self._check_lane(request)
        seed = request.seeds[0] if request.seeds else None
        arguments: dict[str, object] = {}
        if seed is not None:
            arguments["seed"] = seed
        if request.options is not None:
            arguments["options"] = request.options
        env = self._environment()
        called = now()
        try:
            answer = env.reset(**arguments)
        except BaseException as error:
            raise Failed(environment_fault("reset", error)) from error
        timing.user = now() - called
        self._in_time(request, "env.reset", timing.user)
        self._was_reset = True
        self._ledger.begin(_first(request.episode_ids), seed, time.time_ns())
        observation, info = checked_reset(answer)
        return ResetAnswer(self._encoded("reset", observation), info, timing)

    def _step(self, request: Request, timing: Timing) -> StepAnswer:
        if request.lanes:
            self._check_lane(request)
        if not self._was_reset:
            raise Failed(refusal(FaultCode.NOT_READY, "step before the first reset"))
        action = self._action(request)
        called = now()
        try:
            answer = self._env.step(action)
        except BaseException as error:
            raise Failed(environment_fault("step", error)) from error
        timing.user = now() - called
        if request.timeout_ms:
            self._in_time(request, "env.step", timing.user)
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

    def _render(self, request: Request, timing: Timing) -> RenderAnswer:
        self._check_lane(request)
        env = self._environment()
        called = now()
        try:
            frame = env.render()
        except BaseException as error:
            raise Failed(environment_fault("render", error)) from error
        timing.user = now() - called
        self._in_time(request, "env.render", timing.user)
        return RenderAnswer(png_of(frame), timing)

    def _environment(self) -> Any:  # Any: whatever has reset and step
        if self._env is None:
            try:
                self._env = self._environments.take()
            except BaseException as error:
                raise Failed(environment_fault("make", error)) from error
        return self._env

    def _action(self, request: Request) -> object:
        if request.action is None:
            raise Failed(refusal(FaultCode.INVALID_ACTION, "the step has no action"))
        try:
            return self._decode(request.action)
        except InvalidValueError as error:
            raise Failed(invalid_action(error)) from error

    def _encoded(self, operation: str, observation: object) -> Leaves:
        try:
            return self._encode(observation)
        except InvalidValueError as error:
            told = InvalidObservationError(error.message, path=error.path)
            raise Failed(environment_fault(operation, told)) from error

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
        message = f"lanes {lanes} were asked for; this server has lane 0 only"
        raise Failed(refusal(FaultCode.INVALID_ACTION, message))

    def _in_time(self, request: Request, what: str, taken_ns: int) -> None:
        if request.timeout_ms and taken_ns > request.timeout_ms * NS_PER_MS:
            message = f"{what} took longer than {request.timeout_ms} ms; its result was dropped"
            raise Failed(refusal(FaultCode.TIMEOUT, message))

    def _failed(self, fault: Fault, timing: Timing) -> Refused:
        interrupted: list[Episode] = []
        if not fault.recoverable:
            self._was_reset = False
            interrupted = self._ledger.close(time.time_ns())
        return Refused(fault, timing, interrupted)


def _first(episode_ids: Sequence[str]) -> str:
    return episode_ids[0] if episode_ids else ""
