"""Looking at a training job: live while it runs, and as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rlcore import ConfigurationError

from rleaas._flow.context import Context
from rleaas._flow.wire import Flow, Item, Stream, work
from rleaas.charts import picture
from rleaas.charts.learning_curve import AXES, Axis, LearningCurve, require_window
from rleaas.charts.screen import Screen
from rleaas.charts.watched import Watched
from rleaas.models import TrainingJob
from rleaas.resources import training_routes as routes
from rleaas.resources.job_streams import follow_job
from rleaas.resources.references import require_one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")

REDRAWN_AFTER: Final = 0.25
"""Seconds between two drawings; events come faster than anybody looks."""


def watch_job(
    record: TrainingJob,
    timeout: float | None,
    screen: Screen,
    context: Context,
    seen: Callable[[TrainingJob], object],
) -> Flow[None]:
    """Show a job until it is over; it goes on when nobody watches any more.

    Raises:
        PlatformTimeout: it is not over within the timeout.
    """
    job = Watched(record)
    drawn = context.clock()

    def take(now: TrainingJob) -> None:
        job.take(now)
        seen(now)

    stream = follow_job(record.job_id, None, 0, timeout, context, take)
    try:
        yield from work(lambda: screen.show(job))
        while True:
            item = yield from _next(stream)
            if item is None:
                break
            job.hear(item.value)
            if context.clock() - drawn >= REDRAWN_AFTER:
                yield from work(lambda: screen.show(job))
                drawn = context.clock()
        take((yield from routes.get(record.job_id, context)))
        yield from work(lambda: screen.show(job))
    except GeneratorExit:
        # Interrupted or cancelled: nothing more can be asked of the platform.
        screen.close()
        screen.say(f"job {record.job_id} goes on; watch() shows it again, cancel() ends it")
        raise
    finally:
        stream.close()
        screen.close()


def plot_job(
    job_id: str,
    path: str | Path | None,
    window: int | None,
    over: Axis,
    context: Context,
    seen: Callable[[TrainingJob], object],
) -> Flow[Figure]:
    """Return a figure of the job's learning curve so far, which is written to `path` first.

    Raises:
        ConfigurationError: an argument is not usable, or there is nothing to draw yet.
        MissingDependencyError: matplotlib is not installed; nothing was asked.
    """
    require_one_of(over, tuple(AXES), "an axis")
    if window is not None:
        require_window(window)
    if path is not None:
        picture.format_of(path)
    yield from work(picture.require_matplotlib)
    record = yield from routes.get(job_id, context)
    seen(record)
    curve = LearningCurve(dict(p.items()) for p in (yield from routes.curve(job_id, None, context)))
    if not len(curve):
        raise ConfigurationError(
            f"training job {job_id!r} has no finished episode to draw; it is {record.status}",
            hint="Draw it once its first episode has ended; `get_logs()` says what it does.",
        )
    title = f"{record.algorithm or 'training'} on {record.environment_name}"
    title += f": {record.run_name or job_id}"

    def drawn() -> Figure:
        figure = picture.draw(curve, title, window=window, over=over)
        if path is not None:
            picture.save(figure, path)
        return figure

    return (yield from work(drawn))


def _next(stream: Stream[T]) -> Flow[Item[T] | None]:
    """Perform a stream up to its next item, and return that; None is its end."""
    try:
        step = next(stream)
        while not isinstance(step, Item):
            try:
                answer = yield step
            except Exception as error:
                step = stream.throw(error)
            else:
                step = stream.send(answer)
    except StopIteration:
        return None
    return step
