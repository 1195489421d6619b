"""Sessions that are stepped side by side: in one call where one message steps them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from rleaas.training.guarded import GuardedEnv, Outcome
from rleaas.training.learner_spaces import to_environments

if TYPE_CHECKING:
    from rlmesh.numpy import RemoteEnvs

TRIED = 64
"""So many turns each way is measured."""
KEPT = 512
"""So many turns the quicker one is kept."""
# Actions are whatever the environment's spaces say.
Value = Any
Rows = Sequence[Value] | NDArray[Any]


class Turns:
    """Whether crews that take turns are sent at once or in one message: by which is quicker here.

    At once, the environments of one crew work while the policy decides for the other, which takes a
    core for them. Where others want the cores too, the messages cost more than that gives. What is
    learned is the same either way, so that the clock may decide; it is asked again now and then.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._cost: dict[bool, float] = {}
        self._way, self._left, self._tries = False, TRIED, True
        self._steps, self._since = 0, clock()

    def pause(self) -> None:
        """Hear that something else was done meanwhile: what was begun to be measured is not."""
        if self._tries:
            self._left = TRIED
        self._steps, self._since = 0, self._clock()

    def at_once(self, sessions: int) -> bool:
        """The way that the next turn, of so many sessions, goes."""
        if self._left == 0:
            self._go_on()
        self._left -= 1
        self._steps += sessions
        return self._way

    def _go_on(self) -> None:
        if self._tries:
            cost = (self._clock() - self._since) / self._steps
            # One of them alone may have been disturbed.
            self._cost[self._way] = (self._cost.get(self._way, cost) + cost) / 2
        if self._tries and self._way:
            self._way = self._cost[True] < self._cost[False]
            self._left, self._tries = KEPT, False
        else:
            self._way, self._left, self._tries = self._tries, TRIED, True
        self._steps, self._since = 0, self._clock()


def begin_all(sessions: Sequence[GuardedEnv], actions: Rows, *, at_once: bool = False) -> None:
    """Send each session's next action ahead, where that works.

    Those that share a session with others wait for theirs, unless they go `at_once`.
    """
    several, places = _together(sessions)
    if several is not None:
        given = to_environments(sessions[0].given_actions, actions)
        if several.begin_all(places, given, at_once=at_once):
            for session, action in zip(sessions, given, strict=True):
                session.sent(action)
            return
    for session, action in zip(sessions, actions, strict=True):
        if session.begins:
            session.begin(action)


def step_all(sessions: Sequence[GuardedEnv], actions: Rows) -> Iterable[Outcome]:
    """Step each session, in turn; what one raises is raised where it is asked for its outcome.

    A session whose outcome was given may be reset before the next is asked for.
    """
    several, places = _together(sessions)
    if several is None:
        told: list[Outcome | None] = [None] * len(sessions)
    else:
        told = several.step_all(places)
    for session, action, outcome in zip(sessions, actions, told, strict=True):
        yield session.step(action) if outcome is None else session.took(outcome)


def _together(sessions: Sequence[GuardedEnv]) -> tuple[RemoteEnvs | None, list[int]]:
    """The session of the server that all of them share, and their places in it."""
    found = [place for session in sessions if (place := session.place) is not None]
    if len(found) < len(sessions) or not found:
        return None, []
    several = found[0][0]
    if any(one is not several for one, _ in found):
        return None, []
    return several, [place for _, place in found]
