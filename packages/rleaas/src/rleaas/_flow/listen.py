"""Following a stream of messages: reading on, and coming back where a connection broke."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rlcore import Deadline, PlatformUnreachable, RLEaaSError

from rleaas._flow.context import Context
from rleaas._flow.decode import failure
from rleaas._flow.messages import EVENT_STREAM, Message, Messages
from rleaas._flow.retry import OUTAGE_TOLERATED, bounded, delay_after, is_transient
from rleaas._flow.wire import Flow, Reply, Request, hear, listen, pause

RECONNECT_SECONDS = 1.0
"""How long somebody waits whose stream was ended, where the platform does not say."""

SILENCE = 30.0
"""How long a platform may say nothing; ours beats at least every ten seconds."""

GRACE = 2.0
"""How long after the deadline a platform is heard that does not end the stream itself."""


class Listener:
    """Reads one stream to its end or to a deadline.

    A connection that breaks is made anew with `Last-Event-ID`, so that nothing is missed or heard
    twice; a platform that is gone for longer than `OUTAGE_TOLERATED` ends it.

    Args:
        request: makes the request, from the seconds that are left of the deadline.
        context: of the client.
        deadline: when nobody listens any more.
    """

    def __init__(
        self, request: Callable[[float | None], Request], context: Context, deadline: Deadline
    ) -> None:
        self._request = request
        self._context = context
        self._deadline = deadline
        self._messages = Messages()
        self._outage: float | None = None

    def begin(self) -> Flow[Reply | None]:
        """Open the stream; a server that does not stream has its whole answer returned.

        Raises:
            RLEaaSError: the platform refused, or gave no answer.
        """
        left = self._context.attempts
        delays = self._context.backoff.delays(self._context.random)
        while True:
            left -= 1
            try:
                reply = yield from self._open()
            except RLEaaSError as error:
                if left <= 0 or not is_transient(error):
                    raise
                yield from self._rest(error, delays)
            else:
                return None if _streams(reply) else reply

    def next(self) -> Flow[Message | None]:
        """Return the next message; None: the deadline has passed.

        Raises:
            RLEaaSError: the platform refused, or was gone for too long.
        """
        while True:
            message = self._messages.next()
            if message is not None:
                return message
            if self._late():
                return None
            try:
                piece = yield from hear()
            except RLEaaSError as error:
                if not is_transient(error):
                    raise
                self._messages.forget()
            else:
                if piece:
                    self._outage = None
                    self._messages.feed(piece)
                    continue
                # Ended in good order, such as by a server that is restarted.
                self._messages.forget()
                yield from pause(self._deadline.at_most(self._moment()))
            if self._deadline.expired():
                return None
            yield from self._come_back()

    def _moment(self) -> float:
        asked = self._messages.retry
        own = next(self._context.backoff.delays(self._context.random))
        return own + (RECONNECT_SECONDS if asked is None else asked)

    def _come_back(self) -> Flow[None]:
        delays = self._context.backoff.delays(self._context.random)
        while True:
            try:
                reply = yield from self._open()
            except RLEaaSError as error:
                now = self._context.clock()
                self._outage = now if self._outage is None else self._outage
                if not is_transient(error) or now - self._outage >= OUTAGE_TOLERATED:
                    raise
                yield from self._rest(error, delays)
                if self._deadline.expired():
                    raise
            else:
                if not _streams(reply):
                    raise PlatformUnreachable(
                        "the stream broke, and the platform does not stream any more",
                        hint="Ask again.",
                        request_id=reply.request_id,
                    )
                return

    def _open(self) -> Flow[Reply]:
        request = self._request(self._deadline.remaining())
        last = self._messages.last_id
        headers = {**request.headers, "Accept": f"{EVENT_STREAM}, application/json;q=0.5"}
        if last is not None:
            headers["Last-Event-ID"] = last
        request = bounded(replace(request, headers=headers), self._context, self._deadline)
        left = self._deadline.remaining()
        silence = SILENCE if left is None else min(SILENCE, left + GRACE)
        reply = yield from listen(request, silence)
        error = failure(request, reply)
        if error is not None:
            raise error
        return reply

    def _late(self) -> bool:
        # The platform is told when to end the stream; what it says until then counts.
        moment = self._deadline.moment
        return moment is not None and self._context.clock() - moment > GRACE

    def _rest(self, error: RLEaaSError, delays: Iterator[float]) -> Flow[None]:
        yield from pause(self._deadline.at_most(delay_after(error, delays)))


def _streams(reply: Reply) -> bool:
    return reply.headers.get("content-type", "").partition(";")[0].strip() == EVENT_STREAM
