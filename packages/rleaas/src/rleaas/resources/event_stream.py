"""Following the events of the platform: each answer waits for the next event."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore import Deadline

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import read
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Item, Stream, pause
from rleaas.models import Event, EventPage

HOLD = 20.0
"""How long the platform is asked to wait for the next event, in seconds."""

SHORTEST_ROUND = 0.2
"""How long a round without events takes at least, should the platform not wait."""

ENDS = frozenset({"completed", "failed", "cancelled"})
"""Kinds of events after which a job has no more of them."""

Filter = Mapping[str, str | None]


def page(
    wanted: Filter,
    after: int | None,
    deadline: Deadline,
    context: Context,
    longest: float = HOLD,
) -> Flow[EventPage]:
    """Return the events after a cursor; the platform waits a while for the first of them."""
    hold = round(deadline.at_most(longest), 3)
    request = build.get(
        "/api/events",
        {**wanted, "after": after, "wait_seconds": hold},
        # The platform answers after the hold at the latest; what is left is for the way.
        timeout=hold + context.timeout,
    )
    reply = yield from ask(request, context)
    return read(EventPage, request, reply)


def follow(
    wanted: Filter, after: int | None, timeout: float | None, context: Context
) -> Stream[Event]:
    """Yield events as they happen, until the time is up."""
    deadline = Deadline.after(timeout, clock=context.clock)
    while True:
        last = deadline.expired()
        began = context.clock()
        found = yield from page(wanted, after, deadline, context)
        for event in found.events:
            yield Item(event)
        after = found.cursor
        if found.events:
            continue
        if last or deadline.expired():
            return
        rest = SHORTEST_ROUND - (context.clock() - began)
        if rest > 0:
            yield from pause(deadline.at_most(rest))
