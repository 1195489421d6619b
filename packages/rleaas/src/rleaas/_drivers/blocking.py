"""Performs flows while the calling thread waits."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any, TypeVar, cast

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


class Blocking:
    """The driver of `Client`; safe to use from several threads."""

    def __init__(
        self,
        context: Context,
        credential: Credential,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.context = context
        self._sleep = sleep
        self._http = httpx.Client(
            headers=standing_headers(credential), transport=transport, follow_redirects=False
        )

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    def run(self, flow: Flow[T]) -> T:
        """Perform a flow to its end and return its result."""
        line = ProgressLine()
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._perform(step, line)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as done:
            return cast("T", done.value)
        finally:
            flow.close()
            line.close()

    def iterate(self, flow: Stream[T]) -> Iterator[T]:
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
                    answer = self._perform(step, line)
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
        def method(*args: Any, **kwargs: Any) -> Iterator[Any]:
            return self.iterate(bound(*args, **kwargs))

        return method

    def _perform(self, step: Step, line: ProgressLine) -> object:
        match step:
            case Request():
                return self._send(step)
            case Save():
                return self._save(step)
            case Pause():
                self._sleep(step.seconds)
                return None
            case Show():
                line.show(step)
                return None
            case _:
                return step.call()

    def _send(self, request: Request) -> Reply:
        if self._http.is_closed:
            raise closed(request)
        context = self.context
        watch = Stopwatch(request)
        with failures(request, context.base_url, context.timeout):
            response = self._http.request(**arguments(request, context.base_url, context.timeout))
        return watch.note(reply_of(response, response.content))

    def _save(self, step: Save) -> Saved:
        request, context = step.request, self.context
        if self._http.is_closed:
            raise closed(request)
        watch = Stopwatch(request)
        given = arguments(request, context.base_url, context.timeout)
        with (
            failures(request, context.base_url, context.timeout),
            self._http.stream(**given) as response,
        ):
            if not response.is_success:
                return Saved(watch.note(reply_of(response, response.read())), "")
            with PartFile(step.target, step.sha256) as part:
                for chunk in response.iter_bytes(CHUNK):
                    part.write(chunk)
                return Saved(watch.note(reply_of(response, b"")), part.commit())
