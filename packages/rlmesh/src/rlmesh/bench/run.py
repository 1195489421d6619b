"""Measures every cell of a bench, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from rlmesh.bench.cells import Carrier, Subject, cells, rounds
from rlmesh.bench.machine import machine
from rlmesh.bench.measure import Settings, measure
from rlmesh.bench.report import Report
from rlmesh.bench.trial import tried

Show = Callable[[str], object]


def run(
    subjects: Sequence[Subject],
    ways: Sequence[Carrier],
    clients: Sequence[int],
    *,
    seconds: float,
    count: int,
    show: Show,
    client: Mapping[str, object],
) -> Report:
    """Measure; Ctrl-C ends it early, and the report says so.

    Args:
        subjects: what to measure.
        ways: how steps reach it.
        clients: how many at once.
        seconds: how long one run may take.
        count: how many rounds.
        show: is told how far it is.
        client: more options of the clients.

    Raises:
        CannotBeMeasured: an environment cannot be made or stepped at all.
    """
    facts, known, unchecked = machine(), list[Subject](), dict[str, str]()
    for subject in subjects:
        if subject.source is not None:
            show(f"trying {subject.name}")
        found, why = tried(subject)
        known.append(found)
        if why is not None:
            unchecked[found.name] = why
    checked = frozenset(one.name for one in known if one.name not in unchecked)
    to_do = cells(known, ways, clients)
    report = Report(facts, Settings(seconds, count, checked, client), to_do, unchecked)
    began = monotonic()
    try:
        for number, cell in rounds(to_do, count):
            done = len(report.records)
            show(f"{done + 1}/{report.total}  {cell}{_left(began, done, report.total)}")
            report.records.append(measure(cell, number, report.settings))
    except KeyboardInterrupt:
        report.interrupted = True
    return report


def _left(began: float, done: int, total: int) -> str:
    if not done:
        return ""
    seconds = round((monotonic() - began) / done * (total - done))
    return f"  about {seconds // 60}:{seconds % 60:02} left"
