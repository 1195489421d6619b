"""Our own trainers on the local environment: what the platform adds to a job is what it is slower.

The settings are the job's own: none. Only the environment, the sink and the directory are local.
"""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
from references import Reference
from rlcore import EnvironmentIdentity
from rleaas.training.config import validate_training_config
from rleaas.training.loaded_policy import open_policy
from rleaas.training.trainer import Progress, TrainingTask, trainer_for

Policy = Callable[[Any], Any]


@dataclass(frozen=True)
class Local:
    """Opens local sessions, in whatever process."""

    reference: Reference

    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        """Make one more environment."""
        return gymnasium.make(self.reference.environment, **dict(self.reference.kwargs))  # type: ignore[arg-type]


@dataclass
class Curve:
    """Keeps the returns and the best checkpoint."""

    returns: list[float] = field(default_factory=list[float])
    best: tuple[float, Path] | None = None

    def episode_finished(self, progress: Progress) -> None:
        """Keep its return."""
        self.returns.append(progress.episode_reward or 0.0)

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """Nobody looks."""

    def log(self, line: str) -> None:
        """Nobody reads."""

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        """Nobody is alarmed."""

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        """Keep it if it is the best so far."""
        average = progress.avg_reward
        if average is not None and (self.best is None or average > self.best[0]):
            self.best = average, path

    def stop_requested(self) -> bool:
        """Never."""
        return False


def train(
    reference: Reference, settings: Mapping[str, object], seed: int
) -> tuple[Policy, float, int, list[float]]:
    """The best policy, the seconds of training, its steps, and the return of each episode."""
    with tempfile.TemporaryDirectory(prefix="bench-own-") as directory:
        asked = {"seed": seed, "target_reward": reference.target}
        config = validate_training_config(
            reference.algorithm,
            reference.episodes,
            reference.max_steps,
            {**asked, "average_over": reference.average_over},
        )
        task = TrainingTask(
            job_id="alone",
            config=config,
            seed=seed,
            environment=EnvironmentIdentity(reference.environment, None, "sha256:" + "0" * 64),
            make_env=Local(reference),
            directory=Path(directory),
        )
        curve = Curve()
        results = trainer_for(reference.algorithm).train(task, curve)
        if curve.best is None:
            raise RuntimeError(f"{reference.algorithm} saved no checkpoint")
        policy = open_policy(curve.best[1])
        progress = results.progress
        return policy.predict, progress.wall_seconds, progress.timestep, curve.returns
