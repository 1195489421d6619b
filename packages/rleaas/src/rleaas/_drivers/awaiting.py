"""Performs flows while other tasks go on; under asyncio and under trio."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any, Self, TypeVar, cast

import anyio
import anyio.to_thread
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


class Awaiting:
    """The driver of `AsyncClient`."""

    def __init__(
        self,
        context: Context,
        credential: Credential,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
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

    async def aclose(self) -> None:
        """Give back the connections."""
        self._pool.closed = True
        await self._connected.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow to its end and return its result."""
        performance = _Performance(self)
        try:
            step = next(flow)
            while True:
                try:
                    answer = await performance.perform(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            return cast("T", done.value)
        finally:
            flow.close()
            await performance.aclose()

    async def iterate(self, flow: Stream[T]) -> AsyncGenerator[T, None]:
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
                    answer = await performance.perform(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration:
            return
        finally:
            flow.close()
            await performance.aclose()

    # What a method takes and gives is for `_binding` to say; here it only passes through.
    def bind(self, flow: Callable[..., Flow[Any]], holder: object) -> Callable[..., Any]:
        """Return the coroutine method that performs `flow(holder, ...)`."""
        bound = MethodType(flow, holder)

        @functools.wraps(bound)
        async def method(*args: Any, **kwargs: Any) -> Any:
            return await self.run(bound(*args, **kwargs))

        return method

    def bind_stream(self, flow: Callable[..., Stream[Any]], holder: object) -> Callable[..., Any]:
        """Return the method that iterates asynchronously over `flow(holder, ...)`."""
        bound = MethodType(flow, holder)

        @functools.wraps(bound)
        def method(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            return self.iterate(bound(*args, **kwargs))

        return method

    def _new(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=standing_headers(self._credential),
            transport=self._transport,
            verify=trusted(),
            follow_redirects=False,
        )

    @property
    def _connected(self) -> httpx.AsyncClient:
        pool = self._pool
        if pool.process != os.getpid():
            # Connections of the parent are in use there: two readers would mix up their answers.
            pool.http, pool.process = self._new(), os.getpid()
        return pool.http

    async def send(self, request: Request) -> Reply:
        """Send a request and return its whole answer."""
        context, http = self.context, self._ready(request)
        watch = Stopwatch(request, self._hooks)
        given = arguments(request, context.base_url, context.timeout)
        with failures(request, context.base_url, context.timeout):
            async with http.stream(**given) as response:
                body = await self._body(request, response)
        return watch.note(reply_of(response, body))

    async def save(self, step: Save) -> Saved:
        """Send a request and keep its answer as a file."""
        request, context = step.request, self.context
        http = self._ready(request)
        watch = Stopwatch(request, self._hooks)
        given = arguments(request, context.base_url, context.timeout)
        with failures(request, context.base_url, context.timeout):
            async with http.stream(**given) as response:
                if not response.is_success:
                    body = await self._body(request, response)
                    return Saved(watch.note(reply_of(response, body)), "")
                with PartFile(step.target, step.sha256) as part:
                    async with _pieces(response, CHUNK) as pieces:
                        async for chunk in pieces:
                            await anyio.to_thread.run_sync(part.write, chunk)
                    digest = await anyio.to_thread.run_sync(part.commit)
                return Saved(watch.note(reply_of(response, b"")), digest)

    async def listen(self, step: Listen) -> tuple[Reply, httpx.Response | None]:
        """Send a request; an answer that goes on is returned open."""
        request, context = step.request, self.context
        http = self._ready(request)
        watch = Stopwatch(request, self._hooks)
        given = arguments(request, context.base_url, context.timeout, silence=step.silence)
        with failures(request, context.base_url, context.timeout, silence=step.silence):
            response = await http.send(http.build_request(**given), stream=True)
            if is_event_stream(response):
                return watch.note(reply_of(response, b"")), response
            try:
                return watch.note(reply_of(response, await self._body(request, response))), None
            finally:
                await response.aclose()

    async def hear(self, step: Listen, pieces: AsyncIterator[bytes]) -> bytes:
        """Return the next bytes of an answer that goes on."""
        context = self.context
        with failures(step.request, context.base_url, context.timeout, silence=step.silence):
            return await anext(pieces, b"")

    async def pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        await self._sleep(seconds)

    def progress(self) -> Progress:
        """Return what shows the progress of one call."""
        return self._progress()

    def _ready(self, request: Request) -> httpx.AsyncClient:
        if self._pool.closed:
            raise closed(request)
        return self._connected

    async def _body(self, request: Request, response: httpx.Response) -> bytes:
        body = Body(request, self.context.timeout)
        async with _pieces(response) as pieces:
            async for chunk in pieces:
                body.add(chunk)
        return body.whole()


@dataclass
class _Pool:
    """The connections that a driver and those made of it share."""

    http: httpx.AsyncClient
    process: int
    closed: bool = False


class _Performance:
    """One flow being performed: what it shows, and the answer that it listens to."""

    def __init__(self, driver: Awaiting) -> None:
        self._driver = driver
        self._progress: Progress | None = None
        self._heard: tuple[Listen, httpx.Response, AsyncIterator[bytes]] | None = None

    async def perform(self, step: Step) -> object:
        match step:
            case Request():
                return await self._driver.send(step)
            case Save():
                return await self._driver.save(step)
            case Listen():
                await self._hang_up()
                reply, response = await self._driver.listen(step)
                if response is not None:
                    self._heard = (step, response, response.aiter_bytes())
                return reply
            case Hear():
                if self._heard is None:
                    raise not_open()
                return await self._driver.hear(self._heard[0], self._heard[2])
            case Pause():
                await self._driver.pause(step.seconds)
                return None
            case Show():
                if self._progress is None:
                    self._progress = self._driver.progress()
                self._progress.show(step)
                return None
            case _:
                return await anyio.to_thread.run_sync(step.call)

    async def aclose(self) -> None:
        await self._hang_up()
        if self._progress is not None:
            self._progress.close()

    async def _hang_up(self) -> None:
        heard, self._heard = self._heard, None
        if heard is not None:
            await _leave(heard[1], heard[2])


@asynccontextmanager
async def _pieces(
    response: httpx.Response, size: int | None = None
) -> AsyncGenerator[AsyncIterator[bytes], None]:
    pieces = response.aiter_bytes(size)
    try:
        yield pieces
    except BaseException:
        await _leave(response, pieces)
        raise


async def _leave(response: httpx.Response, pieces: AsyncIterator[bytes]) -> None:
    with anyio.CancelScope(shield=True):
        await response.aclose()
        # The library's iterators are nested; what is left of them ends only by going on.
        try:
            async for _ in pieces:
                pass
        except (httpx.HTTPError, httpx.StreamError):
            pass
