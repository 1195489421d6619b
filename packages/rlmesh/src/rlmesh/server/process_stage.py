"""A stage whose environments live in a process of their own."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlcore.log import logger

from rlmesh.codec.simplified import Simplified
from rlmesh.protocol.episodes import Episode, EpisodeLedger
from rlmesh.protocol.faults import Fault, FaultCode, environment_fault
from rlmesh.protocol.messages import (
    Answer,
    RenderAnswer,
    Request,
    ResetAnswer,
    StepAnswer,
    Timing,
)
from rlmesh.server.isolation import Crashed, EnvProcess
from rlmesh.server.relay import Told, unpack
from rlmesh.server.stage import Failed, Stage, not_ready

if TYPE_CHECKING:
    from rlmesh.server.environments import Environments

log = logger("rlmesh", "server")


class ProcessStage(Stage):
    """Has every request answered by the stage in the environment's process.

    When that process ends by itself, the request is a fault of the code CRASHED; the next reset
    gets a fresh process.
    """

    def __init__(self, environments: Environments, capabilities: Container[str]) -> None:
        super().__init__(environments)
        self._capabilities = capabilities
        self._given_up = False
        self._simplified = Simplified("info values", log)
        # What a crash would leave unsaid; with several lanes, only their process knows.
        self._ledger = EpisodeLedger() if environments.sort == "one" else None

    def reset(self, request: Request, timing: Timing) -> ResetAnswer:
        """Start episodes, in a fresh process if there is none."""
        answer = cast("ResetAnswer", self._asked(self._process(), request, timing))
        if self._ledger is not None:
            name = request.episode_ids[0] if request.episode_ids else ""
            seed = request.seeds[0] if request.seeds else None
            self._ledger.begin(name, seed, time.time_ns())
        return answer

    def step(self, request: Request, timing: Timing) -> StepAnswer:
        """Take a step."""
        process: EnvProcess | None = self._taken
        if process is None:
            raise not_ready("step before the first reset")
        answer = cast("StepAnswer", self._asked(process, request, timing))
        episode = None if self._ledger is None else self._ledger.running
        if episode is not None:
            episode.steps += 1
            episode.reward += answer.rewards[0]
            if answer.completed:
                self._ledger = EpisodeLedger()
        return answer

    def render(self, request: Request, timing: Timing) -> RenderAnswer:
        """Draw one lane."""
        return cast("RenderAnswer", self._asked(self._process(), request, timing))

    def end(self, lanes: Sequence[int] = ()) -> list[Episode]:
        """End the episodes of these lanes, or of all; return what nobody was told of."""
        process: EnvProcess | None = self._taken
        if process is None:
            return [] if self._ledger is None else self._ledger.close(time.time_ns())
        try:
            note = process.end_episodes(tuple(lanes))
        except Crashed as error:
            log.warning("an environment's process ended by itself: %s", error)
            self._taken = None
            return []
        return cast("list[Episode]", note[1])

    def give_up(self) -> None:
        """End the process if what it is at does not come to its end soon."""
        self._given_up = True
        process: EnvProcess | None = self._taken
        if process is not None:
            process.give_up()

    def _process(self) -> EnvProcess:
        if self._taken is None:
            process: EnvProcess = self._take()
            if self._given_up:
                process.give_up()
            try:
                process.begin(frozenset(cast("frozenset[str]", self._capabilities)))
            except Crashed as error:
                raise self._crashed("make", error) from error
        return cast("EnvProcess", self._taken)

    def _asked(self, process: EnvProcess, request: Request, timing: Timing) -> Answer:
        try:
            note, leaves = process.ask(request.kind, request)
        except Crashed as error:
            raise self._crashed(request.kind, error) from error
        kind, content = note[0], note[1]
        if kind == "failed":
            raise Failed(content)
        if kind != "answer" or not isinstance(content, Told):
            strange = TypeError(f"the environment's process answered with {kind!r}")
            raise Failed(environment_fault(request.kind, strange))
        self._simplified.note(content.odd)
        answer = unpack(content, leaves)
        timing.user = answer.timing.user
        answer.timing = timing
        return answer

    def _crashed(self, operation: str, error: Crashed) -> Failed:
        self._taken: Any = None  # Any: as in Stage
        message = (
            f"{operation} failed: the environment's process ended by itself ({error}); "
            "reset() starts another"
        )
        return Failed(Fault(FaultCode.CRASHED, message, recoverable=False))
