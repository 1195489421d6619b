"""What ends a training from outside: an order, the budget of steps, the quota."""

from __future__ import annotations

import multiprocessing

from rlcore import TrainingJobFailed

from rleaas.training.ledger import EpisodeLedger
from rleaas.training.trainer import StopReason, TrainingSink, TrainingTask


class Limits:
    """Looked at after every step, by every trainer."""

    def __init__(self, task: TrainingTask, ledger: EpisodeLedger, sink: TrainingSink) -> None:
        self._job_id = task.job_id
        self._total = task.config.total_timesteps
        self._quota = task.config.compute_quota
        self._ledger = ledger
        self._sink = sink

    @property
    def steps_spent(self) -> bool:
        """Whether the budget of steps is used up."""
        return self._total is not None and self._ledger.timestep >= self._total

    def reached(self) -> StopReason | None:
        """Why to stop now; None: go on.

        Raises:
            TrainingJobFailed: the quota is used up (`quota_exceeded`); save a checkpoint.
        """
        if self._sink.stop_requested():
            return StopReason.CANCELLED
        if self.steps_spent:
            return StopReason.TIMESTEP_BUDGET
        steps = self._ledger.timestep
        if self._quota is not None:
            self._check(self._quota.max_timesteps, steps, "timesteps")
            self._check(self._quota.max_wall_seconds, self._ledger.seconds, "wall_seconds")
            self._check_processes(self._quota.max_processes)
        return None

    def _check(self, limit: float | None, used: float, what: str) -> None:
        if limit is not None and used >= limit:
            raise self._exceeded(f"compute_quota.max_{what} {limit} is used up")

    def _check_processes(self, most: int | None) -> None:
        if most is None:
            return
        there = 1 + len(multiprocessing.active_children())
        if there > most:
            raise self._exceeded(
                f"the job has {there} processes, more than compute_quota.max_processes {most}"
            )

    def _exceeded(self, what: str) -> TrainingJobFailed:
        return TrainingJobFailed(
            self._job_id,
            what,
            code="quota_exceeded",
            hint="Raise the quota and resume from the last checkpoint",
        )
