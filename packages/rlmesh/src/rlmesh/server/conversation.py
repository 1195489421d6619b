"""One client's session: requests in, answers out; it knows no transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, cast

from rlcore import EnvironmentException
from rlcore.log import logger

from rlmesh.codec.simplified import Simplified
from rlmesh.protocol.editions import EDITION, runs
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault, refusal
from rlmesh.protocol.handshake import RENDERINGS, TENSORS, VECTORS
from rlmesh.protocol.messages import (
    Answer,
    Closed,
    Configured,
    Refused,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.server.codecs import Codecs
from rlmesh.server.one_env import OneEnv
from rlmesh.server.several_stage import SeveralStage
from rlmesh.server.stage import Failed, Stage, now
from rlmesh.server.validation import Validation

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments
    from rlmesh.server.isolation import Isolated

log = logger("rlmesh", "server")
# Made once: a union is built anew each time it is written in an expression.
WITH_INFO = (StepAnswer, ResetAnswer)


class Conversation:
    """Answers the requests of one session, in its thread.

    Args:
        environments: where the session's environment comes from.
        codecs: of its contract.
        capabilities: what the client has announced.
        several: how many environments of its own the session has, each with its own episodes; 0:
            what the server serves, as one.
        on_close: called when the session is over.
    """

    def __init__(
        self,
        environments: Environments,
        codecs: Codecs,
        *,
        on_close: Callable[[Conversation], None],
        capabilities: Container[str] = (),
        several: int = 0,
    ) -> None:
        if several:
            codecs = codecs.of_several(several)
        self._on_close = on_close
        self.busy = False
        self.last_request = time.monotonic()
        self._stage = stage_of(environments, codecs, capabilities, several=several)
        self._tensors = TENSORS in capabilities
        self._renders = RENDERINGS in capabilities
        self._told_of_render = False
        validation = Validation(codecs.checks)
        self._step = validation.of_steps(self._stage.step)
        self._reset = validation.of_resets(self._stage.reset)
        self._closed = False
        self._simplified = Simplified("info values", log)

    def answer(self, request: Request) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether the session is over after it."""
        self.busy = True
        timing = Timing(now())
        over = False
        try:
            try:
                answer = self._answer(request, timing)
                if self._tensors and isinstance(answer, WITH_INFO):
                    answer.tensors = True
            except Failed as failure:
                answer = self._failed(failure.fault, timing, request.lanes)
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
        return self._instead(Fault(FaultCode.INTERNAL, message, recoverable=False))

    def unwritable(self, operation: str, error: Exception) -> Refused:
        """Return what is answered where writing an answer failed with this error."""
        return self._instead(environment_fault(f"writing the answer to {operation}", error))

    def note_simplified(self, keys: Sequence[str]) -> None:
        """Warn of info values that could not travel as they are."""
        self._simplified.note(keys)

    def give_up(self) -> None:
        """Hear, from another thread, that nobody waits any more for what is running."""
        self._stage.give_up()

    def close(self) -> None:
        """Give the environment back; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._stage.leave()
        except EnvironmentException:
            log.exception("an environment could not be closed at the end of its session")
        finally:
            self._on_close(self)

    def _instead(self, fault: Fault) -> Refused:
        refused = self._failed(fault, Timing(), ())
        self.close()
        return refused

    def _answer(self, request: Request, timing: Timing) -> Answer:
        kind = request.kind
        if kind == "step":
            return self._step(request, timing)
        if kind == "reset":
            return self._reset(request, timing)
        if kind == "render":
            return self._drawn(self._stage.render(request, timing))
        if kind == "close":
            return Closed(self._stage.end(), timing)
        if kind == "configure":
            return self._configure(request, timing)
        raise Failed(refusal(FaultCode.UNSUPPORTED, "the request asks for nothing that is known"))

    def _drawn(self, answer: RenderAnswer) -> RenderAnswer:
        if answer.drawn is not None and not isinstance(answer.drawn, bytes) and not self._renders:
            answer.odd = f"{type(answer.drawn).__name__}, which the client does not know"
            answer.drawn = None
        if answer.odd and not self._told_of_render:
            self._told_of_render = True
            log.warning("what render() gave cannot travel, and is None instead: %s", answer.odd)
        return answer

    def _configure(self, request: Request, timing: Timing) -> Configured:
        if not runs(request.edition):
            message = f"this server runs {EDITION!r}, not the edition {request.edition!r}"
            raise Failed(Fault(FaultCode.INVALID_ACTION, message, recoverable=False))
        return Configured(timing)

    def _failed(self, fault: Fault, timing: Timing, lanes: Sequence[int]) -> Refused:
        return Refused(fault, timing, () if fault.recoverable else self._stage.end(lanes))


def stage_of(
    environments: Environments, codecs: Codecs, capabilities: Container[str], *, several: int = 0
) -> Stage:
    """Return what drives a session's environments, for a client that has announced this."""
    if several:
        return SeveralStage(environments, codecs)
    # Most servers need none of these rooms, and start sooner without them.
    if environments.apart:
        from rlmesh.server.process_stage import ProcessStage

        return ProcessStage(cast("Isolated", environments), capabilities)
    match environments.sort:
        case "lanes":
            from rlmesh.server.lane_stage import LaneStage

            return LaneStage(environments, codecs, columns=VECTORS in capabilities)
        case "vector":
            from rlmesh.server.vector_stage import VectorStage

            return VectorStage(environments, codecs)
        case "one":
            return OneEnv(environments, codecs)
