"""Performs flows while the calling thread waits."""

from __future__ import annotations

import copy
import functools
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from types import MethodType
from typing import Any, Self, TypeVar, cast

import httpx
from rlcore import Credential

from rleaas._drivers.exchange import (
    Body,
    Stopwatch,
    arguments,
    closed,
    failures,
    is_event_stream,
    not_open,
    reply_of,
    standing_headers,
    trusted,
)
from rleaas._drivers.hooks import Hooks
from rleaas._drivers.part_file import CHUNK, PartFile
from rleaas._drivers.progress import MakeProgress, Progress, progress_for_people
from rleaas._flow.context import Context
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
)

T = TypeVar("T")


class Blocking:
    """The driver of `Client`; safe to use from several threads, and in a forked process."""

    def __init__(
        self,
        context: Context,
        credential: Credential,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        *,
        hooks: Hooks | None = None,
        progress: MakeProgress = progress_for_people,
    ) -> None:
        self.context = context
        self._sleep = sleep
        self._hooks = Hooks() if hooks is None else hooks
        self._progress = progress
        self._credential = credential
        self._transport = transport
        self._pool = _Pool(self._new(), os.getpid())

    def with_context(self, context: Context) -> Self:
        """Return a driver with another context over the same connections."""
        other = copy.copy(self)
        other.context = context
        return other

    def close(self) -> None:
        """Give back the connections."""
        self._pool.closed = True
        self._connected.close()

    def run(self, flow: Flow[T]) -> T:
        """Perform a flow to its end and return its result."""
        performance = _Performance(self)
        try:
            step = next(flow)
            while True:
                try:
                    answer = performance.perform(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            return cast("T", done.value)
        finally:
            flow.close()
            performance.close()

    def iterate(self, flow: Stream[T]) -> Generator[T, None, None]:
        """Perform a stream as far as it is iterated over."""
        performance = _Performance(self)
        try:
            step = next(flow)
            while True:
                if isinstance(step, Item):
                    yield step.value
                    step = next(flow)
                    continue
                try:
                    answer = performance.perform(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration:
            return
        finally:
            flow.close()
            performance.close()

    # What a method takes and gives is for `_binding` to say; here it only passes through.
    def bind(self, flow: Callable[..., Flow[Any]], holder: object) -> Callable[..., Any]:
        """Return the method that performs `flow(holder, ...)`."""
        bound = MethodType(flow, holder)

        @functools.wraps(bound)
        def method(*args: Any, **kwargs: Any) -> Any:
            return self.run(bound(*args, **kwargs))

        return method

    def bind_stream(self, flow: Callable[..., Stream[Any]], holder: object) -> Callable[..., Any]:
        """Return the method that iterates over `flow(holder, ...)`."""
        bound = MethodType(flow, holder)

        @functools.wraps(bound)
        def method(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
            return self.iterate(bound(*args, **kwargs))

        return method

    def _new(self) -> httpx.Client:
        return httpx.Client(
            headers=standing_headers(self._credential),
            transport=self._transport,
            verify=trusted(),
            follow_redirects=False,
        )

    @property
    def _connected(self) -> httpx.Client:
        pool = self._pool
        if pool.process != os.getpid():
            # Connections of the parent are in use there: two readers would mix up their answers.
            pool.http, pool.process = self._new(), os.getpid()
        return pool.http

    def send(self, request: Request) -> Reply:
        """Send a request and return its whole answer."""
        context, http = self.context, self._ready(request)
        watch = Stopwatch(request, self._hooks)
        with (
            failures(request, context.base_url, context.timeout),
            http.stream(**arguments(request, context.base_url, context.timeout)) as response,
        ):
            body = self._body(request, response)
        return watch.note(reply_of(response, body))

    def save(self, step: Save) -> Saved:
        """Send a request and keep its answer as a file."""
        request, context = step.request, self.context
        http = self._ready(request)
        watch = Stopwatch(request, self._hooks)
        given = arguments(request, context.base_url, context.timeout)
        with (
            failures(request, context.base_url, context.timeout),
            http.stream(**given) as response,
        ):
            if not response.is_success:
                return Saved(watch.note(reply_of(response, self._body(request, response))), "")
            with PartFile(step.target, step.sha256) as part:
                for chunk in response.iter_bytes(CHUNK):
                    part.write(chunk)
                return Saved(watch.note(reply_of(response, b"")), part.commit())

    def listen(self, step: Listen) -> tuple[Reply, httpx.Response | None]:
        """Send a request; an answer that goes on is returned open."""
        request, context = step.request, self.context
        http = self._ready(request)
        watch = Stopwatch(request, self._hooks)
        given = arguments(request, context.base_url, context.timeout, silence=step.silence)
        with failures(request, context.base_url, context.timeout, silence=step.silence):
            response = http.send(http.build_request(**given), stream=True)
            if is_event_stream(response):
                return watch.note(reply_of(response, b"")), response
            try:
                return watch.note(reply_of(response, self._body(request, response))), None
            finally:
                response.close()

    def hear(self, step: Listen, pieces: Iterator[bytes]) -> bytes:
        """Return the next bytes of an answer that goes on."""
        context = self.context
        with failures(step.request, context.base_url, context.timeout, silence=step.silence):
            return next(pieces, b"")

    def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        self._sleep(seconds)

    def progress(self) -> Progress:
        """Return what shows the progress of one call."""
        return self._progress()

    def _ready(self, request: Request) -> httpx.Client:
        if self._pool.closed:
            raise closed(request)
        return self._connected

    def _body(self, request: Request, response: httpx.Response) -> bytes:
        body = Body(request, self.context.timeout)
        for chunk in response.iter_bytes():
            body.add(chunk)
        return body.whole()


@dataclass
class _Pool:
    """The connections that a driver and those made of it share."""

    http: httpx.Client
    process: int
    closed: bool = False


class _Performance:
    """One flow being performed: what it shows, and the answer that it listens to."""

    def __init__(self, driver: Blocking) -> None:
        self._driver = driver
        self._progress: Progress | None = None
        self._heard: tuple[Listen, httpx.Response, Iterator[bytes]] | None = None

    def perform(self, step: Step) -> object:
        match step:
            case Request():
                return self._driver.send(step)
            case Save():
                return self._driver.save(step)
            case Listen():
                self._hang_up()
                reply, response = self._driver.listen(step)
                if response is not None:
                    self._heard = (step, response, response.iter_bytes())
                return reply
            case Hear():
                if self._heard is None:
                    raise not_open()
                return self._driver.hear(self._heard[0], self._heard[2])
            case Pause():
                self._driver.pause(step.seconds)
                return None
            case Show():
                if self._progress is None:
                    self._progress = self._driver.progress()
                self._progress.show(step)
                return None
            case _:
                return step.call()

    def close(self) -> None:
        self._hang_up()
        if self._progress is not None:
            self._progress.close()

    def _hang_up(self) -> None:
        heard, self._heard = self._heard, None
        if heard is not None:
            heard[1].close()
