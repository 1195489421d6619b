"""What happens between two steps of PPO: episodes are booked, orders and limits are obeyed."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from rlcore import TrainingJobFailed
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter

from rleaas.training.ledger import EpisodeLedger
from rleaas.training.trainer import Progress, StopReason, TrainingSink, TrainingTask

Save = Callable[[str, Progress], None]


class JobCallback(BaseCallback):
    """Books finished episodes, saves checkpoints, and stops the training when it is time."""

    def __init__(
        self,
        ledger: EpisodeLedger,
        sink: TrainingSink,
        task: TrainingTask,
        *,
        checkpoint_interval: int,
        save: Save,
    ) -> None:
        super().__init__()
        self._ledger = ledger
        self._sink = sink
        self._task = task
        self._interval = checkpoint_interval
        self._save = save
        self.stopped_by: StopReason | None = None

    def _on_rollout_start(self) -> None:
        self._ledger.rollouts += 1

    def _on_step(self) -> bool:
        self._ledger.timestep = self.num_timesteps
        dones = self.locals["dones"]
        if dones.any():
            infos = cast("list[dict[str, Any]]", self.locals["infos"])
            for index in np.flatnonzero(dones):
                self._book(infos[index])
                if self.stopped_by is not None:
                    return False
        self.stopped_by = self._order() or self.stopped_by
        return self.stopped_by is None

    def _book(self, info: Mapping[str, Any]) -> None:
        episode = info["episode"]
        progress = self._ledger.add(episode["r"], episode["l"], info)
        self._sink.episode_finished(progress)
        if self._ledger.spent:
            self.stopped_by = StopReason.EPISODE_BUDGET
        elif self._ledger.target_reached:
            self.stopped_by = StopReason.TARGET_REWARD
        elif progress.episode % self._interval == 0:
            self._save("checkpoint", progress)

    def _order(self) -> StopReason | None:
        if self._sink.stop_requested():
            return StopReason.CANCELLED
        config = self._task.config
        if config.total_timesteps is not None and self.num_timesteps >= config.total_timesteps:
            return StopReason.TIMESTEP_BUDGET
        quota = config.compute_quota
        if quota is not None:
            self._check_quota(quota.max_timesteps, self.num_timesteps, "timesteps")
            seconds = self._ledger.progress().wall_seconds
            self._check_quota(quota.max_wall_seconds, seconds, "wall_seconds")
        return None

    def _check_quota(self, limit: float | None, used: float, what: str) -> None:
        if limit is not None and used >= limit:
            raise TrainingJobFailed(
                self._task.job_id,
                f"compute_quota.max_{what} {limit} is used up",
                code="quota_exceeded",
                hint="Raise the quota and resume from the last checkpoint",
            )


class DiagnosticsWriter(KVWriter):
    """Takes what stable-baselines3 logs after each rollout."""

    def __init__(self, ledger: EpisodeLedger, sink: TrainingSink) -> None:
        self._ledger = ledger
        self._sink = sink

    def write(
        self,
        key_values: dict[str, Any],
        key_excluded: dict[str, tuple[str, ...]],
        step: int = 0,
    ) -> None:
        """Hand the numbers on, with the running means of all episodes so far."""
        numbers = {
            key: float(value)
            for key, value in key_values.items()
            if isinstance(value, int | float | np.floating | np.integer) and np.isfinite(value)
        }
        self._sink.rollout_finished(self._ledger.progress(), numbers)

    def close(self) -> None:
        """Nothing to close."""
