"""A training's sink that also feeds the trackers of the job."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rleaas.training.tracking.pump import Placed, Pump
from rleaas.training.tracking.settings import PACKAGES, missing_packages
from rleaas.training.tracking.trackers import Point, RunOf, now
from rleaas.training.trainer import Progress, TrainingSink

CLOSE_SECONDS: Final = 30.0
"""How long a training that is over waits for its trackers at most."""
STOP_SECONDS: Final = 2.0
"""The same for one that was stopped."""

Tracking = Mapping[str, Mapping[str, str]]


@contextmanager
def tracked(
    sink: TrainingSink,
    tracking: Tracking | None,
    run: RunOf,
    *,
    placed: Placed,
    close_seconds: float = CLOSE_SECONDS,
) -> Generator[TrainingSink]:
    """Give a sink that feeds the trackers as well; a tracker that fails costs points, nothing else.

    Args:
        sink: what gets everything as it is.
        tracking: the settings of each tracker that is asked for; None is none.
        run: the job, as trackers see it.
        placed: called with a tracker's name and where its run is, once it is open.
        close_seconds: how long to wait for the trackers at the end.
    """
    if not tracking:
        yield sink
        return
    missing = missing_packages(tracking)
    for name in missing:
        sink.log(
            f"no tracking by {name}: {PACKAGES[name]!r} is not installed; "
            "pip install 'rleaas[track]' brings it"
        )
    pumps = [
        Pump(name, _of(run, settings), placed=placed)
        for name, settings in tracking.items()
        if name not in missing
    ]
    try:
        yield TrackingSink(sink, pumps)
    finally:
        patience = STOP_SECONDS if sink.stop_requested() else close_seconds
        deadline = time.monotonic() + patience
        for pump in pumps:
            pump.finish()
        for pump in pumps:
            lost = pump.close(deadline)
            if lost or pump.error:
                sink.log(
                    f"tracking by {pump.name}: {lost} of {pump.offered} points were lost"
                    + (f": {pump.error}" if pump.error else "")
                )


class TrackingSink:
    """Hands everything on, and numbers to the trackers as well."""

    def __init__(self, sink: TrainingSink, pumps: list[Pump]) -> None:
        self._sink = sink
        self._pumps = pumps

    def episode_finished(self, progress: Progress) -> None:
        """Track the episode's numbers."""
        self._sink.episode_finished(progress)
        told: dict[str, object] = {
            "episode_reward": progress.episode_reward,
            "episode_length": progress.episode_length,
            "avg_reward": progress.avg_reward,
            "success_rate": progress.success_rate,
            "tier": progress.tier,
            "composite_verifier_score": progress.composite_verifier_score,
        }
        scores = progress.verifier_scores or {}
        self._offer(progress, told | {f"verifier/{name}": one for name, one in scores.items()})

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        """Track the algorithm's own numbers."""
        self._sink.update_finished(progress, diagnostics)
        self._offer(progress, {f"update/{name}": value for name, value in diagnostics.items()})

    def log(self, line: str) -> None:
        """Hand it on."""
        self._sink.log(line)

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        """Hand it on."""
        self._sink.alert(kind, data)

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        """Hand it on."""
        self._sink.checkpoint_saved(path, label, progress, state)

    def stop_requested(self) -> bool:
        """Ask the one below."""
        return self._sink.stop_requested()

    def _offer(self, progress: Progress, told: Mapping[str, object]) -> None:
        values = {
            name: float(value)
            for name, value in told.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
        if values:
            point = Point(progress.timestep, now(), values)
            for pump in self._pumps:
                pump.offer(point)


def _of(run: RunOf, settings: Mapping[str, str]) -> RunOf:
    return RunOf(run.job_id, run.name, run.directory, run.shared, dict(settings), run.facts)
