"""One client's session: requests in, replies out; it knows no transport."""

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
from rlmesh.protocol.outcome import checked_outcome, checked_reset
from rlmesh.server.frames import png_of
from rlmesh.transport.server_wire import (
    Request,
    StepAnswer,
    Timing,
    read_request,
    write_closed,
    write_configured,
    write_fault,
    write_render,
    write_reset,
    write_step,
)

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments

log = logger("rlmesh", "server")
now = time.perf_counter_ns
NS_PER_MS = 1_000_000
THE_LANE: tuple[list[int], ...] = ([], [0])


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
        message_limit: int,
        on_close: Callable[[Conversation], None],
    ) -> None:
        environments.admit()
        self._on_close = on_close
        self.busy = False
        self.last_request = time.monotonic()
        self._environments = environments
        self._decode = codecs.action.decode
        self._encode = codecs.observation.encode
        self._limit = message_limit
        self._env: Any = None  # Any: whatever has reset and step
        self._ledger = EpisodeLedger()
        self._was_reset = False
        self._closed = False
        self._told: set[str] = set()

    def answer(self, data: bytes) -> tuple[bytes, bool]:
        """Return the reply to a request, and whether the session is over after it.

        Raises:
            ProtocolException: the bytes are no request.
        """
        self.busy = True
        timing = Timing(now())
        try:
            request = read_request(data)
            try:
                reply, over = self._answer(request, timing)
            except Failed as failure:
                reply, over = self._failed(request, failure.fault, timing)
            if over:
                # Before the reply: whoever reads it may come back for the place at once.
                self.close()
            return reply, over
        finally:
            self.last_request = time.monotonic()
            self.busy = False

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

    def _answer(self, request: Request, timing: Timing) -> tuple[bytes, bool]:
        kind = request.kind
        if kind == "step":
            return self._step(request, timing), False
        if kind == "reset":
            return self._reset(request, timing), False
        if kind == "render":
            return self._render(request, timing), False
        if kind == "close":
            episodes = self._ledger.close(time.time_ns())
            return write_closed(request.request_id, episodes, _finished(timing)), True
        if kind == "configure":
            return self._configure(request, timing), False
        raise Failed(refusal(FaultCode.UNSUPPORTED, "the request asks for nothing that is known"))

    def _configure(self, request: Request, timing: Timing) -> bytes:
        if not runs(request.edition):
            message = f"this server runs {EDITION!r}, not the edition {request.edition!r}"
            raise Failed(Fault(FaultCode.INVALID_ACTION, message, recoverable=False))
        return write_configured(request.request_id, _finished(timing))

    def _reset(self, request: Request, timing: Timing) -> bytes:
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
        leaves = self._encoded("reset", observation, timing)
        reply, odd = write_reset(request.request_id, leaves, info, _finished(timing))
        return self._checked("reset", reply, odd)

    def _step(self, request: Request, timing: Timing) -> bytes:
        if request.lanes:
            self._check_lane(request)
        if not self._was_reset:
            raise Failed(refusal(FaultCode.NOT_READY, "step before the first reset"))
        action = self._action(request, timing)
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
        leaves = self._encoded("step", given.observation, timing)
        finished = self._account(given.reward, given.terminated, given.truncated)
        reply, odd = write_step(
            request.request_id,
            StepAnswer(
                leaves,
                given.reward,
                given.terminated,
                given.truncated,
                given.info,
                request.lanes,
                self._ledger.take_unreported(),
                finished,
            ),
            _finished(timing),
        )
        return self._checked("step", reply, odd)

    def _render(self, request: Request, timing: Timing) -> bytes:
        self._check_lane(request)
        env = self._environment()
        called = now()
        try:
            frame = env.render()
        except BaseException as error:
            raise Failed(environment_fault("render", error)) from error
        timing.user = now() - called
        self._in_time(request, "env.render", timing.user)
        started = now()
        png = png_of(frame)
        timing.encode = now() - started
        return self._checked("render", write_render(request.request_id, png, _finished(timing)), [])

    def _environment(self) -> Any:  # Any: whatever has reset and step
        if self._env is None:
            try:
                self._env = self._environments.take()
            except BaseException as error:
                raise Failed(environment_fault("make", error)) from error
        return self._env

    def _action(self, request: Request, timing: Timing) -> object:
        if request.action is None:
            raise Failed(refusal(FaultCode.INVALID_ACTION, "the step has no action"))
        started = now()
        try:
            action = self._decode(request.action)
        except InvalidValueError as error:
            raise Failed(invalid_action(error)) from error
        timing.decode = now() - started
        return action

    def _encoded(self, operation: str, observation: object, timing: Timing) -> Sequence[bytes]:
        started = now()
        try:
            leaves = self._encode(observation)
        except InvalidValueError as error:
            told = InvalidObservationError(error.message, path=error.path)
            raise Failed(environment_fault(operation, told)) from error
        timing.encode = now() - started
        return leaves

    def _account(self, reward: float, terminated: bool, truncated: bool) -> Episode | None:
        episode = self._ledger.running
        if episode is None:
            return None
        episode.steps += 1
        episode.reward += reward
        if not (terminated or truncated):
            return None
        self._ledger.end(episode, terminated=terminated, truncated=truncated, now_ns=time.time_ns())
        return episode

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

    def _checked(self, operation: str, reply: bytes, odd: Sequence[str]) -> bytes:
        if odd:
            self._tell_once(odd)
        if len(reply) > self._limit:
            message = (
                f"{operation} failed: its reply has {len(reply)} bytes, the limit is {self._limit}"
            )
            raise Failed(Fault(FaultCode.INTERNAL, message, recoverable=False))
        return reply

    def _tell_once(self, keys: Sequence[str]) -> None:
        new = sorted(set(keys) - self._told)
        if new:
            self._told.update(new)
            log.warning("info values that cannot travel as they are were simplified: %s", new)

    def _failed(self, request: Request, fault: Fault, timing: Timing) -> tuple[bytes, bool]:
        over = not fault.recoverable and not request.lanes
        interrupted: list[Episode] = []
        if not fault.recoverable:
            self._was_reset = False
            interrupted = self._ledger.close(time.time_ns())
        return write_fault(request.request_id, fault, interrupted, _finished(timing)), over


def _first(episode_ids: Sequence[str]) -> str:
    return episode_ids[0] if episode_ids else ""


def _finished(timing: Timing) -> Timing:
    timing.total = now() - timing.total
    return timing
