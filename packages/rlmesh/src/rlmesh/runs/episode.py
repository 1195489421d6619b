"""One episode, from its reset to its outcome."""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

from rlcore import (
    CallTimeout,
    EnvironmentException,
    IdentityError,
    InvalidActionError,
    InvalidObservationError,
    RLMeshException,
)

from rlmesh.runs.budget import Limits, Plan
from rlmesh.runs.driver import Driver
from rlmesh.runs.grading import Grader
from rlmesh.runs.hooks import StepEvent
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult


class EnvironmentFailed(Exception):
    """The environment's side failed; a signal between episode and run, never raised out of them."""

    def __init__(self, outcome: Outcome, error: RLMeshException) -> None:
        super().__init__(outcome, error)
        self.outcome = outcome
        self.error = error


class Episode:
    """Plays one episode and keeps count, so that it can be reported wherever it stops."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        self.plan = plan
        self._limits = limits
        self._started = perf_counter()
        self.steps = 0
        self.reward = 0.0
        self._terminated = False
        self._truncated = False
        self._predict_s = 0.0
        self._step_s = 0.0
        self._info: dict[str, Any] = {}

    def play(
        self,
        driver: Driver,
        *,
        on_step: Callable[[StepEvent], None] | None,
        on_tick: Callable[[int], None] | None,
    ) -> None:
        """Play to the end or to a limit.

        Raises:
            EnvironmentFailed: the environment, or the way to it, failed.
            IdentityError: another environment is served now.
            InvalidActionError: the model's action has not the form of the action space.
        """
        with_env = _Guard(driver)
        observation, self._info = with_env.reset(self.plan)
        while not (self._terminated or self._truncated):
            before = perf_counter()
            action = driver.predict(observation)
            predicted = perf_counter()
            following, reward, terminated, truncated, info = with_env.step(action)
            stepped = perf_counter()
            if not math.isfinite(reward):
                raise EnvironmentFailed(Outcome.ENV_ERROR, self._no_reward(reward, driver))
            self.steps += 1
            self.reward += reward
            self._predict_s += predicted - before
            self._step_s += stepped - predicted
            self._terminated = terminated
            self._truncated = truncated or (not terminated and self._over(stepped))
            self._info = info
            if on_step is not None:
                on_step(
                    StepEvent(
                        episode=self.plan.index,
                        seed=self.plan.seed,
                        step=self.steps - 1,
                        observation=observation,
                        action=action,
                        reward=reward,
                        terminated=terminated,
                        truncated=self._truncated,
                        info=info,
                        predict_ms=(predicted - before) * 1000,
                        step_ms=(stepped - predicted) * 1000,
                    )
                )
            if on_tick is not None:
                on_tick(self.steps)
            observation = following

    def finished(self, grader: Grader) -> EpisodeResult:
        """Return the record of an episode that was played to its end."""
        ended = self._result(Outcome.COMPLETED, error=None)
        return grader.grade(ended, self._info)

    def failed(self, outcome: Outcome, error: BaseException) -> EpisodeResult:
        """Return the record of an episode that has no score."""
        return self._result(outcome, error=f"{type(error).__name__}: {error}")

    def _result(self, outcome: Outcome, *, error: str | None) -> EpisodeResult:
        steps = self.steps
        return EpisodeResult(
            index=self.plan.index,
            seed=self.plan.seed,
            steps=steps,
            reward=self.reward,
            terminated=self._terminated,
            truncated=self._truncated,
            duration_s=perf_counter() - self._started,
            predict_ms=self._predict_s * 1000 / steps if steps else None,
            step_ms=self._step_s * 1000 / steps if steps else None,
            trial=self.plan.trial,
            outcome=outcome,
            error=error,
        )

    def _no_reward(self, reward: float, driver: Driver) -> EnvironmentException:
        name = None if driver.identity is None else driver.identity.name
        step = self.steps + 1
        whose = "" if name is None else f" of {name!r}"
        return EnvironmentException(
            f"step{whose} (seed {self.plan.seed}, step {step}) gave no score: reward is {reward}",
            operation="step",
            environment=name,
            seed=self.plan.seed,
            step=step,
        )

    def _over(self, now: float) -> bool:
        seconds = self._limits.seconds
        return self.steps >= self._limits.steps or (
            seconds is not None and now - self._started >= seconds
        )


class _Guard:
    """Tells failures of the environment's side from everything else that may be raised."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def reset(self, plan: Plan) -> tuple[Any, dict[str, Any]]:
        try:
            return self._driver.reset(seed=plan.seed, trial=plan.trial)
        except RLMeshException as error:
            raise EnvironmentFailed(_outcome_of(error), error) from error

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        try:
            return self._driver.step(action)
        except InvalidActionError:
            raise
        except RLMeshException as error:
            raise EnvironmentFailed(_outcome_of(error), error) from error


def _outcome_of(error: RLMeshException) -> Outcome:
    # Neither is a failure of one episode: the run has to end.
    if isinstance(error, KeyboardInterrupt | IdentityError):
        raise error
    if isinstance(error, EnvironmentException | InvalidObservationError):
        return Outcome.ENV_ERROR
    return Outcome.TIMEOUT if isinstance(error, CallTimeout) else Outcome.INFRA_ERROR
