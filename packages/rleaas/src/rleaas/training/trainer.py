"""What every training algorithm is given and what it gives back."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from rlcore import EnvironmentIdentity, MissingDependencyError

from rleaas.training.algorithms import ALGORITHMS, validate_algorithm
from rleaas.training.config import TrainingConfig

if TYPE_CHECKING:
    import gymnasium


class SessionFactory(Protocol):
    """Opens sessions of the environment; picklable, so that other processes may open some too.

    What it opens already applies the reward function, verifiers, curriculum, pacing and retries.
    """

    # Observations and actions are whatever the environment's spaces say.
    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        """Open one more session; `session` is its number in this job, from 0."""
        ...


@runtime_checkable
class ExpectsSessions(Protocol):
    """A `SessionFactory` that makes use of knowing how many sessions there are."""

    def expect(self, sessions: int, *, first: int = 0) -> None:
        """Hear how many were opened in this process, from number `first` on."""
        ...


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
        wall_seconds: time since training began, its network being built.
        tier: the curriculum's tier that the last episode was of.
        verifier_scores: what each verifier gave the last episode, by its id.
        composite_verifier_score: their weighted mean.
    """

    episode: int
    timestep: int
    episode_reward: float | None
    episode_length: int | None
    avg_reward: float | None
    success_rate: float | None
    wall_seconds: float
    tier: int | None = None
    verifier_scores: Mapping[str, float] | None = None
    composite_verifier_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResults:
    """What a finished or cancelled training reached."""

    stopped_by: StopReason
    progress: Progress
    best_reward: float | None
    target_reward: float | None
    seed: int
    updates: int
    """How often the policy was updated, over all attempts."""

    def to_dict(self) -> dict[str, object]:
        """The job's `results` object."""
        return {
            "updates": self.updates,
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
class Resume:
    """Where a training goes on from; the digests of the files were already verified.

    Attributes:
        policy: the checkpoint's policy file.
        state: the trainer's state beside it, where one was stored.
        same_job: True is a restart of this job: counters, the ledger's window, random generators,
            optimiser, replay buffer and sessions go on exactly. False is a start from another
            job's checkpoint: its weights, with optimiser and replay buffer where they fit, and
            counters from zero.
    """

    policy: Path
    state: Path | None = None
    same_job: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """One training to do.

    Attributes:
        job_id: whose it is; checkpoints carry it.
        config: the checked request.
        seed: the run's seed, given or drawn.
        environment: what is trained on, written into every checkpoint.
        make_env: opens one more session of the environment.
        directory: where checkpoint files are written.
        resume: what to go on from.
    """

    job_id: str
    config: TrainingConfig
    seed: int
    environment: EnvironmentIdentity
    make_env: SessionFactory
    directory: Path
    resume: Resume | None = None


class TrainingSink(Protocol):
    """Where a training's reports go, and where its orders come from."""

    def episode_finished(self, progress: Progress) -> None:
        """An episode ended."""
        ...

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """The policy was updated; `diagnostics` are its loss parts, entropy, steps per second."""
        ...

    def log(self, line: str) -> None:
        """One line for people."""
        ...

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        """Something happened that people want to hear of at once."""
        ...

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        """A complete checkpoint file lies at `path`, and what an exact resume needs at `state`."""
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
        MissingDependencyError: its extra is not installed.
    """
    one = ALGORITHMS[validate_algorithm(algorithm)]
    module, _, name = one.trainer.partition(":")
    try:
        made = getattr(import_module(module), name)()
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{one.name} needs {error.name!r}, which is not installed",
            hint=f"Install the extra: pip install 'rleaas[{one.extra}]'",
        ) from error
    return cast("Trainer", made)
