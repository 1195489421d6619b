"""What happens after every step: episodes are booked, orders and limits are obeyed."""

# stable-baselines3 and gymnasium leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from rleaas.training.ledger import EpisodeLedger
from rleaas.training.limits import Limits
from rleaas.training.trainer import StopReason, TrainingSink, TrainingTask


class JobCallback(BaseCallback):
    """Books finished episodes, and stops the training when it is time.

    Attributes:
        stopped_by: why it was stopped.
        is_due: whether a checkpoint is to be saved before the next rollout.
        waits: whether an order to stop waits for the end of the rollout.
    """

    def __init__(
        self,
        ledger: EpisodeLedger,
        sink: TrainingSink,
        task: TrainingTask,
        *,
        checkpoint_interval: int,
    ) -> None:
        super().__init__()
        self._ledger = ledger
        self._sink = sink
        self._limits = Limits(task, ledger, sink)
        self._interval = checkpoint_interval
        self.stopped_by: StopReason | None = None
        self.is_due = False
        self.waits = False
        self._ordered = False

    def reached(self) -> bool:
        """Whether an order or a limit ends the training now.

        Raises:
            TrainingJobFailed: a quota is used up.
        """
        ordered = StopReason.CANCELLED if self._ordered else None
        self.stopped_by = ordered or self._limits.reached() or self.stopped_by
        return self.stopped_by is not None

    def _on_step(self) -> bool:
        self._ledger.timestep = self.num_timesteps
        dones = self.locals["dones"]
        if dones.any():
            infos = cast("list[dict[str, Any]]", self.locals["infos"])
            for index in np.flatnonzero(dones):
                self._book(infos[index])
                if self.stopped_by is not None:
                    return False
        if self.waits:
            self._ordered = self._ordered or self._sink.stop_requested()
            if self._limits.steps_spent:
                self.stopped_by = StopReason.TIMESTEP_BUDGET
            return self.stopped_by is None
        return not self.reached()

    def _book(self, info: Mapping[str, Any]) -> None:
        episode = info.get("episode")
        if episode is None:
            return  # it was lost with its environment, which is no score
        progress = self._ledger.add(episode["r"], episode["l"], info)
        self._sink.episode_finished(progress)
        if self._ledger.spent:
            self.stopped_by = StopReason.EPISODE_BUDGET
        elif self._ledger.target_reached:
            self.stopped_by = StopReason.TARGET_REWARD
        elif progress.episode % self._interval == 0:
            self.is_due = True
