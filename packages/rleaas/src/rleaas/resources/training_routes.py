"""The routes of one training job, as both the collection and the handle use them."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError
from rlcore import Deadline, UnexpectedReply

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import EXCERPT, read, read_lines, read_list
from rleaas._flow.messages import Message
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Request
from rleaas.models import Checkpoint, LogPage, MetricPage, MetricPoint, TrainingJob

KIND = "training_job"
LOG_HOLD = 20.0
"""How long the platform may hold a question for new log lines."""


def get(job_id: str, context: Context, deadline: Deadline | None = None) -> Flow[TrainingJob]:
    """Return the job's record."""
    request = build.get(_path("/training/{}", job_id), kind=KIND, ref=job_id)
    reply = yield from ask(request, context, deadline)
    return read(TrainingJob, request, reply)


def checkpoints(job_id: str, context: Context) -> Flow[list[Checkpoint]]:
    """Return the job's checkpoints."""
    request = build.get(_path("/api/training/jobs/{}/checkpoints", job_id), kind=KIND, ref=job_id)
    reply = yield from ask(request, context)
    found, _ = read_list(Checkpoint, request, reply, "checkpoints")
    return found


def curve(job_id: str, after: str | int | None, context: Context) -> Flow[list[MetricPoint]]:
    """Return the job's points after a cursor, page by page to the end."""
    points: list[MetricPoint] = []
    while True:
        request = build.get(
            _path("/api/training/jobs/{}/metrics", job_id), {"after": after}, kind=KIND, ref=job_id
        )
        reply = yield from ask(request, context)
        page = read(MetricPage, request, reply)
        points.extend(page.metrics)
        if not page.metrics or page.cursor is None:
            return points
        if str(page.cursor) == str(after):
            raise UnexpectedReply(
                f"the metrics of {job_id!r} after {after!r} lead back to themselves",
                request_id=reply.request_id,
            )
        after = page.cursor


def logs(job_id: str, limit: int | None, context: Context) -> Flow[list[str]]:
    """Return the job's log lines."""
    request = build.get(
        _path("/api/training/jobs/{}/logs", job_id), {"limit": limit}, kind=KIND, ref=job_id
    )
    reply = yield from ask(request, context)
    return read_lines(request, reply)


def log_page(
    job_id: str, cursor: str | int | None, deadline: Deadline, context: Context
) -> Flow[LogPage]:
    """Return the lines after a cursor; the platform waits a while for the first of them."""
    hold = round(deadline.at_most(LOG_HOLD), 3)
    request = build.get(
        _path("/api/training/jobs/{}/log-page", job_id),
        {"cursor": cursor, "wait_seconds": hold},
        kind=KIND,
        ref=job_id,
        # The platform answers after the hold at the latest; what is left is for the way.
        timeout=hold + context.timeout,
    )
    reply = yield from ask(request, context)
    return read(LogPage, request, reply)


def log_opening(job_id: str) -> Callable[[float | None], Request]:
    """Return what makes the request of the job's log as a stream, for that many seconds."""

    def make(seconds: float | None) -> Request:
        return build.get(
            _path("/api/training/jobs/{}/log-page", job_id),
            {"seconds": None if seconds is None else round(seconds, 3)},
            kind=KIND,
            ref=job_id,
        )

    return make


def log_part(job_id: str, message: Message) -> LogPage:
    """Return the lines that a message of the log brings.

    Raises:
        UnexpectedReply: it brings none.
    """
    try:
        return LogPage.model_validate_json(message.data)
    except ValidationError as error:
        raise UnexpectedReply(
            f"a message of the log of {job_id!r} has no lines: {message.data[:EXCERPT]!r}",
            hint="Check that base_url is an rleaas server.",
        ) from error


def cancel(job_id: str, context: Context) -> Flow[TrainingJob]:
    """Ask the job to end."""
    request = build.post(
        _path("/api/training/jobs/{}/cancel", job_id),
        key=context.new_key(),
        kind=KIND,
        ref=job_id,
    )
    reply = yield from ask(request, context)
    return read(TrainingJob, request, reply)


def _path(template: str, job_id: str) -> str:
    return build.path(template, job_id, what="training job id")
