"""What a run tells those who watch it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rlmesh.runs.results import EpisodeResult, RunResult

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


class RunContext(Protocol):
    """What is known about a run before its first episode."""

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        ...

    @property
    def num_envs(self) -> int:
        """How many environments are stepped at once."""
        ...


@dataclass(frozen=True, slots=True)
class StepEvent:
    """One step: `observation` is what the model saw, `action` what it answered."""

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


class RunHooks:
    """Subclass and override what is of interest; what a hook raises ends the run.

    `on_run_end` is called exactly once for each `on_run_start`, whatever ends the run.
    """

    def on_run_start(self, context: RunContext) -> None:
        """The environment is open, no episode has started."""

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        """An episode is about to be reset."""

    def on_step(self, event: StepEvent) -> None:
        """A step was taken."""

    def on_episode_end(self, result: EpisodeResult) -> None:
        """An episode ended, with a score or without."""

    def on_run_end(self, result: RunResult) -> None:
        """The run ended; the result holds what was finished."""
