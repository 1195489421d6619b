"""Sessions of a job that step quick environments together: several in one session of the server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
from rlcore import Backoff, RLMeshException, SessionBusy, TransportError, UnsupportedError
from rlcore.log import logger

from rleaas.training.remote_sessions import RemoteSessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmesh.numpy import RemoteEnv, RemoteEnvs

log = logger("rleaas", "training")

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any
Outcome = tuple[Value, float, bool, bool, dict[str, Any]]
Place: TypeAlias = "tuple[RemoteEnvs, int]"

QUICK_NS = 50_000
"""An environment that steps in less takes longer for the way than for the step, so that one message
for several is worth that they step one after another."""
LEAST_STEPS = 5
QUICK_SHARE = 0.8
SLOW_FACTOR = 10
SLOW_LOOKS = 8
ROOM_TRIES = 6
ROOM_BACKOFF = Backoff(first=1.0, factor=2.0, cap=30.0, jitter=0.0)
"""How often a session for all is asked for where there is no room for it, and how long between."""


class SharedSessions:
    """Opens sessions that come together in one where their environment is quick.

    Each begins alone, in a session of its own. Once it has been seen to step quickly, its next
    reset takes its place in a session that all of a crew have, which one message steps. Where the
    server has no such sessions it stays alone, and where there is no room for one until there is:
    while sessions move, each takes a place in both. It is asked for a few times, ever more seldom,
    and nobody waits for it. As episodes follow from their
    seeds, learners cannot tell the difference.

    Args:
        base: opens a session alone; may be sent to another process, and so may this.
    """

    def __init__(self, base: RemoteSessions) -> None:
        self.base = base
        self._crew: Crew | None = None

    def expect(self, sessions: int, *, first: int = 0) -> None:
        """Hear how many sessions there are here; see `ExpectsSessions`."""
        self._crew = Crew(self.base, range(first, first + sessions))

    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        """Connect to wherever the environment is served now.

        Raises:
            rlcore.Error: it is not served, or is not the version that was asked for.
        """
        return SharingEnv(self.base, session, self.crew_of)

    def crew_of(self, session: int) -> Crew | None:
        """The crew that a session steps with, once that is known; None: it steps alone."""
        crew = self._crew
        return None if crew is None or session not in crew.sessions or crew.size < 2 else crew

    def __reduce__(self) -> tuple[type[SharedSessions], tuple[RemoteSessions]]:
        return SharedSessions, (self.base,)


class Crew:
    """The sessions that step together, and the session of the server that they share.

    Args:
        base: where the environment is.
        sessions: their numbers.
    """

    def __init__(self, base: RemoteSessions, sessions: range) -> None:
        self.sessions = sessions
        self.size = len(sessions)
        self._base = base
        self._shared: RemoteEnvs | None = None
        self._members: dict[int, RemoteEnvs] = {}
        self._slow = 0
        self.given_up = False
        self._refusals = 0
        self._delays = ROOM_BACKOFF.delays()
        self._asks_from = 0.0

    def join(self, session: int) -> gymnasium.Env[Any, Any] | None:
        """A session's environment in the one that is shared; None where there is none to share."""
        if self.given_up or time.monotonic() < self._asks_from:
            return None
        if self._shared is None or (self._members and not self._shared.is_running):
            # One that was lost is left to those who have not heard of it yet.
            self._shared = self._opened()
        if self._shared is None:
            return None
        self._members[session] = self._shared
        return self._shared.envs[self.sessions.index(session)]

    def place(self, session: int) -> Place:
        """Where a session that has joined is: the shared one, and its number there."""
        return self._members[session], self.sessions.index(session)

    def leave(self, session: int) -> None:
        """Give a place back; the last one to leave ends the session."""
        left = self._members.pop(session, None)
        if left is None or left in self._members.values():
            return
        if left is self._shared:
            self._shared = None
        left.close()

    def refused(self, error: SessionBusy) -> None:
        """Hear that there is no room for all; after a few times, that is how it stays."""
        self._refusals += 1
        if self._refusals < ROOM_TRIES:
            self._asks_from = time.monotonic() + next(self._delays)
            return
        self.give_up(
            f"no room for {self.size} environments in one session, asked for {ROOM_TRIES} times: "
            f"{error.message}; while they move, they need {2 * self.size} places (max_sessions)"
        )

    def give_up(self, why: str) -> None:
        """Let all go on alone, from their next episodes."""
        log.info("sessions step apart: %s", why)
        self.given_up = True

    def look(self) -> None:
        """Give up where the environments have become slow."""
        shared = self._shared
        timing = None if shared is None else shared.last_timing
        if timing is None or timing.user is None:
            return
        slow = timing.user > QUICK_NS * SLOW_FACTOR * self.size
        self._slow = self._slow + 1 if slow else 0
        if self._slow >= SLOW_LOOKS:
            self.give_up(f"{self.size} steps took {timing.user / 1e6:.1f} ms")

    def _opened(self) -> RemoteEnvs | None:
        try:
            return self._base.together(self.size)
        except UnsupportedError as error:
            self.give_up(str(error))
        except RLMeshException as error:
            log.info("no session for %d environments: %s", self.size, error)
        return None


class SharingEnv(gymnasium.Env[Any, Any]):
    """One session of a job: alone at first, then in its place among others.

    Args:
        base: opens it alone.
        session: its number.
        crew_of: says which crew it steps with, once that is known.
    """

    def __init__(
        self, base: RemoteSessions, session: int, crew_of: Callable[[int], Crew | None]
    ) -> None:
        self._base = base
        self._session = session
        self._crew_of = crew_of
        self._crew: Crew | None = None
        self._steps = self._quick = 0
        self._alone: RemoteEnv | None = None
        self.place: Place | None = None
        alone = self._be_alone()
        self._env: gymnasium.Env[Any, Any] = alone
        self.action_space = alone.action_space
        self.observation_space = alone.observation_space
        self.metadata = alone.metadata
        self.render_mode = alone.render_mode
        self.spec = alone.spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode, together with the others from here on where that is worth it.

        Raises:
            rlcore.RLMeshException: as the environment's own.
        """
        if self._alone is not None:
            found = self._joined(seed, options) if self._is_quick() else None
            if found is not None:
                return found
        elif self._crew is not None:
            self._crew.look()
            if self._crew.given_up:
                self._env = self._be_alone()
        return self._env.reset(seed=seed, options=options)

    def step(self, action: Value) -> Outcome:
        """Step, alone; in a session that is shared, the environment's own method stands here."""
        alone = self._alone
        if alone is None:
            observation, reward, terminated, truncated, info = self._env.step(action)
            return observation, float(reward), terminated, truncated, info
        outcome = alone.step(action)
        timing = alone.last_timing
        self._steps += 1
        self._quick += timing is not None and (timing.user or QUICK_NS) < QUICK_NS
        return outcome

    def begin_step(self, action: Value) -> None:
        """Send the action of the next `step` ahead; its stand-in is as that of `step`."""
        self._env.get_wrapper_attr("begin_step")(action)

    def render(self) -> Value:
        """The current frame."""
        return self._env.render()

    def close(self) -> None:
        """Leave the session."""
        if self._crew is not None:
            self._crew.leave(self._session)
            self._crew = self.place = None
        self._env.close()

    def _is_quick(self) -> bool:
        return self._steps >= LEAST_STEPS and self._quick >= self._steps * QUICK_SHARE

    def _joined(
        self, seed: int | None, options: dict[str, Any] | None
    ) -> tuple[Value, dict[str, Any]] | None:
        """The beginning of an episode in the shared session; None where there is no place in it."""
        crew = self._crew_of(self._session)
        if crew is None:
            return None
        env = crew.join(self._session)
        if env is None:
            return None
        try:
            found = env.reset(seed=seed, options=options)
        except SessionBusy as error:
            crew.leave(self._session)
            crew.refused(error)
            return None
        except TransportError as error:
            log.info("the session of several was lost: %s", error)
        else:
            self._env.close()
            self._env, self._alone, self._crew = env, None, crew
            self.place = crew.place(self._session)
            # Nothing stands between a learner and the environment but what the job asks for.
            self.__dict__["step"] = env.step
            self.__dict__["begin_step"] = env.get_wrapper_attr("begin_step")
            return found
        crew.leave(self._session)
        return None

    def _be_alone(self) -> RemoteEnv:
        alone = self._base(self._session)
        if self._crew is not None:
            self._crew.leave(self._session)
            self._crew = self.place = None
        self.__dict__.pop("step", None)
        self.__dict__.pop("begin_step", None)
        self._alone = alone
        self._steps = self._quick = 0
        return alone
