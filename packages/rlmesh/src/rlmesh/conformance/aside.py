"""The process in which an environment is checked apart: it tells its parent all that happens."""

from __future__ import annotations

import faulthandler
import os
import pickle
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

from rlcore import Error

from rlmesh.conformance.run import check
from rlmesh.conformance.verdicts import Finding, Report
from rlmesh.conformance.watching import Watcher


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be checked, and how.

    Attributes:
        grace: seconds beyond the timeout, before a call that no thread can interrupt ends all.
    """

    target: str
    path: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: int
    timeout: float
    only: tuple[str, ...]
    skip: tuple[str, ...]
    grace: float


@dataclass(frozen=True, slots=True)
class Calling:
    """A call on the environment begins."""

    what: str


@dataclass(frozen=True, slots=True)
class About:
    """The environment is known."""

    environment: str
    digest: str | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judging:
    """A check begins."""

    name: str


Told: TypeAlias = Calling | About | Judging | Finding | Report | Error


class Teller(Watcher):
    """Tells everything, and keeps the timer that ends a process in which nothing runs any more."""

    def __init__(self, to: Connection, seconds: float) -> None:
        self._to = to
        self._seconds = seconds
        self._lock = threading.Lock()
        self._watched = _can_watch()

    def tell(self, what: Told) -> None:
        """Send it; it is with the kernel when this returns, whatever the environment does next."""
        with self._lock:
            self._to.send(what)

    def glance(self) -> None:
        """Wind up the timer again."""
        if self._watched:
            # A call that holds the interpreter stops even our own waiting; this is none of its.
            faulthandler.dump_traceback_later(self._seconds, exit=True)

    def call(self, what: str) -> None:
        """Tell of a call."""
        self.tell(Calling(what))

    def about(self, environment: str, digest: str | None, names: tuple[str, ...]) -> None:
        """Tell what is checked."""
        self.tell(About(environment, digest, names))

    def judging(self, name: str) -> None:
        """Tell which check begins."""
        self.tell(Judging(name))

    def found(self, finding: Finding) -> None:
        """Tell a finding."""
        self.tell(finding)


def main() -> None:
    """Check as the parent has ordered, and tell it."""
    channel = Connection(int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    order: Order = channel.recv()
    sys.path[:] = order.path
    teller = Teller(channel, order.timeout + order.grace)
    if _can_watch():
        faulthandler.enable()
    teller.glance()
    try:
        report = check(
            order.target,
            seeds=order.seeds,
            steps=order.steps,
            timeout=order.timeout,
            only=order.only,
            skip=order.skip,
            watcher=teller,
        )
    except Error as error:
        teller.tell(_sendable(error))
    except KeyboardInterrupt:
        os._exit(130)  # the parent was interrupted as well, and says so
    else:
        teller.tell(report)
    faulthandler.cancel_dump_traceback_later()


def _sendable(error: Error) -> Error:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a fact of it, or its class, may be the environment's own
        return Error(error.message, code=error.code, hint=error.hint)
    return error


def _can_watch() -> bool:
    """Tell whether there is a standard error to which a traceback could be written."""
    try:
        os.fstat(sys.stderr.fileno())
    except (AttributeError, OSError, ValueError):
        return False
    return True
