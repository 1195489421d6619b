"""What a model's driver does: predictions, alone or several as one, and whatever else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlmesh.protocol.model_faults import fault_of
from rlmesh.protocol.model_requests import Actions, Ask, Leaves, Name, Result, Timing
from rlmesh.server.model_route import Route
from rlmesh.values import Buffer

Deliver = Callable[[Result, Timing], None]


@dataclass(slots=True, eq=False)
class Prediction:
    """Actions that somebody waits for.

    Attributes:
        route: whose.
        name: how the answer is addressed.
        ask: the observation.
        deliver: takes the answer, in the driver's thread.
        wanted: tells whether anybody still waits for it.
        arrived: nanoseconds of the clock.
    """

    route: Route
    name: Name
    ask: Ask
    deliver: Deliver
    wanted: Callable[[], bool]
    arrived: int = field(default_factory=time.perf_counter_ns)

    @property
    def rows(self) -> int:
        """How many episodes it is about."""
        return len(self.ask.rows)


@dataclass(slots=True, eq=False)
class Chore:
    """Anything else that has to happen in the driver's thread, in its turn."""

    perform: Callable[[], None]


class Clock:
    """Times the parts of one prediction."""

    def __init__(self, arrived: int) -> None:
        self._arrived = arrived
        self._last = time.perf_counter_ns()
        self.queue = self._last - arrived
        self.parts: list[int] = []

    def lap(self) -> None:
        """Note that a part is over: decoding, the model, encoding."""
        now = time.perf_counter_ns()
        self.parts.append(now - self._last)
        self._last = now

    def timing(self) -> Timing:
        """Return what was measured so far."""
        decode, user, encode = [*self.parts, None, None, None][:3]
        total = time.perf_counter_ns() - self._arrived
        return Timing(total, decode, user, encode, self.queue)


def predict(jobs: Sequence[Prediction]) -> None:
    """Answer predictions that go into one call of the model; what fails together is tried alone."""
    if len(jobs) == 1:
        _predict_alone(jobs[0])
    elif not _predict_together(jobs):
        for job in jobs:
            _predict_alone(job)


def _predict_alone(job: Prediction) -> None:
    clock = Clock(job.arrived)
    try:
        result: Result = Actions(job.name, _frames(job, clock))
    except BaseException as error:  # also SystemExit: a model must not end the server
        result = fault_of(error)
    job.deliver(result, clock.timing())


def _frames(job: Prediction, clock: Clock) -> list[Leaves]:
    route, rows = job.route, job.rows
    observation = route.decoded(job.ask.leaves, rows)
    episodes = route.opened(job.ask.rows)
    clock.lap()
    if rows == 1:
        actions = route.bound.predict(observation, episodes[0])
        clock.lap()
        frames: list[Leaves] = [route.action.encode(action) for action in actions]
    else:
        together = _of_rows(route, observation, episodes)
        clock.lap()
        frames = [route.actions.encode(batch, rows) for batch in together]
    clock.lap()
    return frames


def _of_rows(route: Route, observation: Any, episodes: Sequence[object]) -> Sequence[Any]:
    """Return batches of actions over time for several rows, in one call where the model can."""
    if route.takes_batches:
        return route.bound.predict_batch(observation, episodes)
    count = len(episodes)
    each = [None] * count if observation is None else route.observations.split(observation, count)
    lanes = [route.bound.predict(one, episode) for one, episode in zip(each, episodes, strict=True)]
    # All rows share one axis of time, so it is as long as the shortest of them.
    return [[lane[at] for lane in lanes] for at in range(min(map(len, lanes)))]


def _predict_together(jobs: Sequence[Prediction]) -> bool:
    clocks = [Clock(job.arrived) for job in jobs]
    first = jobs[0].route
    episodes: list[object] = []
    mark: object = None
    try:
        rows = sum(job.rows for job in jobs)
        parts = zip(*[job.ask.leaves or () for job in jobs], strict=True)
        leaves = [b"".join(each) for each in parts]
        observation = first.observations.decode(leaves, rows)
        for job in jobs:
            episodes += job.route.opened(job.ask.rows)
        mark = first.bound.mark(episodes)
        _lap(clocks)
        batches = first.bound.predict_batch(observation, episodes)
        _lap(clocks)
        frames = [first.actions.encode(batch, rows) for batch in batches]
        _lap(clocks)
    except Exception:  # alone, each is told what is wrong with its own
        if mark is not None:
            first.bound.rewind(episodes, mark)
        return False
    sizes, start = first.actions.fixed_sizes or (), 0
    for job, clock in zip(jobs, clocks, strict=True):
        stop = start + job.rows
        mine = [_cut(frame, sizes, start, stop) for frame in frames]
        job.deliver(Actions(job.name, mine), clock.timing())
        start = stop
    return True


def _lap(clocks: Sequence[Clock]) -> None:
    for clock in clocks:
        clock.lap()


def _cut(frame: Leaves, sizes: Sequence[int], start: int, stop: int) -> list[Buffer]:
    return [
        memoryview(leaf)[start * size : stop * size]
        for leaf, size in zip(frame, sizes, strict=True)
    ]
