"""`python -m rleaas.training.worker`: does one training job of a server."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore import ConflictError, Endpoint

from rleaas.training.assignment import TrainingAssignment, read_assignment
from rleaas.training.config import validate_training_config
from rleaas.training.reporter import Reporter
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.trainer import (
    EnvFactory,
    Progress,
    StopReason,
    TrainingTask,
    trainer_for,
)
from rleaas.training.worker_process import Ending, run_worker

if TYPE_CHECKING:
    import gymnasium

RESOLVE_SECONDS = 120.0
STEP_SECONDS = 60.0


class ReportingSink:
    """Turns what happens in a training into reports and uploads."""

    def __init__(self, job_id: str, reporter: Reporter, switch: StopSwitch) -> None:
        self._job_id = job_id
        self._reporter = reporter
        self._switch = switch

    def episode_finished(self, progress: Progress) -> None:
        """Report the episode's return and the running means."""
        numbers = _numbers(progress)
        numbers["episode_reward"] = progress.episode_reward
        numbers["episode_length"] = progress.episode_length
        self._reporter.report("metric", numbers)

    def rollout_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """Report the algorithm's own numbers."""
        self._reporter.report("metric", {**_numbers(progress), "metrics": dict(diagnostics)})

    def log(self, line: str) -> None:
        """Report a line of the job's log."""
        self._reporter.report("log", {"line": line})

    def checkpoint_saved(self, path: Path, label: str, progress: Progress) -> None:
        """Upload the file."""
        checkpoint_id = f"ckpt_{self._job_id}_{progress.episode}"
        numbers = _numbers(progress)
        facts: dict[str, str | int | float] = {"label": label}
        for key in ("episode", "timestep", "avg_reward", "success_rate"):
            value = numbers[key]
            if isinstance(value, int | float):
                facts[key] = value
        try:
            self._reporter.upload(checkpoint_id, path, facts)
        except ConflictError as error:
            if not self._switch.requested:
                raise
            self.log(f"checkpoint {checkpoint_id} was not taken after the stop: {error}")
        else:
            self.log(f"saved checkpoint {checkpoint_id} ({label}) at episode {progress.episode}")

    def stop_requested(self) -> bool:
        """Whether the server or a signal ended the job."""
        return self._switch.requested


def train(reporter: Reporter, switch: StopSwitch) -> Ending:
    """Fetch the assignment, train, and say what came of it.

    Raises:
        rlcore.Error: what failed, on which thing.
    """
    assignment = read_assignment(TrainingAssignment, reporter.assignment())
    config = validate_training_config(
        assignment.algorithm, assignment.num_episodes, assignment.max_steps, assignment.config
    )
    trainer = trainer_for(config.algorithm)
    sink = ReportingSink(assignment.id, reporter, switch)
    if config.simulation is not None and config.simulation.speed is not None:
        sink.log("simulation.speed changes nothing: the environment steps as fast as it can")
    identity = assignment.environment.identity
    reporter.report("started", {"pid": os.getpid(), "environment": identity.to_dict()})
    # Before anything is opened: until the server has heard this, a cancel kills this process.
    reporter.flush()
    endpoint = assignment.environment.endpoint(timeout=RESOLVE_SECONDS)
    with tempfile.TemporaryDirectory(prefix=f"rleaas-{assignment.id}-") as directory:
        resume_from = None
        if assignment.resume is not None:
            resume_from = Path(directory) / f"{assignment.resume.id}.zip"
            reporter.download(assignment.resume.id, assignment.resume.sha256, resume_from)
        results = trainer.train(
            TrainingTask(
                job_id=assignment.id,
                config=config,
                environment=identity,
                make_env=session_factory(endpoint, config.step_timeout or STEP_SECONDS),
                directory=Path(directory),
                resume_from=resume_from,
            ),
            sink,
        )
    stopped = results.stopped_by is StopReason.CANCELLED
    return Ending({"results": results.to_dict()}, stopped=stopped)


def session_factory(endpoint: Endpoint, step_seconds: float) -> EnvFactory:
    """Opens sessions of the served environment, whose every step and reset is bounded."""

    def make_env() -> gymnasium.Env[Any, Any]:
        from rlmesh.numpy import RemoteEnv

        return RemoteEnv(endpoint, request_timeout_seconds=step_seconds)

    return make_env


def _numbers(progress: Progress) -> dict[str, object]:
    return {
        "episode": progress.episode,
        "timestep": progress.timestep,
        "avg_reward": progress.avg_reward,
        "success_rate": progress.success_rate,
        "wall_seconds": round(progress.wall_seconds, 3),
    }


def main() -> int:
    """Run the worker's command line."""
    return run_worker("training", train)


if __name__ == "__main__":
    sys.exit(main())
