"""Measures every cell of a bench, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from rlmesh.bench.cells import Cell, Subject, rounds
from rlmesh.bench.drive import NotReproducible, check_reproducible
from rlmesh.bench.machine import machine
from rlmesh.bench.measure import Settings, measure
from rlmesh.bench.report import Report

Show = Callable[[str], object]


def run(
    cells: Sequence[Cell],
    *,
    seconds: float,
    count: int,
    show: Show,
    client: Mapping[str, object],
) -> Report:
    """Measure; Ctrl-C ends it early, and the report says so.

    Args:
        cells: what to measure.
        seconds: how long one run may take.
        count: how many rounds.
        show: is told how far it is.
        client: more options of the clients.

    Raises:
        Error: the environment cannot be made at all.
    """
    subjects = dict.fromkeys(cell.subject for cell in cells)
    unchecked = {one.name: why for one in subjects if (why := _why_unchecked(one)) is not None}
    checked = frozenset(one.name for one in subjects if one.name not in unchecked)
    report = Report(machine(), Settings(seconds, count, checked, client), cells, unchecked)
    began = monotonic()
    try:
        for number, cell in rounds(cells, count):
            done = len(report.records)
            show(f"{done + 1}/{report.total}  {cell}{_left(began, done, report.total)}")
            report.records.append(measure(cell, number, report.settings))
    except KeyboardInterrupt:
        report.interrupted = True
    return report


def _why_unchecked(subject: Subject) -> str | None:
    if subject.source is None:
        return "it is only known by its address"
    try:
        check_reproducible(subject.source)
    except NotReproducible as error:
        return error.message
    return None


def _left(began: float, done: int, total: int) -> str:
    if not done:
        return ""
    seconds = round((monotonic() - began) / done * (total - done))
    return f"  about {seconds // 60}:{seconds % 60:02} left"
