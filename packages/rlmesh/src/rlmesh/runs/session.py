"""`rlmesh.session`: drive a model on an environment step by step."""

import warnings
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from rlcore import ConfigurationError, SessionClosed, UnsupportedError

from rlmesh.client.refusals import is_not_ready
from rlmesh.models.model import is_model_class
from rlmesh.models.policy import PolicyEpisode, policy_for
from rlmesh.models.seeds import TRIAL_INDEX_OPTION
from rlmesh.runs.driven import Step
from rlmesh.runs.evaluation import Evaluation, frame_sources
from rlmesh.runs.frames import FrameSource
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.interrupts import Interrupts
from rlmesh.runs.opened import Opened, check_binding
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.seat import Seat
from rlmesh.runs.settings import EpisodeArguments, RunArguments, settings_of
from rlmesh.runs.views import ViewHooks, open_view

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract

# Any, in this room: observations and actions, as the environment and the model have them.


def session(
    model: object,
    env: object,
    *,
    instruction: str | None = None,
    execution_horizon: int = 1,
    close_env: bool = False,
    trust_entrypoints: bool | None = None,
    view: object = None,
    workflow_edition: str | None = None,
) -> "Session":
    """Bind a model to one environment, to be driven by `reset`, `predict` and `step`.

    The environment is opened at the first use.

    Args:
        model: as `rlmesh.run` takes it.
        env: as `rlmesh.run` takes it, but one environment, of one lane.
        instruction: the task in words, for models whose spec asks for one.
        execution_horizon: how many actions of each predicted chunk are used.
        close_env: also close an environment that was given, and shut down a server that was given
            by its address, where it allows that.
        trust_entrypoints: as `rlmesh.run` takes it.
        view: watch live, as `rlmesh.run` has it.
        workflow_edition: the edition that the caller was written for, told when dialling.

    Raises:
        ConfigurationError: an argument is wrong.
        ModelTypeError: the model is none.
    """
    arguments: RunArguments = {
        "instruction": instruction,
        "execution_horizon": execution_horizon,
        "trust_entrypoints": trust_entrypoints,
        "workflow_edition": workflow_edition,
    }
    check_binding(arguments)
    if not is_model_class(model):  # a class is made when it is used
        policy_for(model, execution_horizon=execution_horizon, instruction=instruction).close()
    viewer = open_view(view)
    return Session(lambda: Opened(model, env, arguments), close_env=close_env, view=viewer)


class Session:
    """One model on one environment, step by step; made by `rlmesh.session`.

    A context manager. After `close`, every use raises `SessionClosed`.
    """

    def __init__(
        self, connect: Callable[[], Opened], *, close_env: bool, view: ViewHooks | None
    ) -> None:
        self._connect = connect
        self._close_env = close_env
        self._view = view
        self._opened: Opened | None = None
        self._closed = False
        self._done = False
        self._episode: PolicyEpisode | None = None
        self._anonymous: PolicyEpisode | None = None
        self._events = _Events()

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        return self._seat().target.env.env_contract

    @property
    def num_envs(self) -> int:
        """How many environments are stepped at once: one."""
        self._seat()
        return 1

    @property
    def done(self) -> bool:
        """Whether the open episode is terminated or truncated."""
        return self._done

    @property
    def selected_workflow_edition(self) -> str:
        """The workflow edition that was agreed on with the server.

        Raises:
            UnsupportedError: the environment is not served.
        """
        edition: object = getattr(self._seat().target.env, "selected_workflow_edition", None)
        if not isinstance(edition, str):
            raise UnsupportedError("a local environment has agreed on no workflow edition")
        return edition

    def frame_sources(self) -> tuple[FrameSource, ...]:
        """What can be looked at while the environment is stepped."""
        return frame_sources([self._seat()])

    def reset(
        self, *, seed: int | None = None, trial_index: int | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start the next episode and return its first observation and info.

        A trial index for an environment that declares no such reset option is a warning, and the
        environment is reset without it.
        """
        seat = self._seat()
        if trial_index is not None and not seat.takes_trial:
            warnings.warn(
                f"the environment does not take a trial index, and is reset without {trial_index}: "
                "its metadata would declare the reset option 'trial_index'",
                stacklevel=2,
            )
            trial_index = None
        self._end_episode()
        self._done = False
        events = self._events
        events.begin(seed)
        if self._view is not None:
            self._view.on_episode_start(episode=events.episode, seed=seed or 0)
        if trial_index is None:
            observation, info = seat.reset(seed=seed)
        else:
            observation, info = seat.reset(seed=seed, options={TRIAL_INDEX_OPTION: trial_index})
        self._episode = self._policy().begin(f"{id(self):x}-{events.episode}", seed)
        events.observation = observation
        if self._view is not None:
            self._view.on_reset(observation, episode=events.episode, seed=seed)
        return observation, info

    def predict(self, observation: Any) -> Any:
        """Return the model's action for an observation."""
        self._seat()
        policy = self._policy()
        episode = self._episode
        if episode is None:
            # Nobody has reset: the model is asked all the same, without an episode's name.
            episode = self._anonymous = self._anonymous or policy.begin("", None)
        before = perf_counter()
        action = policy.predict(observation, episode)
        self._events.predict_s = perf_counter() - before
        return action

    def step(self, action: Any) -> Step:
        """Step the environment.

        Raises:
            EnvironmentException: `reset` comes first (`not_ready`), or the environment raised.
        """
        seat = self._seat()
        if self._episode is None:
            identity = seat.identity
            name = "the environment" if identity is None else identity.name
            raise is_not_ready(name, was_interrupted=False)
        before = perf_counter()
        step = cast("Step", seat.step(action))
        took = perf_counter() - before
        if self._view is not None:
            step = self._shown(self._view, action, step, took)
        self._done = step[2] or step[3]
        return step

    def run(self, **arguments: Unpack[EpisodeArguments]) -> RunResult:
        """Play whole episodes as `rlmesh.run` does, and leave the session open.

        Args:
            **arguments: those of `rlmesh.run` that are about episodes.

        Raises:
            Exception: as `rlmesh.run`.
        """
        settings = settings_of(arguments)
        seat = self._seat()
        self._end_episode()
        assert self._opened is not None
        if not settings.planned:
            return RunResult(asked=0)
        evaluation = Evaluation(
            self._opened.policy,
            [seat],
            settings,
            horizon=self._opened.shaping,
            view=self._view,
        )
        try:
            with Interrupts():
                return evaluation.play()
        finally:
            seat.free()

    def close(self) -> None:
        """End the episode and release what the session opened; closing twice is fine."""
        opened = self._opened
        if self._closed:
            return
        self._closed = True
        shut = None if self._view is None else self._view.close
        if opened is None:
            if shut is not None:
                shut()
            return
        try:
            self._end_episode()
        finally:
            self._opened = None
            opened.close(close_env=self._close_env, first=shut)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "created" if self._opened is None else "connected"
        return f"<rlmesh.Session {state}>"

    def _policy(self) -> Any:
        assert self._opened is not None
        return self._opened.policy

    def _seat(self) -> Seat:
        if self._closed:
            raise SessionClosed("the session is closed", hint="make another one")
        if self._opened is None:
            self._open()
        assert self._opened is not None
        return self._opened.seats[0]

    def _open(self) -> None:
        opened = self._connect()
        try:
            seats = opened.seats
            lanes = seats[0].target.lanes
            if len(seats) > 1 or lanes is not None:
                raise ConfigurationError(
                    f"a session drives one environment, not {lanes or len(seats)} at once",
                    hint="rlmesh.run plays on several.",
                )
            opened.policy.bind(
                seats[0].target.env.env_contract, num_envs=1, action_space=seats[0].action_space
            )
        except BaseException as error:
            opened.close_after(error, close_env=False)
            raise
        self._opened = opened
        if self._view is not None:
            self._view.on_run_start(self)

    def _shown(self, view: ViewHooks, action: Any, step: Step, took: float) -> Step:
        observation, reward, terminated, truncated, info = step
        event = self._events.of((action, step), took)
        view.on_step(event)
        control = view.control
        if control.asked:
            # After the step was told, so that who watches sees where the session stands.
            control.wait()
            if not terminated and (control.take_skip() or control.quit_requested):
                truncated = True
        if terminated or truncated:
            view.on_episode_end(self._events.result(event, truncated=truncated))
        return observation, reward, terminated, truncated, info

    def _end_episode(self) -> None:
        for episode in (self._episode, self._anonymous):
            if episode is not None:
                self._policy().end(episode)
        self._episode = self._anonymous = None


class _Events:
    """What a viewer is told of a session's steps."""

    def __init__(self) -> None:
        self.episode = -1
        self.observation: Any = None
        self.predict_s = 0.0
        self._seed: int | None = None
        self._steps = 0
        self._reward = 0.0

    def begin(self, seed: int | None) -> None:
        """Count the next episode."""
        self.episode += 1
        self._seed, self._steps, self._reward = seed, 0, 0.0

    def of(self, taken: tuple[Any, Step], took: float) -> StepEvent:
        """Return the event of a step."""
        action, (following, reward, terminated, truncated, info) = taken
        before, self.observation = self.observation, following
        self._steps += 1
        self._reward += reward
        return StepEvent(
            episode=max(self.episode, 0),
            seed=self._seed or 0,
            step=self._steps - 1,
            observation=before,
            action=action,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            info=info,
            predict_ms=self.predict_s * 1000,
            step_ms=took * 1000,
            next_observation=following,
        )

    def result(self, last: StepEvent, *, truncated: bool) -> EpisodeResult:
        """Return the record of the episode that a step, or who watched, ended."""
        return EpisodeResult(
            index=last.episode,
            seed=self._seed,
            steps=self._steps,
            reward=self._reward,
            terminated=last.terminated,
            truncated=truncated,
        )
