"""How a flow that is written once gets its colour.

A resource is generic in its driver. A method decorated with `@call` is a descriptor: read from a
resource that holds a blocking driver it is a plain method, read from one that holds an awaiting
driver it is a coroutine method, with the same parameters and docstring; with the offline driver of
tests it returns the flow itself. The overloads of `__get__` say so to type checkers; at run time
the driver does it. `@stream` is the same for iteration.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

from rlcore import ConfigurationError, Error

from rleaas._flow.context import Context
from rleaas._flow.wire import Flow, Stream
from rleaas.models.html import Listing

if TYPE_CHECKING:
    # Drivers import the HTTP library; the binding only names them.
    from rleaas._drivers.awaiting import Awaiting
    from rleaas._drivers.blocking import Blocking
    from rleaas._drivers.offline import Offline

P = ParamSpec("P")
T = TypeVar("T")
Y = TypeVar("Y")


class Driver(Protocol):
    """Performs flows in one colour."""

    @property
    def context(self) -> Context:
        """What flows take from outside."""
        ...

    def bind(self, flow: Callable[..., Flow[Any]], holder: object) -> Callable[..., Any]:
        """Return the method that performs `flow(holder, ...)`."""
        ...

    def bind_stream(self, flow: Callable[..., Stream[Any]], holder: object) -> Callable[..., Any]:
        """Return the method that iterates over `flow(holder, ...)`."""
        ...


D = TypeVar("D", bound=Driver)


class Resource(Generic[D]):
    """Something whose methods are flows, performed by the driver it holds."""

    def __init__(self, driver: D) -> None:
        self._driver = driver

    @property
    def _context(self) -> Context:
        return self._driver.context


def _listing(flow: Callable[Concatenate[Any, P], Flow[T]]) -> Callable[..., Flow[T]]:
    """Make the lists that a flow returns ones that notebooks show."""

    @functools.wraps(flow)
    def listing(holder: Any, /, *args: P.args, **kwargs: P.kwargs) -> Flow[T]:
        result = yield from _begun(_name_of(flow, holder), flow(holder, *args, **kwargs))
        if type(result) is list:
            return cast("T", Listing(cast("list[object]", result)))
        return result

    return listing


def _streaming(flow: Callable[Concatenate[Any, P], Stream[T]]) -> Callable[..., Stream[T]]:
    @functools.wraps(flow)
    def streaming(holder: Any, /, *args: P.args, **kwargs: P.kwargs) -> Stream[T]:
        yield from _begun(_name_of(flow, holder), flow(holder, *args, **kwargs))

    return streaming


def _name_of(flow: Callable[..., object], holder: object) -> str:
    # Of the class that the caller has, not of the room that the method is in.
    return f"{type(holder).__name__}.{flow.__name__}"


def _begun(name: str, steps: Generator[Y, object, T]) -> Generator[Y, object, T]:
    """Perform a flow; what fails before its first step is about the arguments.

    Raises:
        ConfigurationError: it cannot use an argument; nothing was sent.
    """
    try:
        step = next(steps)
    except StopIteration as done:
        return cast("T", done.value)
    except Error:
        raise  # it says already what is wrong with which argument
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise ConfigurationError(
            f"{name} cannot use an argument: {error}",
            code="unusable_argument",
            hint="Look at its type and its range.",
        ) from error
    try:
        while True:
            try:
                answer = yield step
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        return cast("T", done.value)
    finally:
        steps.close()


class call(Generic[P, T]):  # noqa: N801 - used as a decorator, like `property`
    """A method that is a flow: `flow` is the function itself, for tests and other flows."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Flow[T]]) -> None:
        self.flow = _listing(flow)
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, holder: None, owner: type) -> call[P, T]: ...
    @overload
    def __get__(self, holder: Resource[Blocking], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, holder: Resource[Awaiting], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, holder: Resource[Offline], owner: type) -> Callable[P, Flow[T]]: ...
    # One descriptor has several types; the overloads above are what callers see.
    def __get__(self, holder: Resource[Any] | None, owner: type) -> Any:
        if holder is None:
            return self
        return holder._driver.bind(self.flow, holder)  # pyright: ignore[reportPrivateUsage]  # ours


class stream(Generic[P, T]):  # noqa: N801 - used as a decorator, like `property`
    """A method that is a stream of values: an iterator, or an async iterator."""

    def __init__(self, flow: Callable[Concatenate[Any, P], Stream[T]]) -> None:
        self.flow = _streaming(flow)
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, holder: None, owner: type) -> stream[P, T]: ...
    @overload
    def __get__(
        self, holder: Resource[Blocking], owner: type
    ) -> Callable[P, Generator[T, None, None]]: ...
    @overload
    def __get__(
        self, holder: Resource[Awaiting], owner: type
    ) -> Callable[P, AsyncGenerator[T, None]]: ...
    @overload
    def __get__(self, holder: Resource[Offline], owner: type) -> Callable[P, Stream[T]]: ...
    # One descriptor has several types; the overloads above are what callers see.
    def __get__(self, holder: Resource[Any] | None, owner: type) -> Any:
        if holder is None:
            return self
        return holder._driver.bind_stream(self.flow, holder)  # pyright: ignore[reportPrivateUsage]  # ours
