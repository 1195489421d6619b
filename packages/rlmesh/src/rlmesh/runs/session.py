"""`rlmesh.session`: drive a model on an environment step by step."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, SupportsFloat, SupportsIndex

from rlcore import ConfigurationError, SessionClosed

from rlmesh.runs.arguments import checked_hooks, checked_max_failures
from rlmesh.runs.budget import limits, plans
from rlmesh.runs.driver import Driver
from rlmesh.runs.grading import Criterion, grader
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.local_env import Step
from rlmesh.runs.progress import ProgressCallback, Tracker, watcher
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.run import Evaluation

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


def session(model: object, env: object, *, close_env: bool = False) -> "Session":
    """Bind a model to an environment, to be driven by `reset`, `predict` and `step`.

    Takes what `rlmesh.run` takes. The environment is opened at the first use.

    Args:
        model: a `Model`, a `Model` subclass, or `RANDOM_SAMPLE`.
        env: an environment, a handle, a factory, an address, or something with an `address`.
        close_env: also close an environment that was given, and shut down a server that was given
            by its address, where it allows that.
    """
    return Session(lambda: Driver(model, env), close_env=close_env)


class Session:
    """One model on one environment, step by step; made by `rlmesh.session`.

    A context manager. After `close`, every use raises `SessionClosed`.
    """

    def __init__(self, connect: Callable[[], Driver], *, close_env: bool) -> None:
        self._connect = connect
        self._close_env = close_env
        self._driver: Driver | None = None
        self._closed = False
        self._done = False

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        return self._connected().contract

    @property
    def num_envs(self) -> int:
        """How many environments are stepped at once: one."""
        return self._connected().num_envs

    @property
    def done(self) -> bool:
        """Whether the open episode is terminated or truncated."""
        return self._done

    def reset(
        self, *, seed: int | None = None, trial_index: int | None = None
    ) -> tuple[Any, dict[str, Any]]:  # Any: an observation
        """Start the next episode and return its first observation and info.

        Raises:
            ConfigurationError: a trial index for an environment that declares no such option.
        """
        driver = self._connected()
        if trial_index is not None and not driver.takes_trial:
            raise ConfigurationError(
                f"the environment does not take a trial index ({trial_index} was given)",
                hint="its metadata would declare the reset option 'trial_index'",
            )
        self._done = False
        return driver.reset(seed=seed, trial=trial_index)

    def predict(self, observation: Any) -> Any:  # Any: as the environment and the model have it
        """Return the model's action for an observation."""
        return self._connected().predict(observation)

    def step(self, action: Any) -> Step:  # Any: an action
        """Step the environment."""
        step = self._connected().step(action)
        self._done = step[2] or step[3]
        return step

    def run(
        self,
        *,
        seeds: Iterable[SupportsIndex] | None = None,
        episodes: int | None = None,
        seed: int = 0,
        max_episode_steps: int | None = None,
        max_episode_seconds: float | None = None,
        success: Criterion | None = None,
        success_threshold: SupportsFloat | None = None,
        max_failures: int | None = None,
        hooks: RunHooks | None = None,
        on_episode: Callable[[EpisodeResult], object] | None = None,
        progress: bool | ProgressCallback | None = None,
        trial_index_base: int = 0,
    ) -> RunResult:
        """Play whole episodes as `rlmesh.run` does, and leave the session open."""
        planned = plans(
            seeds=seeds, episodes=episodes, seed=seed, trial_index_base=trial_index_base
        )
        bounds = limits(
            max_episode_steps=max_episode_steps, max_episode_seconds=max_episode_seconds
        )
        judge = grader(success=success, success_threshold=success_threshold)
        failures = checked_max_failures(max_failures)
        observers = checked_hooks(hooks, on_episode)
        watching = watcher(progress)
        return Evaluation(
            self._connected(),
            planned,
            limits=bounds,
            grader=judge,
            max_failures=failures,
            hooks=observers,
            on_episode=on_episode,
            tracker=Tracker(len(planned), watching),
        ).play()

    def close(self) -> None:
        """End the episode and release what the session opened; closing twice is fine."""
        driver, self._driver = self._driver, None
        self._closed = True
        if driver is not None:
            driver.close(close_env=self._close_env)

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
        state = "closed" if self._closed else "created" if self._driver is None else "connected"
        return f"<rlmesh.Session {state}>"

    def _connected(self) -> Driver:
        if self._closed:
            raise SessionClosed("the session is closed", hint="make another one")
        if self._driver is None:
            self._driver = self._connect()
        return self._driver
