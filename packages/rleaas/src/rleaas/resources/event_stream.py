"""Following the events of the platform, as it streams them.

A server that does not stream is asked again and again; each of its answers waits for an event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import ValidationError
from rlcore import Deadline, UnexpectedReply

from rleaas._flow import request as build
from rleaas._flow.context import Context
from rleaas._flow.decode import EXCERPT, read
from rleaas._flow.listen import Listener
from rleaas._flow.messages import Message
from rleaas._flow.poll import require_seconds
from rleaas._flow.retry import ask
from rleaas._flow.wire import Flow, Item, Reply, Request, Stream, pause
from rleaas.models import Event, EventPage

HOLD = 20.0
"""How long the platform is asked to wait for the next event, in seconds."""

SHORTEST_ROUND = 0.2
"""How long a round without events takes at least, should the platform not wait."""

ENDS = frozenset({"completed", "failed", "cancelled", "awaiting_human_eval"})
"""Kinds of events after which a job does not go on by itself."""

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


def opening(
    wanted: Filter, after: int | None, context: Context
) -> Callable[[float | None], Request]:
    """Return what makes the request of a stream, from the seconds that it is to go on."""

    def make(seconds: float | None) -> Request:
        ends = None if seconds is None else round(seconds, 3)
        return build.get("/api/events", {**wanted, "after": after, "seconds": ends})

    return make


def event_of(message: Message) -> Event:
    """Return the event that a message tells.

    Raises:
        UnexpectedReply: it tells none.
    """
    try:
        return Event.model_validate_json(message.data)
    except ValidationError as error:
        raise UnexpectedReply(
            f"a message of the event stream is no event: {message.data[:EXCERPT]!r}",
            hint="Check that base_url is an rleaas server.",
        ) from error


def follow(
    wanted: Filter, after: int | None, timeout: float | None, context: Context
) -> Stream[Event]:
    """Yield events as they happen, until the time is up."""
    require_seconds("timeout", timeout, "follow events")
    deadline = Deadline.after(timeout, clock=context.clock)
    listener = Listener(opening(wanted, after, context), context, deadline)
    whole = yield from listener.begin()
    if whole is not None:
        yield from _ask_for(wanted, after, deadline, context, whole)
        return
    while (message := (yield from listener.next())) is not None:
        yield Item(event_of(message))


def _ask_for(
    wanted: Filter,
    after: int | None,
    deadline: Deadline,
    context: Context,
    first: Reply | None = None,
) -> Stream[Event]:
    while True:
        last = deadline.expired()
        began = context.clock()
        if first is None:
            found = yield from page(wanted, after, deadline, context)
        else:
            found, first = read(EventPage, build.get("/api/events"), first), None
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
