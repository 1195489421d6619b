"""A session that is opened anew when its environment is gone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium
from rlcore import (
    Backoff,
    CallTimeout,
    EnvironmentException,
    Error,
    IdentityError,
    PlatformTimeout,
    PlatformUnreachable,
    SessionBusy,
    TransportError,
)

if TYPE_CHECKING:
    from rleaas.training.shared_sessions import Place

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any
Outcome = tuple[Value, float, bool, bool, dict[str, Any]]

ABORTED = "aborted"
"""The info key of a step in which the episode was lost: it is never scored."""
_SLICE = 0.1

OpenEnv = Callable[[], "gymnasium.Env[Any, Any]"]
Tell = Callable[[str], None]
_NOT_FOUND = (TransportError, CallTimeout, PlatformUnreachable, PlatformTimeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a lost environment is looked for, and how long between.

    `attempts` are counted from the last episode that came to its end: an environment that dies in
    every episode is given up too.
    """

    attempts: int = 6
    backoff: Backoff = field(
        default_factory=lambda: Backoff(first=0.5, factor=2.0, cap=15.0, jitter=0.2)
    )


class RetryingEnv(gymnasium.Env[Any, Any]):
    """One session that outlives its environment's process.

    When the environment is gone in a step, the episode ends there, truncated, with `aborted` in
    its info and the last observation that there was; the next reset finds the environment again.
    An environment that answers under another identity is not tried again. What a full server says
    before the session ever had a place is left to the caller.

    Args:
        open_env: dials the environment, resolving its address anew each time.
        policy: how often.
        stop: asked while waiting; a stop is a KeyboardInterrupt there.
        tell: told of what was lost and found, in lines for people.
        pause: waits for so many seconds.
        name: what the environment is called, for who reads that it is gone.
    """

    def __init__(
        self,
        open_env: OpenEnv,
        policy: RetryPolicy | None = None,
        *,
        stop: Callable[[], bool] | None = None,
        tell: Tell | None = None,
        pause: Callable[[float], None] = time.sleep,
        name: str | None = None,
    ) -> None:
        self._what = "the environment" if name is None else f"environment {name!r}"
        self._open = open_env
        self._policy = policy or RetryPolicy()
        self._stop = stop
        self._listener = tell
        self._pause = pause
        self._held = False
        self._story: list[str] = []
        self._last: Value = None
        self._seed: int | None = None
        self._steps = 0
        self._env: gymnasium.Env[Any, Any] | None = open_env()
        env = self._env
        self.action_space = env.action_space
        self.observation_space = env.observation_space
        self.metadata = env.metadata
        self.render_mode = env.render_mode
        self.spec = env.spec
        if env.has_wrapper_attr("begin_step"):
            # Who steps us asks whether actions can be sent ahead.
            self.begin_step = self._send_ahead

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start an episode, on the environment found again if it was lost.

        Raises:
            EnvironmentException: it was looked for too often; the message tells what happened.
            IdentityError: it has another contract now.
        """
        self._seed, self._steps = seed, 0
        delays = self._policy.backoff.delays(random.Random(0))
        while True:
            env = self._env or self._found_again(delays)
            try:
                observation, info = env.reset(seed=seed, options=options)
            except (TransportError, EnvironmentException) as error:
                if not _is_gone(error) or (isinstance(error, SessionBusy) and not self._held):
                    raise
                self._note(error, "the reset")
            else:
                self._held = True
                self._last = observation
                return observation, info

    @property
    def place(self) -> Place | None:
        """Where the environment is among those that one message steps; None: it steps alone."""
        return getattr(self._env, "place", None)

    def took(self, outcome: Outcome) -> None:
        """Hear of a step that was taken in its `place`, with those of others."""
        self._steps += 1
        self._last = outcome[0]
        if outcome[2] or outcome[3]:
            self._story.clear()

    def step(self, action: Value) -> Outcome:
        """Step; where the environment is gone, the episode is over and counts nowhere."""
        if self._env is None:
            return self._aborted("it had not been found again")
        self._steps += 1
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
        except (TransportError, EnvironmentException) as error:
            if not _is_gone(error):
                raise
            self._note(error, f"step {self._steps}")
            return self._aborted(str(error))
        self._last = observation
        if terminated or truncated:
            self._story.clear()
        return observation, float(reward), terminated, truncated, info

    def _send_ahead(self, action: Value) -> None:
        if self._env is None:
            return
        try:
            self._env.get_wrapper_attr("begin_step")(action)
        except TransportError as error:
            # The step that follows finds no environment, and ends the episode.
            self._note(error, f"step {self._steps + 1}")

    def close(self) -> None:
        """Close the session that is open."""
        env, self._env = self._env, None
        if env is not None:
            env.close()

    def _found_again(self, delays: Iterator[float]) -> gymnasium.Env[Any, Any]:
        while True:
            self._wait(next(delays))
            try:
                env = self._env = self._open()
            except _NOT_FOUND as error:
                self._note(error, "looking for it")
            except IdentityError:
                raise
            except Error as error:
                self._tell_of(error, "looking for it")
                raise self._given_up() from error
            else:
                self._tell("found the environment again")
                return env

    def _aborted(self, why: str) -> tuple[Value, float, bool, bool, dict[str, Any]]:
        return self._last, 0.0, False, True, {ABORTED: True, "aborted_by": why}

    def _note(self, error: Exception, moment: str) -> None:
        env, self._env = self._env, None
        self._tell_of(error, moment)
        if env is not None:
            try:
                env.close()
            except TransportError as closing:
                self._tell(f"closing the lost session: {closing}")
        if len(self._story) >= self._policy.attempts:
            raise self._given_up() from error

    def _tell_of(self, error: Exception, moment: str) -> None:
        # What to do about it is said to who dials by hand.
        said = error.message if isinstance(error, Error) else str(error)
        line = f"{moment} for the episode with seed {self._seed}: {type(error).__name__}: {said}"
        self._story.append(line)
        self._tell(f"the environment was lost in {line}")

    def _tell(self, line: str) -> None:
        if self._listener is not None:
            self._listener(line)

    def _wait(self, seconds: float) -> None:
        self._tell(f"looking for the environment again in {seconds:.1f} s")
        left = seconds
        while left > 0:
            if self._stop is not None and self._stop():
                raise KeyboardInterrupt("stopped while the environment was looked for")
            self._pause(min(_SLICE, left))
            left -= _SLICE

    def _given_up(self) -> EnvironmentException:
        story = "\n".join(f"  {number}. {line}" for number, line in enumerate(self._story, 1))
        return EnvironmentException(
            f"{self._what} is gone, and was not found again:\n{story}",
            code="environment_gone",
            operation="reset" if self._steps == 0 else "step",
            seed=self._seed,
            step=self._steps,
            hint="Its last output is in the server's log of the environment",
        )


def _is_gone(error: Exception) -> bool:
    # What the environment itself raised would be raised again.
    return not isinstance(error, EnvironmentException) or error.code == "environment_gone"
