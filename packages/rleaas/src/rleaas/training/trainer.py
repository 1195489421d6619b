"""What every training algorithm is given and what it gives back."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlcore import EnvironmentIdentity, MissingDependencyError

from rleaas.training.config import TrainingConfig, validate_algorithm

if TYPE_CHECKING:
    import gymnasium

# Observations and actions are whatever the environment's spaces say.
Env = "gymnasium.Env[Any, Any]"
EnvFactory = Callable[[], "gymnasium.Env[Any, Any]"]


class StopReason(enum.StrEnum):
    """Why a training ended without failing."""

    EPISODE_BUDGET = "episode_budget"
    TIMESTEP_BUDGET = "timestep_budget"
    TARGET_REWARD = "target_reward"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a training stands after an episode.

    Attributes:
        episode: finished episodes.
        timestep: environment steps, over all sessions.
        episode_reward: the return of the last finished episode.
        episode_length: its steps.
        avg_reward: the running mean return (`average_over` episodes, or all while there are fewer).
        success_rate: the share of successes among them; None where nothing tells success.
        wall_seconds: time since training began.
    """

    episode: int
    timestep: int
    episode_reward: float | None
    episode_length: int | None
    avg_reward: float | None
    success_rate: float | None
    wall_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResults:
    """What a finished or cancelled training reached."""

    stopped_by: StopReason
    progress: Progress
    best_reward: float | None
    target_reward: float | None
    seed: int

    def to_dict(self) -> dict[str, object]:
        """The job's `results` object."""
        return {
            "stopped_by": str(self.stopped_by),
            "current_episode": self.progress.episode,
            "total_steps": self.progress.timestep,
            "avg_reward": self.progress.avg_reward,
            "success_rate": self.progress.success_rate,
            "best_reward": self.best_reward,
            "target_reward": self.target_reward,
            "seed": self.seed,
            "wall_seconds": round(self.progress.wall_seconds, 3),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """One training to do.

    Attributes:
        job_id: whose it is; checkpoints carry it.
        config: the checked request.
        environment: what is trained on, written into every checkpoint.
        make_env: opens one more session of the environment.
        directory: where checkpoint files are written.
        resume_from: a checkpoint file whose digest was already verified.
    """

    job_id: str
    config: TrainingConfig
    environment: EnvironmentIdentity
    make_env: EnvFactory
    directory: Path
    resume_from: Path | None = None


class TrainingSink(Protocol):
    """Where a training's reports go, and where its orders come from."""

    def episode_finished(self, progress: Progress) -> None:
        """An episode ended."""
        ...

    def rollout_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """The policy was updated; `diagnostics` are the algorithm's own numbers."""
        ...

    def log(self, line: str) -> None:
        """One line for people."""
        ...

    def checkpoint_saved(self, path: Path, label: str, progress: Progress) -> None:
        """A complete checkpoint file lies at `path`."""
        ...

    def stop_requested(self) -> bool:
        """Whether to stop at once; asked after every step."""
        ...


class Trainer(Protocol):
    """One algorithm."""

    def train(self, task: TrainingTask, sink: TrainingSink) -> TrainingResults:
        """Train until a budget, the target or a stop request ends it.

        Raises:
            rlcore.Error: the environment, the request or the training itself failed; the message
                says which.
        """
        ...


def trainer_for(algorithm: str) -> Trainer:
    """The trainer of a validated algorithm name.

    Raises:
        ConfigurationError: the algorithm is not in this build.
        MissingDependencyError: the `rleaas[train]` extra is not installed.
    """
    name = validate_algorithm(algorithm)
    try:
        from rleaas.training.ppo import PPOTrainer
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{name} needs {error.name!r}, which is not installed",
            hint="Install the extra: pip install 'rleaas[train]'",
        ) from error
    return PPOTrainer()
