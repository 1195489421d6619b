"""Whose turn it is: the order in which waiting jobs are started."""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rlcore import PermissionDeniedError

LOWEST_PRIORITY: Final = -100
HIGHEST_PRIORITY: Final = 100
# The pauses before the first four restarts of a job are shorter.
SHORT_PAUSE: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits for its turn.

    Attributes:
        job_id: the job.
        organisation: whose it is.
        priority: the higher, the sooner.
        since: when it was asked for.
        not_before: it is not started before this time, as its worker has died just now.
    """

    job_id: str
    organisation: int
    priority: int
    since: datetime
    not_before: datetime | None = None


def in_turn(waiting: Iterable[Waiting], running: Mapping[int, int], now: datetime) -> list[Waiting]:
    """The jobs in the order in which they get free places, if no running job ends before.

    Of all, those with the highest priority come first. Among those, it is the turn of the
    organisation with the fewest jobs that run, and of its oldest job; organisations with equally
    many take their turns by the age of their jobs. Jobs that had a place when their worker died
    come before those that had none. Jobs that must not start yet come last.

    Args:
        waiting: the jobs.
        running: how many jobs each organisation has that run.
        now: the time.
    """
    due: dict[int, dict[int, deque[Waiting]]] = defaultdict(lambda: defaultdict(deque))
    returning: dict[int, list[Waiting]] = defaultdict(list)
    later: list[Waiting] = []
    for one in sorted(waiting, key=lambda one: (one.since, one.job_id)):
        if one.not_before is not None and one.not_before > now:
            later.append(one)
        elif one.not_before is not None:
            returning[one.priority].append(one)
        else:
            due[one.priority][one.organisation].append(one)
    counts = dict(running)
    order: list[Waiting] = []
    for priority in sorted(due.keys() | returning.keys(), reverse=True):
        for one in returning[priority]:
            counts[one.organisation] = counts.get(one.organisation, 0) + 1
        order += returning[priority]
        order += _shared_out(due[priority], counts)
    return order + sorted(later, key=lambda one: (one.not_before or now, one.job_id))


def to_start(order: Sequence[Waiting], free: int, now: datetime) -> Waiting | None:
    """The job that gets one of the free places now, if any does.

    A job that pauses for a short time after its worker has died keeps its place: only jobs of a
    higher priority get it meanwhile.

    Args:
        order: the jobs that wait, as `in_turn` gives them.
        free: how many places there are.
        now: the time.
    """
    first = next(iter(order), None)
    if first is None or (first.not_before is not None and first.not_before > now):
        return None
    kept = sum(_keeps_place(one, now) and one.priority >= first.priority for one in order)
    return first if free > kept else None


def _keeps_place(one: Waiting, now: datetime) -> bool:
    return one.not_before is not None and now < one.not_before <= now + SHORT_PAUSE


def require_priority(priority: int, *, is_operator: bool) -> None:
    """Let only operators put jobs before those of others.

    Raises:
        PermissionDeniedError: it is above 0, and not an operator's.
    """
    if priority > 0 and not is_operator:
        raise PermissionDeniedError(
            f"priority {priority} would put the job before those of others",
            code="priority_not_permitted",
            hint="Use 0 or less; only operators of the server may use more",
        )


def _shared_out(queues: dict[int, deque[Waiting]], counts: dict[int, int]) -> list[Waiting]:
    turns = [
        (counts.get(organisation, 0), queue[0].since, queue[0].job_id, organisation)
        for organisation, queue in queues.items()
    ]
    heapq.heapify(turns)
    order: list[Waiting] = []
    while turns:
        count, _, _, organisation = heapq.heappop(turns)
        queue = queues[organisation]
        order.append(queue.popleft())
        counts[organisation] = count + 1
        if queue:
            turn = (count + 1, queue[0].since, queue[0].job_id, organisation)
            heapq.heappush(turns, turn)
    return order
