"""One guarded session of an environment, as every trainer steps it."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rlcore import (
    CallTimeout,
    ConfigurationError,
    EnvironmentException,
    EnvironmentIdentity,
    RLMeshException,
    SessionBusy,
    SessionClosed,
)

from rleaas.training.learner_spaces import learner_space, to_environment, to_learner
from rleaas.training.retry import RetryingEnv
from rleaas.training.session_state import (
    SessionMark,
    SessionState,
    action_from_json,
    digest,
)
from rleaas.training.trainer import ExpectsSessions, SessionFactory

if TYPE_CHECKING:
    from rleaas.training.shared_sessions import Place

# Observations, actions and infos are whatever the environment's spaces say.
Value = Any
Outcome = tuple[Value, float, bool, bool, dict[str, Any]]


LARGEST_REWARD = 1e150
"""Squares of it, summed over any number of episodes, are still finite."""


class GuardedEnv(gymnasium.Env[Any, Any]):
    """One session: seeded episodes, capped length, zero-based spaces, no NaN let through.

    The info of an episode's last step carries `episode`: return `r`, length `l`, seed. `state` and
    `restore` carry an unfinished episode over the end of a process.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        name: str,
        max_steps: int,
        seed: int,
        session: int,
    ) -> None:
        self._env = env
        self._name = name
        self._max_steps = max_steps
        self.session = session
        self._run_seed = seed
        self._episode = 0
        self._episode_seed = 0
        self._steps = 0
        self._return = 0.0
        self._actions: list[Value] = []
        self._observation: Value = None
        self.given_actions = env.action_space
        self.given_observations = env.observation_space
        self.action_space = learner_space(env.action_space)
        self.observation_space = learner_space(env.observation_space)
        self.metadata = env.metadata
        self.render_mode = env.render_mode
        # Sessions in other processes take an action before somebody waits for what it does.
        self.begins: bool = env.has_wrapper_attr("begin_step")
        self._send = env.get_wrapper_attr("begin_step") if self.begins else None
        self._sent: Value = None
        self._keeps = env.has_wrapper_attr("session_state")
        # What else stands between wants to see every step itself.
        self._placed = env if isinstance(env, RetryingEnv) else None

    @property
    def reward_threshold(self) -> float | None:
        """The return at which the environment's own specification calls it solved."""
        spec = self._env.spec
        return None if spec is None else spec.reward_threshold

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Value, dict[str, Any]]:
        """Start the session's next episode with the seed that belongs to it, or with `seed`."""
        if seed is None:
            seed = episode_seed(self._run_seed, self.session, self._episode)
        self._episode += 1
        self._episode_seed = seed
        self._steps = 0
        self._return = 0.0
        self._actions = []
        self._sent = None
        try:
            observation, info = self._env.reset(seed=seed, options=options)
        except (SessionClosed, CallTimeout) as error:
            raise self._lost(error, "reset") from error
        self._require_finite(observation, "reset", "observation")
        self._observation = observation
        return to_learner(self.given_observations, observation), info

    def begin(self, action: Value) -> None:
        """Send the action of the next `step` ahead, where `begins` says that this works."""
        if self._send is not None:
            self._sent = given = to_environment(self.given_actions, action)
            self._send(given)

    @property
    def place(self) -> Place | None:
        """Where the session is among those that one message steps; None: it steps alone."""
        return None if self._placed is None else self._placed.place

    def sent(self, given: Value) -> None:
        """Hear the environment's action of the next step, which was sent with those of others."""
        self._sent = given

    def took(self, outcome: Outcome) -> Outcome:
        """Return what a step gave that was taken with those of others, as `step` does."""
        given, self._sent = self._sent, None
        if self._placed is not None:
            self._placed.took(outcome)
        self._steps += 1
        self._actions.append(given)
        return self._guarded(outcome)

    def step(self, action: Value) -> Outcome:
        """Step, and end the episode at the cap."""
        given, self._sent = self._sent, None
        if given is None:
            given = to_environment(self.given_actions, action)
        return self._step(given)

    def _step(self, given: Value) -> Outcome:
        self._steps += 1
        self._actions.append(given)
        try:
            outcome = self._env.step(given)
        except (SessionClosed, CallTimeout) as error:
            raise self._lost(error, "step") from error
        return self._guarded(cast("Outcome", outcome))

    def _guarded(self, outcome: Outcome) -> Outcome:
        observation, reward, terminated, truncated, info = outcome
        score = float(reward)
        if not abs(score) <= LARGEST_REWARD:  # NaN is not either
            raise self._broken("step", f"reward {score}")
        self._require_finite(observation, "step", "observation")
        self._observation = observation
        self._return += score
        truncated = truncated or (self._steps >= self._max_steps and not terminated)
        # An episode that was lost counts nowhere.
        if (terminated or truncated) and not info.get("aborted"):
            info = {**info, "episode": self._summary()}
        return (
            to_learner(self.given_observations, observation),
            score,
            terminated,
            truncated,
            info,
        )

    @property
    def next_episode(self) -> int:
        """The number of the next episode, as a reward function is told it."""
        return self._env.get_wrapper_attr("next_episode") if self._keeps else self._episode

    def renumber(self, episode: int) -> None:
        """Let reward functions be told that the next episode is of this number."""
        if self._keeps:
            self._env.get_wrapper_attr("renumber")(episode)

    def close(self) -> None:
        """Close the session."""
        self._env.close()

    def mark(self) -> SessionMark:
        """What the session is doing now, cheaply; it was reset before."""
        return SessionMark(
            self._episode,
            self._episode_seed,
            self._actions,
            len(self._actions),
            self._observation,
            self._env.get_wrapper_attr("session_state")() if self._keeps else None,
        )

    def state(self) -> SessionState:
        """What the session is doing now; it was reset before."""
        return self.mark().state()

    def restore(self, state: SessionState) -> tuple[Value, bool]:
        """Play the unfinished episode again from its seed.

        Returns the observation to go on from, and whether it is the one that there was: an
        environment that is not deterministic ends up elsewhere, and gets its next episode instead.

        Raises:
            rlcore.RLMeshException: the environment failed or was lost.
        """
        self._episode = state.episode - 1
        if self._keeps and state.wrapped is not None:
            self._env.get_wrapper_attr("restore_session")(state.wrapped)
        observation, _ = self.reset(seed=state.seed)
        for action in state.actions:
            observation, _, terminated, truncated, _ = self._step(
                action_from_json(self.given_actions, action)
            )
            if terminated or truncated:
                break
        if len(self._actions) == len(state.actions) and (
            digest(self._observation) == state.observation
        ):
            return observation, True
        observation, _ = self.reset()
        return observation, False

    def _summary(self) -> dict[str, float]:
        return {"r": self._return, "l": self._steps, "t": 0.0, "seed": self._episode_seed}

    def _require_finite(self, observation: Value, operation: str, what: str) -> None:
        if isinstance(observation, Mapping):
            for key, part in cast("Mapping[str, Value]", observation).items():
                self._require_finite(part, operation, f"{what}[{key!r}]")
        elif isinstance(observation, np.ndarray | np.floating):
            array = cast("NDArray[Any]", observation)
            if array.dtype.kind != "f":
                return
            # The squares' sum is NaN where one of them is; it is told at every step.
            flat = array.ravel()
            squares = flat.dot(flat)
            if squares != squares:
                raise self._broken(operation, f"{what} with NaN")

    def _lost(self, error: SessionClosed | CallTimeout, operation: str) -> RLMeshException:
        if isinstance(error, CallTimeout):
            limit = "in time" if error.seconds is None else f"within {error.seconds:g} s"
            return CallTimeout(
                f"environment {self._name!r} did not answer {limit} {self._moment(operation)}",
                operation=operation,
                seconds=error.seconds,
                layer="environment",
                hint="If it may take that long, raise step_timeout in the training's config",
            )
        return EnvironmentException(
            f"environment {self._name!r} is gone: its process ended {self._moment(operation)}",
            code="environment_gone",
            operation=operation,
            environment=self._name,
            seed=self._episode_seed,
            step=self._steps,
            hint="Its last output is in the server's log of the environment",
        )

    def _moment(self, operation: str) -> str:
        where = f"step {self._steps}" if operation == "step" else "the reset"
        return f"in {where} of the episode with seed {self._episode_seed}"

    def _broken(self, operation: str, what: str) -> EnvironmentException:
        return EnvironmentException(
            f"environment {self._name!r} returned a {what} in step {self._steps} of the episode "
            f"with seed {self._episode_seed}",
            operation=operation,
            environment=self._name,
            seed=self._episode_seed,
            step=self._steps,
            hint="A policy cannot learn from it; correct the environment",
        )


def label_of(environment: EnvironmentIdentity) -> str:
    """The environment as a user writes it: `name@version`."""
    version = environment.version
    return environment.name if version is None else f"{environment.name}@{version}"


def episode_seed(run_seed: int, session: int, episode: int) -> int:
    """The seed of a session's n-th episode: a function of the run's seed and the two indexes."""
    state = np.random.SeedSequence((run_seed, session, episode)).generate_state(1)
    return int(state[0]) & 0x7FFF_FFFF


def open_sessions(
    make_env: SessionFactory, count: int, *, required: bool, name: str, max_steps: int, seed: int
) -> list[GuardedEnv]:
    """Open `count` sessions, or as many as the environment has room for unless `required`.

    Raises:
        ConfigurationError: `required`, and there is no room.
        rlcore.RLMeshException: the environment cannot be reached or failed.
    """
    opened: list[GuardedEnv] = []
    try:
        for session in range(count):
            try:
                env = make_env(session)
                guarded = GuardedEnv(
                    env, name=name, max_steps=max_steps, seed=seed, session=session
                )
                opened.append(guarded)
                # A session is taken by the first reset, not by dialling.
                env.reset(seed=episode_seed(seed, session, 0))
            except SessionBusy as error:
                if opened and opened[-1].session == session:
                    opened.pop().close()
                if not opened:
                    raise
                if required:
                    raise ConfigurationError(
                        f"environment {name!r} has room for {len(opened)} sessions, "
                        f"num_envs asks for {count}",
                        hint=f"Set num_envs to {len(opened)} or leave it out",
                    ) from error
                break
    except BaseException:
        for guarded in opened:
            guarded.close()
        raise
    if isinstance(make_env, ExpectsSessions):
        make_env.expect(len(opened))
    return opened
