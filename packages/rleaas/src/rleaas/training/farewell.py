"""The last line of a training's log."""

from __future__ import annotations

from rleaas.training.trainer import Progress, StopReason


def farewell(stopped: StopReason, progress: Progress) -> str:
    """Return why a training ended, after how much, and what it reached."""
    mean = "no episode finished"
    if progress.avg_reward is not None:
        mean = f"mean return of the last episodes {progress.avg_reward:.1f}"
    return (
        f"stopped by {stopped} after {progress.episode} episodes, {progress.timestep} steps, "
        f"{progress.wall_seconds:.1f} s: {mean}"
    )
