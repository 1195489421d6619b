"""What a run tells those who watch it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rlmesh.runs.results import EpisodeResult, RunResult

if TYPE_CHECKING:
    from rlmesh.runs.frames import FrameSource
    from rlmesh.specs import EnvContract


class RunContext(Protocol):
    """What is known about a run before its first episode."""

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        ...

    @property
    def num_envs(self) -> int:
        """How many episodes can be open at once: its lanes, or those of all environments."""
        ...

    def frame_sources(self) -> "tuple[FrameSource, ...]":
        """What can be looked at while the run goes on, the best first."""
        ...


@dataclass(frozen=True, slots=True)
class StepEvent:
    """One step: `observation` is what the model saw, `action` what it answered.

    `next_observation` is what the step gave; where a lane of a vector environment resets itself
    within a step, it is the last one of the episode all the same. `lane` is the lane of a vector
    environment, or the number of the environment where a run has several. `cut` is true where the
    episode is truncated by the run, and not by the environment.
    """

    episode: int
    seed: int
    step: int
    observation: Any  # what these are depends on the environment
    action: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    predict_ms: float
    step_ms: float
    next_observation: Any = None
    lane: int = 0
    cut: bool = False


class RunHooks:
    """Subclass and override what is of interest; what a hook raises ends the run.

    `on_run_end` is called exactly once for each `on_run_start`, whatever ends the run. Where
    several episodes are played at once, the calls for them are mixed, but never at the same time.
    An episode that is tried again (`retries`) has an `on_episode_start` for each attempt, and
    `on_episode_end` for the last.
    """

    def on_run_start(self, context: RunContext) -> None:
        """The environment is open, no episode has started."""

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        """An episode is about to be reset."""

    def on_step(self, event: StepEvent) -> None:
        """A step was taken."""

    def on_episode_end(self, result: EpisodeResult) -> None:
        """An episode ended, with a score or without."""

    def on_error(self, error: BaseException) -> None:
        """An attempt at an episode failed, or something ended the run; told before either does."""

    def on_run_end(self, result: RunResult) -> None:
        """The run ended; the result holds what was finished."""
