"""How far an evaluation is: waiting for its end, and following what happens to it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rlcore import Deadline, PlatformTimeout

from rleaas._flow.context import Context
from rleaas._flow.poll import Wait, require_seconds, wait
from rleaas._flow.wire import Flow, Item, Stream
from rleaas.models import Evaluation, Event
from rleaas.resources import evaluation_routes as routes
from rleaas.resources.event_stream import HOLD, page


def until_ended(
    evaluation_id: str,
    context: Context,
    *,
    timeout: float | None,
    interval: float | None,
    look: Callable[[Deadline], Flow[Evaluation]] | None = None,
    seen: Callable[[Evaluation], object] | None = None,
    progress: bool | None = None,
) -> Flow[Evaluation]:
    """Return the record of an evaluation once it has ended, however it did.

    Raises:
        PlatformTimeout: it takes longer than the timeout. It goes on.
    """

    def ask_again(deadline: Deadline) -> Flow[Evaluation]:
        return routes.get(evaluation_id, context, deadline)

    return wait(
        Wait(
            what=f"evaluation {evaluation_id!r}",
            look=look or ask_again,
            finished=lambda record: record.finished,
            status=lambda record: record.status,
            describe=_describe,
            fraction=_done,
            timeout=timeout,
            interval=interval,
            seen=seen,
            progress=progress,
        ),
        context,
    )


def follow(
    evaluation_id: str,
    kinds: Collection[str] | None,
    after: int,
    timeout: float | None,
    context: Context,
) -> Stream[Event]:
    """Yield the evaluation's events after one of them, until it is over.

    Raises:
        PlatformTimeout: it is not over within the timeout.
    """
    require_seconds("timeout", timeout, "follow an evaluation")
    deadline = Deadline.after(timeout, clock=context.clock)
    cursor, over = after, False
    while True:
        found = yield from page(
            {"job": evaluation_id}, cursor, deadline, context, 0.0 if over else HOLD
        )
        for event in found.events:
            if kinds is None or event.kind in kinds:
                yield Item(event)
        cursor = found.cursor
        if found.events:
            continue
        if over:
            return
        record = yield from routes.get(evaluation_id, context)
        over = record.finished
        if not over and deadline.expired():
            raise PlatformTimeout(
                f"evaluation {evaluation_id!r} is {record.status} after {timeout:g} s"
            )


def _describe(record: Evaluation) -> str:
    total = record.asked or len(record.seeds)
    return f"{record.status} · episode {record.episodes_done}" + (f"/{total}" if total else "")


def _done(record: Evaluation) -> float | None:
    total = record.asked or len(record.seeds)
    return record.episodes_done / total if total else None
