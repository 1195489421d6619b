"""`rlmesh.run`: evaluate a model on an environment over whole episodes."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import SupportsFloat, SupportsIndex

from rlcore import Error, IdentityError, RLMeshException, RunFailed, RunInterrupted

from rlmesh.runs.arguments import checked_hooks, checked_max_failures
from rlmesh.runs.budget import Limits, Plan, limits, plans
from rlmesh.runs.driver import Driver
from rlmesh.runs.episode import EnvironmentFailed, Episode
from rlmesh.runs.grading import Criterion, Grader, grader
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.progress import ProgressCallback, Tracker, watcher
from rlmesh.runs.provenance import package_versions
from rlmesh.runs.results import EpisodeResult, RunResult

_LOST = (Outcome.INFRA_ERROR, Outcome.TIMEOUT)


class _Stopped(Exception):
    """The run cannot go on; a signal inside this room, never raised out of it."""

    def __init__(self, reason: str, cause: BaseException | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.cause = cause


def run(
    model: object,
    env: object,
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
    close_env: bool = False,
    trial_index_base: int = 0,
) -> RunResult:
    """Play whole episodes and return what happened, one typed outcome for each.

    A failure of the environment or of the connection costs the episode its score, never more:
    the run goes on with the next one, and re-dials or re-makes what it opened itself.

    Args:
        model: a `Model`, a `Model` subclass (made here and closed at the end), or `RANDOM_SAMPLE`.
        env: an environment object, a handle such as `RemoteEnv`, a factory, an address such as
            `tcp://127.0.0.1:50051` or `rleaas://NAME@3`, or something that has an `address`.
        seeds: one seed for each episode; of an endless iterator the first `episodes`.
        episodes: how many episodes; one when neither this nor `seeds` is given.
        seed: without `seeds`, episode i gets the seed `seed + i`.
        max_episode_steps: cut an episode off after so many steps, at the latest after 100 000.
        max_episode_seconds: cut an episode off after so many seconds. This is looked at between
            steps; how long one call to a server may take is `request_timeout_seconds` of a
            `RemoteEnv`, and nothing interrupts an environment that is called in this process.
        success: decides whether an episode succeeded; by default the last info says so.
        success_threshold: an episode succeeds when its reward reaches this.
        max_failures: stop when more episodes than this ended without a score.
        hooks: observers of episodes and steps.
        on_episode: called with each result.
        progress: True or False for a line on stderr, a function for calls; by default a line
            when stderr is a terminal.
        close_env: also close an environment that was given, and shut down a server that was given
            by its address, where it allows that.
        trial_index_base: the trial number of the first episode, sent to environments that
            declare the reset option `trial_index`.

    Raises:
        RunFailed: the run could not go on; `partial` holds the valid result so far.
        RunInterrupted: Ctrl-C; a `KeyboardInterrupt` whose `partial` holds the result so far.
        ConfigurationError: an argument is wrong.
        IdentityError: the environment is not, or no longer, the registered one.
        TransportError: nothing answers at the address.

    What a model or a hook raises comes out as it is, with the result so far as its `partial`.
    """
    planned = plans(seeds=seeds, episodes=episodes, seed=seed, trial_index_base=trial_index_base)
    bounds = limits(max_episode_steps=max_episode_steps, max_episode_seconds=max_episode_seconds)
    judge = grader(success=success, success_threshold=success_threshold)
    failures = checked_max_failures(max_failures)
    observers = checked_hooks(hooks, on_episode)
    watching = watcher(progress)
    if not planned:
        return RunResult(asked=0, package_versions=package_versions())
    driver = Driver(model, env)
    evaluation = Evaluation(
        driver,
        planned,
        limits=bounds,
        grader=judge,
        max_failures=failures,
        hooks=observers,
        on_episode=on_episode,
        tracker=Tracker(len(planned), watching),
    )
    try:
        result = evaluation.play()
    except BaseException as error:
        try:
            driver.close(close_env=close_env)
        except Exception as second:
            error.add_note(f"Closing failed as well: {type(second).__name__}: {second}")
        raise
    try:
        driver.close(close_env=close_env)
    except Exception as error:
        message = f"every episode was played, but closing failed: {error}"
        raise RunFailed(message, partial=result) from error
    return result


class Evaluation:
    """The state of one run: what is planned, what is finished, who is told."""

    def __init__(
        self,
        driver: Driver,
        planned: tuple[Plan, ...],
        *,
        limits: Limits,
        grader: Grader,
        max_failures: int | None,
        hooks: RunHooks,
        on_episode: Callable[[EpisodeResult], object] | None,
        tracker: Tracker,
    ) -> None:
        self._driver = driver
        self._planned = planned
        self._limits = limits
        self._grader = grader
        self._max_failures = max_failures
        self._hooks = hooks
        self._on_episode = on_episode
        self._tracker = tracker
        self._results: list[EpisodeResult] = []
        self._playing: Episode | None = None
        self._started_at = datetime.now(UTC)
        self._identity = driver.identity
        self._failure: RLMeshException | None = None
        self._lost_in_a_row = 0

    def play(self) -> RunResult:
        """Play every planned episode.

        Raises:
            RunFailed: the run could not go on.
            RunInterrupted: Ctrl-C.
        """
        try:
            self._hooks.on_run_start(self._driver)
            for plan in self._planned:
                self._record(self._episode(plan))
        except _Stopped as stop:
            partial = self._cut_short(stop.reason, stop)
            message = f"the run stopped after {partial.num_episodes} episodes: {stop.reason}"
            hint = "the error's 'partial' holds what was finished"
            raise RunFailed(message, partial=partial, hint=hint) from stop.cause
        except KeyboardInterrupt as error:
            partial = self._cut_short("interrupted", error)
            message = f"interrupted: {partial.coverage}"
            raise RunInterrupted(message, partial=partial) from error
        except BaseException as error:
            # The model's or a hook's own exception keeps its type and takes the result along.
            error.__dict__["partial"] = self._cut_short(f"{type(error).__name__}: {error}", error)
            raise
        self._tracker.end()
        result = self._result(stopped=None)
        self._hooks.on_run_end(result)
        return result

    def _episode(self, plan: Plan) -> EpisodeResult:
        self._hooks.on_episode_start(episode=plan.index, seed=plan.seed)
        episode = self._playing = Episode(plan, self._limits)
        watched = type(self._hooks).on_step is not RunHooks.on_step
        try:
            episode.play(
                self._driver,
                on_step=self._hooks.on_step if watched else None,
                on_tick=self._tracker.steps if self._tracker.watched else None,
            )
            result = episode.finished(self._grader)
            self._failure = None
        except EnvironmentFailed as failure:
            result = episode.failed(failure.outcome, failure.error)
            self._failure = failure.error
        self._driver.end_episode()
        self._playing = None
        return result

    def _record(self, result: EpisodeResult) -> None:
        self._results.append(result)
        self._tracker.episode(result)
        self._hooks.on_episode_end(result)
        if self._on_episode is not None:
            self._on_episode(result)
        failures = sum(not done.outcome.scored for done in self._results)
        if self._max_failures is not None and failures > self._max_failures:
            reason = f"{failures} episodes failed, more than max_failures={self._max_failures}"
            raise _Stopped(f"{reason}; the last: {result.error}", self._failure)
        self._lost_in_a_row = 1 + self._lost_in_a_row if result.outcome in _LOST else 0
        if self._lost_in_a_row and len(self._results) < len(self._planned):
            self._recover(result)

    def _recover(self, result: EpisodeResult) -> None:
        open_again = self._driver.target.reopen
        if open_again is not None:
            try:
                self._driver.reopen(open_again)
            except IdentityError:
                raise
            except Error as error:
                reason = f"the environment was lost ({result.error}) and cannot be opened again"
                raise _Stopped(f"{reason}: {error}", error) from error
            self._require_same_environment()
        elif self._lost_in_a_row > 1:
            raise _Stopped(f"two episodes in a row were lost: {result.error}", self._failure)

    def _require_same_environment(self) -> None:
        found = self._driver.identity
        if found != self._identity:
            raise _Stopped(f"the environment was {self._identity} and is now {found}", None)

    def _cut_short(self, reason: str, error: BaseException) -> RunResult:
        self._tracker.end()
        if self._playing is not None:
            self._results.append(self._playing.failed(Outcome.CANCELLED, error))
        result = self._result(stopped=reason)
        try:
            self._hooks.on_run_end(result)
        except Exception as second:
            error.add_note(f"on_run_end failed as well: {type(second).__name__}: {second}")
        return result

    def _result(self, *, stopped: str | None) -> RunResult:
        model = self._driver.model
        return RunResult(
            episodes=tuple(self._results),
            environment=self._identity,
            model=self._driver.model_name,
            model_digest=None if model is None else model.digest,
            asked=len(self._planned),
            stopped=stopped,
            started_at=self._started_at,
            finished_at=datetime.now(UTC),
            package_versions=package_versions(),
            advisories=self._driver.target.advisories,
        )
