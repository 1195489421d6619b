"""Performs flows while other tasks go on; under asyncio and under trio."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from types import MethodType
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
import httpx
from rlcore import Credential

from rleaas._drivers.exchange import (
    Stopwatch,
    arguments,
    closed,
    failures,
    reply_of,
    standing_headers,
)
from rleaas._drivers.part_file import CHUNK, PartFile
from rleaas._drivers.terminal import ProgressLine
from rleaas._flow.context import Context
from rleaas._flow.wire import Flow, Item, Pause, Reply, Request, Save, Saved, Show, Step, Stream

T = TypeVar("T")


class Awaiting:
    """The driver of `AsyncClient`."""

    def __init__(
        self,
        context: Context,
        credential: Credential,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.context = context
        self._sleep = sleep
        self._http = httpx.AsyncClient(
            headers=standing_headers(credential), transport=transport, follow_redirects=False
        )

    async def aclose(self) -> None:
        """Give back the connections."""
        await self._http.aclose()

    async def run(self, flow: Flow[T]) -> T:
        """Perform a flow to its end and return its result."""
        line = ProgressLine()
        try:
            step = next(flow)
            while True:
                try:
                    answer = await self._perform(step, line)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            return cast("T", done.value)
        finally:
            flow.close()
            line.close()

    async def iterate(self, flow: Stream[T]) -> AsyncIterator[T]:
        """Perform a stream as far as it is iterated over."""
        line = ProgressLine()
        try:
            step = next(flow)
            while True:
                if isinstance(step, Item):
                    yield step.value
                    step = next(flow)
                    continue
                try:
                    answer = await self._perform(step, line)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration:
            return
        finally:
            flow.close()
            line.close()

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
        def method(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            return self.iterate(bound(*args, **kwargs))

        return method

    async def _perform(self, step: Step, line: ProgressLine) -> object:
        match step:
            case Request():
                return await self._send(step)
            case Save():
                return await self._save(step)
            case Pause():
                await self._sleep(step.seconds)
                return None
            case Show():
                line.show(step)
                return None
            case _:
                return await anyio.to_thread.run_sync(step.call)

    async def _send(self, request: Request) -> Reply:
        if self._http.is_closed:
            raise closed(request)
        context = self.context
        watch = Stopwatch(request)
        with failures(request, context.base_url, context.timeout):
            response = await self._http.request(
                **arguments(request, context.base_url, context.timeout)
            )
        return watch.note(reply_of(response, response.content))

    async def _save(self, step: Save) -> Saved:
        request, context = step.request, self.context
        if self._http.is_closed:
            raise closed(request)
        watch = Stopwatch(request)
        given = arguments(request, context.base_url, context.timeout)
        with failures(request, context.base_url, context.timeout):
            async with self._http.stream(**given) as response:
                if not response.is_success:
                    return Saved(watch.note(reply_of(response, await response.aread())), "")
                with PartFile(step.target, step.sha256) as part:
                    async for chunk in response.aiter_bytes(CHUNK):
                        await anyio.to_thread.run_sync(part.write, chunk)
                    digest = await anyio.to_thread.run_sync(part.commit)
                return Saved(watch.note(reply_of(response, b"")), digest)
