"""Which requests may be repeated, how often, and with which pauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from rlcore import Deadline, PlatformTimeout, PlatformUnreachable, RLEaaSAPIError, RLEaaSError

from rleaas._flow.context import Context
from rleaas._flow.decode import failure
from rleaas._flow.wire import Flow, Reply, Request, Save, Saved, pause, save, send

T = TypeVar("T")

TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
LONGEST_RETRY_AFTER = 60.0
"""A server that asks for more patience than this gets its error to the caller at once."""

OUTAGE_TOLERATED = 60.0
"""How long a wait or a stream that once got an answer goes on while the platform gives none."""

SHORTEST_TIMEOUT = 1.0
"""What a request gets however little of a deadline is left: a poll at the end is still a poll."""


def is_transient(error: BaseException) -> bool:
    """Tell whether the same request may well succeed a little later."""
    if isinstance(error, RLEaaSAPIError):
        return error.status_code in TRANSIENT_STATUSES
    return isinstance(error, PlatformUnreachable | PlatformTimeout)


def ask(request: Request, context: Context, deadline: Deadline | None = None) -> Flow[Reply]:
    """Return a good answer; a repeatable request is sent again after transient failures.

    Raises:
        RLEaaSError: the answer, or the lack of one, of the last attempt.
    """

    def attempt() -> Flow[Reply]:
        reply = yield from send(bounded(request, context, deadline))
        error = failure(request, reply)
        if error is not None:
            raise error
        return reply

    return (yield from _persist(attempt, request, context, deadline))


def fetch(step: Save, context: Context) -> Flow[Saved]:
    """Return what came of saving a file, with the same patience as `ask`.

    Raises:
        RLEaaSError: the answer, or the lack of one, of the last attempt.
    """

    def attempt() -> Flow[Saved]:
        saved = yield from save(step)
        error = failure(step.request, saved.reply)
        if error is not None:
            raise error
        return saved

    return (yield from _persist(attempt, step.request, context, None))


def _persist(
    attempt: Callable[[], Flow[T]], request: Request, context: Context, deadline: Deadline | None
) -> Flow[T]:
    delays = context.backoff.delays(context.random)
    left = context.attempts if request.repeatable else 1
    while True:
        left -= 1
        try:
            return (yield from attempt())
        except RLEaaSError as error:
            if left == 0 or not is_transient(error):
                raise
            delay = delay_after(error, delays)
            if delay > LONGEST_RETRY_AFTER or not _fits(delay, deadline):
                raise
        yield from pause(delay)


def delay_after(error: RLEaaSError, delays: Iterator[float]) -> float:
    """Return how long to wait after a failure: what the platform asks for, and some of our own."""
    asked = error.retry_after if isinstance(error, RLEaaSAPIError) else None
    own = next(delays)
    # A server's figure is a lower bound; with ours on top, clients that failed together part.
    return own if asked is None else asked + own if asked else own


def _fits(delay: float, deadline: Deadline | None) -> bool:
    remaining = None if deadline is None else deadline.remaining()
    return remaining is None or delay < remaining


def bounded(request: Request, context: Context, deadline: Deadline | None) -> Request:
    """Return the request with no more patience than is left of the deadline."""
    remaining = None if deadline is None else deadline.remaining()
    if remaining is None:
        return request
    own = context.timeout if request.timeout is None else request.timeout
    return replace(request, timeout=max(SHORTEST_TIMEOUT, min(own, remaining)))
