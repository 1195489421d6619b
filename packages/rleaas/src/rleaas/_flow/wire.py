"""A conversation with the platform as a value: what to say, apart from how to wait.

A flow is a generator. It yields steps, a driver performs them and sends the answers back, and
failures are thrown into it, so that they are ordinary exceptions there. A flow does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar, cast

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class NoBody:
    """A request without a body, as opposed to one whose body is `null`."""


NO_BODY = NoBody()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request.

    Attributes:
        method: in upper case.
        path: from the base URL on, with every segment escaped already.
        params: the query; None values are left out before they get here.
        json: the body.
        content: a body that is not JSON; its type is among the headers.
        headers: besides those of the client.
        timeout: seconds this request may take, where the client's own figure does not fit.
        kind: what the path names, such as `environment`; for a 404 that does not say it.
        ref: which one the path names.
        keyed: whether it carries an idempotency key, so that repeating it changes nothing.
    """

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    json: object = NO_BODY
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float | None = None
    kind: str | None = None
    ref: str | None = None
    keyed: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice has the effect of sending it once."""
        return self.keyed or self.method in ("GET", "HEAD")

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request; header names are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def request_id(self) -> str | None:
        """The server's id of the request."""
        return self.headers.get("x-request-id")


@dataclass(frozen=True, slots=True)
class Save:
    """Write the body of a good answer to a file, which appears only if its SHA-256 is `sha256`.

    Where that is None, nobody knows it beforehand, and the file appears when it is complete.
    """

    request: Request
    target: Path
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Saved:
    """What came of a `Save`: the answer without its body, and the digest of that body."""

    reply: Reply
    sha256: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Open an answer that goes on, in place of the one that was open before.

    What comes of it is the answer: without its body where that is a stream of events, else whole.
    `silence` is how many seconds it may say nothing.
    """

    request: Request
    silence: float


@dataclass(frozen=True, slots=True)
class Hear:
    """Wait for the next bytes of the answer that is open; none are its end."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Do nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Show:
    """Tell a person who is watching how far things are.

    `elapsed` is shown behind the text where a line can be written over. `force` shows each new text
    where nobody seems to watch, too. `fraction` is how much is done, from 0 to 1, where that is
    known.
    """

    text: str
    elapsed: str = ""
    force: bool = False
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Something slow that is done on this machine, such as loading a policy."""

    call: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Item(Generic[T_co]):
    """Hand a value to whoever iterates over the stream."""

    value: T_co


Step = Request | Save | Listen | Hear | Pause | Show | Work
Flow = Generator[Step, object, T]
Stream = Generator[Step | Item[T], object, None]


def send(request: Request) -> Flow[Reply]:
    """Send the request once and return whatever the answer is."""
    answer = yield request
    if not isinstance(answer, Reply):
        raise TypeError(f"a driver answered {request} with {answer!r}")
    return answer


def save(step: Save) -> Flow[Saved]:
    """Send the request once and keep the body of a good answer."""
    answer = yield step
    if not isinstance(answer, Saved):
        raise TypeError(f"a driver answered {step} with {answer!r}")
    return answer


def listen(request: Request, silence: float) -> Flow[Reply]:
    """Open an answer that goes on, and return it as far as it is there."""
    answer = yield Listen(request, silence)
    if not isinstance(answer, Reply):
        raise TypeError(f"a driver answered {request} with {answer!r}")
    return answer


def hear() -> Flow[bytes]:
    """Return the next bytes of the answer that is open; none are its end."""
    answer = yield Hear()
    if not isinstance(answer, bytes):
        raise TypeError(f"a driver heard {answer!r}")
    return answer


def work(call: Callable[[], T]) -> Flow[T]:
    """Do something slow and return its result."""
    return cast("T", (yield Work(call)))


def pause(seconds: float) -> Flow[None]:
    """Do nothing for a while."""
    yield Pause(seconds)


def show(
    text: str, *, elapsed: str = "", force: bool = False, fraction: float | None = None
) -> Flow[None]:
    """Tell a person who is watching how far things are."""
    yield Show(text, elapsed, force, fraction)
