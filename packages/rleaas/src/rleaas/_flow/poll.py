"""Waiting for a record to reach a state: poll, show, give up at the deadline."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from rlcore import ConfigurationError, Deadline, PlatformTimeout, RLEaaSError

from rleaas._flow.context import Context
from rleaas._flow.retry import OUTAGE_TOLERATED, is_transient
from rleaas._flow.wire import Flow, pause, show

R = TypeVar("R")

SHORTEST_INTERVAL = 0.25
LONGEST_INTERVAL = 10.0
LONGEST_WAIT = 1e9
"""More seconds than anybody waits, and few enough for every clock."""

INTERVAL_SHARE = 0.05
"""A look this share of the time so far later makes no wait longer by more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Generic[R]):
    """What is waited for, and how patiently.

    Attributes:
        what: for messages, such as `training job 'j1'`.
        look: returns the record as it is now, by the deadline.
        finished: whether the wait is over.
        status: the record's status, for messages.
        describe: how far it is, for a person.
        fraction: how much of it is done, from 0 to 1; None where that is not known.
        timeout: seconds; None waits as long as it takes.
        interval: seconds between two looks; None lets it grow with the time waited so far.
        seen: called with every record; what it raises ends the wait.
        progress: True shows progress always, False never, None where a person watches.
    """

    what: str
    look: Callable[[Deadline], Flow[R]]
    finished: Callable[[R], bool]
    status: Callable[[R], str]
    describe: Callable[[R], str]
    timeout: float | None
    interval: float | None
    seen: Callable[[R], object] | None = None
    progress: bool | None = None
    fraction: Callable[[R], float | None] | None = None


def wait(goal: Wait[R], context: Context) -> Flow[R]:
    """Return the record once it is finished; it is looked at at once, and at the deadline again.

    Raises:
        PlatformTimeout: the deadline passed; the thing waited for goes on.
        RLEaaSError: the platform refused to answer, or gave no answer for too long.
    """
    require_seconds("timeout", goal.timeout, f"wait for {goal.what}")
    require_seconds("poll_interval", goal.interval, f"wait for {goal.what}", zero_too=False)
    started = context.clock()
    deadline = Deadline.after(goal.timeout, clock=context.clock)
    outage: float | None = None
    record: R | None = None
    while True:
        last_chance = deadline.expired()
        try:
            record = yield from goal.look(deadline)
        except RLEaaSError as error:
            now = context.clock()
            outage = now if outage is None else outage
            # Who never got an answer learns why at once instead of at the end of the wait.
            if record is None or not is_transient(error) or now - outage >= OUTAGE_TOLERATED:
                raise
            if last_chance or deadline.expired():
                raise _timeout(goal, record) from error
        else:
            outage = None
            if goal.seen is not None:
                goal.seen(record)
            if goal.progress is not False:
                yield from show(
                    f"{goal.what}: {goal.describe(record)}",
                    elapsed=_elapsed(context.clock() - started),
                    force=goal.progress is True,
                    fraction=None if goal.fraction is None else goal.fraction(record),
                )
            if goal.finished(record):
                return record
            if last_chance or deadline.expired():
                raise _timeout(goal, record)
        interval = _interval(goal.interval, context.clock() - started)
        yield from pause(deadline.at_most(interval))


def require_seconds(name: str, value: object, purpose: str, *, zero_too: bool = True) -> None:
    """Refuse what is no number of seconds that somebody could wait; None is one without an end.

    Raises:
        ConfigurationError: it is none; nothing was sent.
    """
    if value is None:
        return
    seconds = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not 0 <= seconds <= LONGEST_WAIT or (seconds == 0 and not zero_too):
        raise ConfigurationError(
            f"{name} {value!r} is not a number of seconds"
            + ("" if zero_too else " above 0")
            + f" to {purpose}",
            hint="Leave it out to get the default.",
        )


def _interval(asked: float | None, waited: float) -> float:
    if asked is not None:
        return asked
    return min(LONGEST_INTERVAL, max(SHORTEST_INTERVAL, waited * INTERVAL_SHARE))


def _timeout(goal: Wait[R], record: R) -> PlatformTimeout:
    status = goal.status(record)
    return PlatformTimeout(
        f"{goal.what} is still {status!r} after {goal.timeout:g} s",
        hint="It goes on; wait again, with a longer timeout.",
        waited_for=goal.what,
        last_status=status,
    )


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
