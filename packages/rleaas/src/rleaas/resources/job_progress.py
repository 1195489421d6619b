"""How far a training job is: what it tells of itself, and waiting for its end."""

from __future__ import annotations

from collections.abc import Callable

from rlcore import Deadline, TrainingJobCancelled, TrainingJobFailed

from rleaas._flow.context import Context
from rleaas._flow.poll import Wait, wait
from rleaas._flow.wire import Flow
from rleaas.models import TrainingJob


def until_complete(
    job_id: str,
    look: Callable[[Deadline], Flow[TrainingJob]],
    context: Context,
    *,
    timeout: float | None,
    interval: float | None,
    seen: Callable[[TrainingJob], object],
    progress: bool | None,
) -> Flow[TrainingJob]:
    """Return the record of a job once it is complete, or waits for a human's verdict.

    Raises:
        TrainingJobFailed: it failed; the reason is in the error.
        TrainingJobCancelled: it was cancelled.
        PlatformTimeout: it takes longer than the timeout. It goes on.
    """
    ended = yield from wait(
        Wait(
            what=f"training job {job_id!r}",
            look=look,
            finished=lambda record: record.finished,
            status=lambda record: record.status,
            describe=_describe,
            fraction=lambda record: record.progress / 100,
            timeout=timeout,
            interval=interval,
            seen=seen,
            progress=progress,
        ),
        context,
    )
    if ended.status == "failed":
        raise TrainingJobFailed(job_id, ended.reason)
    if ended.status == "cancelled":
        raise TrainingJobCancelled(job_id)
    return ended


def metrics_of(record: TrainingJob) -> dict[str, object]:
    """Return a job's progress in the published keys."""
    results = record.results
    return {
        "job_id": record.job_id,
        "status": record.status,
        "current_episode": _episode(record),
        "num_episodes": record.num_episodes,
        "progress": record.progress,
        "avg_reward": results.avg_reward,
        "success_rate": results.success_rate,
        "current_tier": results.current_tier,
        "results": dict(results.items()),
    }


def _describe(record: TrainingJob) -> str:
    parts = [f"{record.status} {record.progress} %"]
    episode = _episode(record)
    if episode is not None:
        total = "" if record.num_episodes is None else f"/{record.num_episodes}"
        parts.append(f"episode {episode}{total}")
    if record.results.avg_reward is not None:
        parts.append(f"mean reward {record.results.avg_reward:.1f}")
    return " · ".join(parts)


def _episode(record: TrainingJob) -> int | None:
    own = record.current_episode
    return record.results.current_episode if own is None else own
