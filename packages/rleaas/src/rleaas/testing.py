"""For tests of code that uses this package: scripted conversations and scripted clients.

`converse` plays a flow against a list of answers, with no client, socket, loop or clock.
`Answers` is a server in a function, for `Client(transport=...)` and `AsyncClient(transport=...)`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from rleaas._drivers.offline import Clock, Offline
from rleaas._flow.wire import (
    Flow,
    Hear,
    Item,
    Listen,
    Pause,
    Reply,
    Request,
    Save,
    Saved,
    Show,
    Step,
    Stream,
    Work,
)

if TYPE_CHECKING:
    import httpx

__all__ = [
    "Answers",
    "Clock",
    "Conversation",
    "Offline",
    "converse",
    "reply",
]

T = TypeVar("T")


def reply(
    body: object = None, status: int = 200, headers: Mapping[str, str] | None = None
) -> Reply:
    """Return a JSON answer; bytes are sent as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Reply(status, content, {"content-type": "application/json", **(headers or {})})


@dataclass(frozen=True, slots=True)
class Conversation(Generic[T]):
    """What was said: the steps in order, what was shown, what was handed out, and the result."""

    result: T
    steps: list[Step] = field(default_factory=list[Step])
    shown: list[str] = field(default_factory=list[str])
    items: list[object] = field(default_factory=list[object])

    @property
    def requests(self) -> list[Request]:
        """The requests among the steps, those of streams too."""
        return [
            step.request if isinstance(step, Listen) else step
            for step in self.steps
            if isinstance(step, Request | Listen)
        ]

    @property
    def pauses(self) -> list[float]:
        """The seconds of the pauses among the steps."""
        return [step.seconds for step in self.steps if isinstance(step, Pause)]


@overload
def converse(
    flow: Flow[T],
    script: Sequence[Reply | Saved | bytes | BaseException],
    clock: Clock | None = None,
) -> Conversation[T]: ...
@overload
def converse(
    flow: Stream[object],
    script: Sequence[Reply | Saved | bytes | BaseException],
    clock: Clock | None = None,
) -> Conversation[None]: ...
def converse(
    flow: Flow[T] | Stream[object],
    script: Sequence[Reply | Saved | bytes | BaseException],
    clock: Clock | None = None,
) -> Conversation[T] | Conversation[None]:
    """Play a flow to its end: each request gets the next entry of the script.

    Bytes are what a stream that was listened to says next; none are its end. An exception in the
    script is thrown into the flow. A pause moves the clock on, work is done, and what is shown is
    noted.

    Raises:
        AssertionError: the flow asks for more than the script has, or leaves some of it.
    """
    answers = list(script)
    steps: list[Step] = []
    shown: list[str] = []
    items: list[object] = []
    try:
        step: Step | Item[object] = next(flow)
        while True:
            answer: object = None
            if isinstance(step, Item):
                items.append(step.value)
            elif isinstance(step, Show):
                shown.append(step.text)
            else:
                steps.append(step)
            if isinstance(step, Pause) and clock is not None:
                clock.now += step.seconds
            elif isinstance(step, Work):
                answer = step.call()
            elif isinstance(step, Request | Save | Listen | Hear):
                if not answers:
                    raise AssertionError(f"the script has no answer left for {step}")
                answer = answers.pop(0)
            step = flow.throw(answer) if isinstance(answer, BaseException) else flow.send(answer)
    except StopIteration as done:
        if answers:
            raise AssertionError(f"the flow ended before {answers}") from None
        return Conversation(done.value, steps, shown, items)


class Answers:
    """A platform in a dictionary: `"GET /api/x"` -> an answer, answers in turn, or a function.

    The last of several answers stays. What was asked is in `asked`.
    """

    def __init__(
        self,
        routes: Mapping[str, Reply | Sequence[Reply] | Callable[[httpx.Request], Reply]],
    ) -> None:
        self._routes = dict(routes)
        self._turns: dict[str, int] = {}
        self.asked: list[httpx.Request] = []

    @property
    def transport(self) -> httpx.MockTransport:
        """The transport that carries requests here."""
        from rleaas._drivers.scripted import answering

        return answering(self._answer)

    def _answer(self, request: httpx.Request) -> Reply:
        self.asked.append(request)
        route = f"{request.method} {request.url.raw_path.decode().partition('?')[0]}"
        found = self._routes.get(route)
        if found is None:
            return reply({"detail": f"no answer scripted for {route}"}, 404)
        if isinstance(found, Reply):
            return found
        if callable(found):
            return found(request)
        turn = self._turns.get(route, 0)
        self._turns[route] = turn + 1
        return found[min(turn, len(found) - 1)]
