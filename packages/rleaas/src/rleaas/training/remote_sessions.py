"""The sessions of one training job: the served environment with everything the request adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rleaas.training.assignment import AssignedEnvironment
from rleaas.training.session_parts import SessionParts
from rleaas.training.trainer import ExpectsSessions, SessionFactory

if TYPE_CHECKING:
    import gymnasium
    from rlmesh.numpy import RemoteEnv, RemoteEnvs

    from rleaas.training.kept_rollouts import RolloutKeeper

RESOLVE_SECONDS = 120.0
STEP_SECONDS = 60.0

Stopped = Callable[[], bool]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSessions:
    """Opens sessions of an environment of the platform; may be sent to another process.

    Attributes:
        environment: which one; where it is served is asked anew for every session.
        step_seconds: how long one step or reset may take.
    """

    environment: AssignedEnvironment
    step_seconds: float = STEP_SECONDS

    def __call__(self, session: int) -> RemoteEnv:
        """Connect to wherever the environment is served now.

        Raises:
            rlcore.Error: it is not served, or is not the version that was asked for.
        """
        from rlmesh.numpy import RemoteEnv

        endpoint = self.environment.endpoint(timeout=RESOLVE_SECONDS)
        return RemoteEnv(endpoint, request_timeout_seconds=self.step_seconds)

    def together(self, count: int) -> RemoteEnvs:
        """Connect for one session with so many environments; nobody waits for room for it.

        Raises:
            UnsupportedError: the server gives a session one environment.
            rlcore.Error: as a call.
        """
        from rlmesh.numpy import RemoteEnvs

        return RemoteEnvs(
            self.environment.endpoint(timeout=RESOLVE_SECONDS),
            count,
            request_timeout_seconds=self.step_seconds,
            queue_timeout_seconds=0.0,
        )


@dataclass(slots=True, kw_only=True)
class ComposedSessions:
    """Sessions as the learner of a job sees them: found again when lost, rewarded, judged, paced.

    In another process nobody is told of lost environments, nor asked whether to stop: what belongs
    to the worker's own process stays there.

    Attributes:
        base: opens the plain sessions.
        parts: reward function, verifiers, scenarios and curriculum.
        rate: how many steps a second a session makes at most; None: as many as it can.
        stopped: asked while a lost environment is looked for.
        tell: told what people want to read in the job's log.
        name: what the environment is called.
        keeper: keeps some of the episodes, where they are calls of tools.
    """

    base: SessionFactory
    parts: SessionParts
    rate: float | None = None
    stopped: Stopped | None = None
    tell: Tell | None = None
    name: str | None = None
    keeper: RolloutKeeper | None = None

    def expect(self, sessions: int, *, first: int = 0) -> None:
        """Hear how many sessions there are here; see `ExpectsSessions`."""
        if isinstance(self.base, ExpectsSessions):
            self.base.expect(sessions, first=first)

    # Observations and actions are whatever the environment's spaces say.
    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        """Open one more session.

        Raises:
            rlcore.Error: the environment is not served, or cannot be judged as was asked.
        """
        from rleaas.training.pacing import PacedEnv
        from rleaas.training.retry import RetryingEnv

        found = RetryingEnv(
            lambda: self.base(session), stop=self.stopped, tell=self.tell, name=self.name
        )
        env = self.parts.wrap(found, tell=self.tell)
        if self.keeper is not None:
            env = self.keeper.around(env)
        return env if self.rate is None else PacedEnv(env, self.rate)

    def __getstate__(self) -> tuple[SessionFactory, SessionParts, float | None, str | None]:
        return self.base, self.parts, self.rate, self.name

    def __setstate__(
        self, state: tuple[SessionFactory, SessionParts, float | None, str | None]
    ) -> None:
        self.base, self.parts, self.rate, self.name = state
        self.stopped = self.tell = None
        self.keeper = None
