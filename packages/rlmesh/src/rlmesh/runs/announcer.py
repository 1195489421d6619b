"""Who is told of a run: hooks, callbacks, progress, the viewer and the journal."""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from rlmesh.runs.budget import Plan
from rlmesh.runs.hooks import RunContext, RunHooks, StepEvent
from rlmesh.runs.journal import Journal
from rlmesh.runs.progress import Tracker
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.views import ViewHooks


class Announcer:
    """Tells everybody, one call at a time, so that none of them has to know of threads.

    Args:
        hooks: the observers, in order.
        on_episode: called with each result.
        tracker: counts for the progress.
        journal: where results are kept before anybody is told of them.

    Attributes:
        wants_steps: whether anybody looks at single steps.
        ticks: whether the progress is shown between episodes.
    """

    def __init__(
        self,
        hooks: Sequence[RunHooks],
        *,
        on_episode: Callable[[EpisodeResult], object] | None,
        tracker: Tracker,
        journal: Journal | None,
    ) -> None:
        self._hooks = tuple(hooks)
        self._on_step = [
            hook.on_step for hook in hooks if type(hook).on_step is not RunHooks.on_step
        ]
        self._on_reset = [hook.on_reset for hook in hooks if isinstance(hook, ViewHooks)]
        self._on_episode = on_episode
        self._tracker = tracker
        self._journal = journal
        self._turn: AbstractContextManager[object] = nullcontext()
        self.wants_steps = bool(self._on_step)
        self.ticks = tracker.watched

    def expect_threads(self) -> None:
        """Prepare for several players at once; a hook may call back into the run."""
        self._turn = threading.RLock()

    def resumed(self, finished: Iterable[EpisodeResult]) -> None:
        """Count the episodes of an earlier sitting; nobody is told of them again."""
        self._tracker.resume(finished)

    def run_start(self, context: RunContext) -> None:
        """Tell that the environments are open."""
        for hook in self._hooks:
            hook.on_run_start(context)

    def episode_start(self, plan: Plan) -> None:
        """Tell that an episode is about to be reset."""
        with self._turn:
            for hook in self._hooks:
                hook.on_episode_start(episode=plan.index, seed=plan.seed)

    def reset(self, plan: Plan, observation: object, lane: int) -> None:
        """Tell viewers what an episode begins with."""
        if self._on_reset:
            with self._turn:
                for on_reset in self._on_reset:
                    on_reset(observation, episode=plan.index, seed=plan.seed, lane=lane)

    def step(self, event: StepEvent) -> None:
        """Tell of a step."""
        with self._turn:
            for on_step in self._on_step:
                on_step(event)

    def tick(self, steps: int) -> None:
        """Tell how far an episode has come."""
        with self._turn:
            self._tracker.steps(steps)

    def error(self, error: BaseException) -> None:
        """Tell of a failure."""
        with self._turn:
            for hook in self._hooks:
                hook.on_error(error)

    def keep(self, result: EpisodeResult) -> None:
        """Write a result into the journal, before anybody is told of it."""
        if self._journal is not None:
            self._journal.append(result)

    def episode_end(self, result: EpisodeResult) -> None:
        """Tell of a result."""
        with self._turn:
            self._tracker.episode(result)
            for hook in self._hooks:
                hook.on_episode_end(result)
            if self._on_episode is not None:
                self._on_episode(result)

    def run_end(self, result: RunResult, cause: BaseException | None) -> None:
        """Tell that the run ended; where that has a cause, what hooks raise is noted there.

        Raises:
            BaseException: what a hook raised, where there is no cause.
        """
        self._tracker.end()
        failure: BaseException | None = None
        for hook in self._hooks:
            try:
                hook.on_run_end(result)
            except BaseException as error:  # the others are told all the same
                if cause is not None:
                    what = f"{type(error).__name__}: {error}"
                    cause.add_note(f"on_run_end failed as well: {what}")
                failure = failure or error
        if failure is not None and cause is None:
            raise failure
