"""Which checkpoint of a job is the best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlcore import ConfigurationError

from rleaas.models import Checkpoint


def best_checkpoint(
    records: Sequence[Checkpoint], metric: str, *, lowest: bool, job_id: str
) -> Checkpoint:
    """Return the checkpoint with the best figure; of equals, the one trained longest.

    Raises:
        ConfigurationError: there is no checkpoint, or none has such a figure.
    """
    if not records:
        raise ConfigurationError(
            f"training job {job_id!r} has no checkpoints",
            hint="The first is saved after `checkpoint_interval` episodes; a job that ends "
            "before has none.",
        )
    scored = [
        (-float(value) if lowest else float(value), record.episode or 0, index)
        for index, record in enumerate(records)
        if isinstance(value := _score(record, metric), int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    ]
    if not scored:
        raise ConfigurationError(
            f"no checkpoint of training job {job_id!r} has a score {metric!r}",
            hint=f"They have {', '.join(sorted(_scores(records))) or 'none at all'}",
        )
    return records[max(scored)[2]]


def _score(record: Checkpoint, metric: str) -> object:
    value = record.get(metric)
    return record.metrics.get(metric) if value is None else value


def _scores(records: Sequence[Checkpoint]) -> set[str]:
    named = ("avg_reward", "success_rate")
    found = {name for record in records for name in named if record.get(name) is not None}
    return found.union(*(record.metrics for record in records))
