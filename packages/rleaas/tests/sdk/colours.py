"""One conversation with a platform, played by all three clients.

It is written for `AsyncClient`. For `Client` the methods are wrapped so that awaiting them returns
at once: the conversation is then played to its end without an event loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import anyio
from rleaas import AsyncClient, Client
from rleaas._binding import Resource, call, stream
from rleaas._flow.wire import Request

T = TypeVar("T")
Conversation = Callable[[AsyncClient], Coroutine[Any, Any, T]]

COLOURS = ("blocking", "asyncio", "trio")


@dataclass
class Colour:
    """Plays conversations in one colour, and notes the requests of all of them."""

    name: str
    url: str
    requests: list[Request] = field(default_factory=list[Request])
    called: set[str] = field(default_factory=set[str])

    def play(self, conversation: Conversation[T], **settings: Any) -> T:
        settings = {"base_url": self.url, "on_request": self.requests.append, **settings}
        if self.name == "blocking":
            with self._watching(), Client(**settings) as client:
                return _to_its_end(
                    conversation(cast("AsyncClient", _Awaitable(client, self.called)))
                )

        async def inside() -> T:
            async with AsyncClient(**settings) as client:
                return await conversation(client)

        with self._watching():
            return anyio.run(inside, backend=self.name)

    @contextmanager
    def _watching(self) -> Generator[None]:
        yield
        posts = [one for one in self.requests if one.method == "POST"]
        keys = [one.headers.get("Idempotency-Key") for one in posts]
        assert None not in keys
        assert len(set(keys)) == len(keys)

    def assert_all_called(self, *owners: type[Resource[Any]], but: Collection[str] = ()) -> None:
        """Every method of these classes was part of the conversation, which is one for all."""
        if self.name != "blocking":
            return
        names = {
            name
            for owner in owners
            for name in dir(owner)
            if isinstance(inspect.getattr_static(owner, name), call | stream)
        }
        assert names - self.called == set(but)


def _to_its_end(conversation: Coroutine[Any, Any, T]) -> T:
    try:
        conversation.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    conversation.close()
    raise AssertionError("a blocking method left something to wait for")


class _Awaitable:
    """A blocking resource whose methods are awaited."""

    def __init__(self, resource: Resource[Any], called: set[str]) -> None:
        self.resource = resource
        self._called = called

    def __getattr__(self, name: str) -> Any:
        wrap = functools.partial(_wrapped, called=self._called)
        made_by = inspect.getattr_static(type(self.resource), name, None)
        value = getattr(self.resource, name)
        if isinstance(made_by, call | stream):
            self._called.add(name)
        if isinstance(made_by, call):
            assert not inspect.iscoroutinefunction(value)
            return _asked(lambda args, kwargs: _Answer(lambda: value(*args, **kwargs), wrap))
        if isinstance(made_by, stream):
            return _asked(lambda args, kwargs: _Items(value(*args, **kwargs), wrap))
        return wrap(value)

    def __getitem__(self, name: str) -> Any:
        return self.resource[name]  # type: ignore[index]  # handles have it

    def __contains__(self, name: object) -> bool:
        return name in self.resource  # type: ignore[operator]  # handles have it

    def __repr__(self) -> str:
        return repr(self.resource)


class _Answer:
    def __init__(self, ask: Callable[[], Any], wrap: Callable[[object], Any]) -> None:
        self._ask = ask
        self._wrap = wrap

    def __await__(self) -> Generator[None, None, Any]:
        yield from ()
        return self._wrap(self._ask())


class _Items(AsyncIterator[Any]):
    def __init__(self, items: Iterator[Any], wrap: Callable[[object], Any]) -> None:
        assert isinstance(items, Iterator)
        self._items = items
        self._wrap = wrap

    async def __anext__(self) -> Any:
        try:
            return self._wrap(next(self._items))
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        cast("Generator[Any, None, None]", self._items).close()


def _asked(answer: Callable[[list[Any], dict[str, Any]], Any]) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return answer([bare(one) for one in args], {key: bare(kwargs[key]) for key in kwargs})

    return method


def _wrapped(value: object, called: set[str]) -> Any:
    if isinstance(value, Resource):
        return _Awaitable(cast("Any", value), called)
    if isinstance(value, list):
        return [_wrapped(one, called) for one in cast("Sequence[object]", value)]
    return value


def bare(value: object) -> Any:
    """Return what a wrapped handle, or a list of some, stands for."""
    if isinstance(value, _Awaitable):
        return value.resource
    if isinstance(value, list):
        return [bare(one) for one in cast("Sequence[object]", value)]
    return value
