"""Following one training job: its log and its events, until it is over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rlcore import Deadline, PlatformTimeout

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.listen import Listener
from rleaas._flow.poll import require_seconds
from rleaas._flow.wire import Item, Reply, Stream, pause
from rleaas.models import Event, LogPage, TrainingJob
from rleaas.resources import training_routes as routes
from rleaas.resources.event_stream import ENDS, HOLD, event_of, opening, page


def follow_log(
    job_id: str,
    poll_interval: float,
    timeout: float | None,
    context: Context,
) -> Stream[str]:
    """Yield each line once, as it is written, until the log is complete.

    Raises:
        PlatformTimeout: it is not complete within the timeout.
    """
    require_seconds("timeout", timeout, "follow a log")
    require_seconds("poll_interval", poll_interval, "follow a log", zero_too=False)
    deadline = Deadline.after(timeout, clock=context.clock)
    listener = Listener(routes.log_opening(job_id), context, deadline)
    whole = yield from listener.begin()
    if whole is not None:
        yield from _ask_for_log(job_id, poll_interval, timeout, deadline, context, whole)
        return
    while (message := (yield from listener.next())) is not None:
        part = routes.log_part(job_id, message)
        for line in part.lines:
            yield Item(line)
        if part.done:
            return
    raise _late(f"the log of training job {job_id!r}", timeout)


def follow_job(
    job_id: str,
    kinds: Collection[str] | None,
    after: int,
    timeout: float | None,
    context: Context,
    seen: Callable[[TrainingJob], object],
) -> Stream[Event]:
    """Yield the job's events after one of them, until it is over; `seen` gets its record.

    With `kinds`, only events of these are yielded.

    Raises:
        PlatformTimeout: it is not over within the timeout.
    """
    require_seconds("timeout", timeout, "follow a job")
    deadline = Deadline.after(timeout, clock=context.clock)
    # The event of its end may be removed already, or somebody has to judge it first.
    record = yield from routes.get(job_id, context)
    seen(record)
    cursor = after
    if not record.finished:
        listener = Listener(opening({"job": job_id}, after, context), context, deadline)
        if (yield from listener.begin()) is not None:
            yield from _ask_for_events(job_id, kinds, after, timeout, deadline, context, seen)
            return
        over = False
        while not over:
            message = yield from listener.next()
            if message is None:
                raise _late(f"training job {job_id!r}", timeout, record.status)
            event = event_of(message)
            yield from _wanted([event], kinds)
            cursor, over = event.id, event.kind in ENDS
    # What was reported while it ended comes behind its end.
    found = yield from page({"job": job_id}, cursor, deadline, context, 0.0)
    while found.events:
        yield from _wanted(found.events, kinds)
        found = yield from page({"job": job_id}, found.cursor, deadline, context, 0.0)


def _ask_for_log(
    job_id: str,
    poll_interval: float,
    timeout: float | None,
    deadline: Deadline,
    context: Context,
    first: Reply,
) -> Stream[str]:
    part = read(LogPage, build.get(f"the log of {job_id!r}"), first)
    while True:
        for line in part.lines:
            yield Item(line)
        if part.done:
            return
        if deadline.expired():
            raise _late(f"the log of training job {job_id!r}", timeout)
        if not part.lines:
            yield from pause(deadline.at_most(poll_interval))
        cursor = part.cursor
        part = yield from routes.log_page(job_id, cursor, deadline, context)
        if part.cursor is None:
            part = part.model_copy(update={"cursor": cursor})


def _ask_for_events(
    job_id: str,
    kinds: Collection[str] | None,
    after: int,
    timeout: float | None,
    deadline: Deadline,
    context: Context,
    seen: Callable[[TrainingJob], object],
) -> Stream[Event]:
    cursor, over = after, False
    while True:
        hold = 0.0 if over else HOLD
        found = yield from page({"job": job_id}, cursor, deadline, context, hold)
        yield from _wanted(found.events, kinds)
        cursor = found.cursor
        over = over or any(event.kind in ENDS for event in found.events)
        if found.events:
            continue
        if over:
            return
        record = yield from routes.get(job_id, context)
        seen(record)
        over = record.finished
        if not over and deadline.expired():
            raise _late(f"training job {job_id!r}", timeout, record.status)


def _wanted(events: Sequence[Event], kinds: Collection[str] | None) -> Stream[Event]:
    for event in events:
        if kinds is None or event.kind in kinds:
            yield Item(event)


def _late(what: str, timeout: float | None, status: str | None = None) -> PlatformTimeout:
    seconds = "the timeout" if timeout is None else f"{timeout:g} s"
    return PlatformTimeout(
        f"{what} goes on after {seconds}",
        hint="The job goes on; follow it again, with a longer timeout.",
        waited_for=what,
        last_status=status,
    )
