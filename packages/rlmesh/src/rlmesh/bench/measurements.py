"""What was measured, and what the rounds say together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlmesh.bench.cells import Carrier, Cell

# What rates are compared with: the first of these that is measured.
BASELINES = (Carrier("grpc", "tcp"), Carrier("grpc", "unix"))


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run of one cell.

    Attributes:
        cell: what was measured.
        round: in which round.
        steps: how many steps were taken, by all clients together.
        seconds: how long the slowest client took for its steps and resets.
        steps_per_s: steps a second, of all clients together, resets included.
        p50_us: the median of single steps in microseconds, over all clients' steps.
        p90_us: what nine of ten steps do not exceed.
        p99_us: what 99 of 100 steps do not exceed.
        client_cpu_us: the client processes' CPU time for each step, all threads.
        server_cpu_us: the server's CPU time for each step; None where it cannot be seen.
        server_memory_mb: the memory that the server holds at the end, in megabytes; None where it
            cannot be seen.
        tcp_bytes: what the kernel counted on the clients' TCP connections, both ways, for each
            step; None where there is no such count.
        payload_bytes: the bytes of an action and an observation.
        startup_s: from the start of the server's process to the answer of the first reset, at a
            client that has loaded its library; None with a server that was there before.
        client_import_s: how long the client took to load its library.
        limited: whether the time was used up before the steps were.
        checked: how many observations were compared with a local copy's.
    """

    cell: Cell
    round: int
    steps: int
    seconds: float
    steps_per_s: float
    p50_us: float
    p90_us: float
    p99_us: float
    client_cpu_us: float
    server_cpu_us: float | None
    server_memory_mb: float | None
    tcp_bytes: float | None
    payload_bytes: int
    startup_s: float | None
    client_import_s: float
    limited: bool
    checked: int


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell that could not be measured, and why."""

    cell: Cell
    round: int
    reason: str


Record = Measurement | Missing


@dataclass(frozen=True, slots=True)
class Summary:
    """What the rounds of one cell say: medians, and the range of the rate.

    Attributes:
        cell: which.
        rounds: how many rounds it was measured in.
        failed: in how many it could not be.
        steps_per_s: the median.
        slowest: the smallest rate.
        fastest: the largest rate.
        ratio: the median of the rates divided by the baseline's in the same round: what slows a
            whole round down cancels out; None where there is none.
        medians: the other figures, by the names they have in a `Measurement`.
        limited: whether the time ended any of the rounds.
        reason: why there is nothing, where there is nothing.
    """

    cell: Cell
    rounds: int
    failed: int
    steps_per_s: float | None
    slowest: float | None
    fastest: float | None
    ratio: float | None
    medians: dict[str, float | None]
    limited: bool
    reason: str | None


FIGURES = (
    "p50_us",
    "p90_us",
    "p99_us",
    "client_cpu_us",
    "server_cpu_us",
    "server_memory_mb",
    "tcp_bytes",
    "payload_bytes",
    "startup_s",
    "client_import_s",
)


def percentiles(latencies_us: NDArray[np.float32]) -> tuple[float, float, float]:
    """Return the median, the 90th and the 99th percentile."""
    p50, p90, p99 = np.percentile(latencies_us, [50, 90, 99])
    return float(p50), float(p90), float(p99)


def baseline_of(all_cells: Iterable[Cell]) -> Carrier | None:
    """Return what rates are compared with, or None when nothing of it is measured."""
    measured = {cell.carrier for cell in all_cells}
    return next((one for one in BASELINES if one in measured), None)


def summaries(all_cells: Sequence[Cell], records: Iterable[Record]) -> list[Summary]:
    """Return what the records say about each cell that has one, in the order of the cells."""
    by_cell: dict[Cell, list[Record]] = {}
    for record in records:
        by_cell.setdefault(record.cell, []).append(record)
    baseline = baseline_of(all_cells)
    return [_summary(cell, by_cell, baseline) for cell in all_cells if cell in by_cell]


def _summary(cell: Cell, by_cell: dict[Cell, list[Record]], baseline: Carrier | None) -> Summary:
    found = [one for one in by_cell[cell] if isinstance(one, Measurement)]
    reasons = [one.reason for one in by_cell[cell] if isinstance(one, Missing)]
    if not found:
        return Summary(cell, 0, len(reasons), None, None, None, None, {}, False, reasons[0])
    rates = [one.steps_per_s for one in found]
    base = [] if baseline is None else by_cell.get(Cell(cell.subject, baseline, cell.clients), [])
    return Summary(
        cell=cell,
        rounds=len(found),
        failed=len(reasons),
        steps_per_s=statistics.median(rates),
        slowest=min(rates),
        fastest=max(rates),
        ratio=_ratio(found, base),
        medians={name: _median([getattr(one, name) for one in found]) for name in FIGURES},
        limited=any(one.limited for one in found),
        reason=reasons[0] if reasons else None,
    )


def _ratio(found: Sequence[Measurement], baseline: Sequence[Record]) -> float | None:
    rates = {one.round: one.steps_per_s for one in baseline if isinstance(one, Measurement)}
    ratios = [one.steps_per_s / rates[one.round] for one in found if one.round in rates]
    return statistics.median(ratios) if ratios else None


def _median(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.median(known) if known else None


def flat(record: Record | Summary) -> dict[str, Any]:  # Any: what JSON holds
    """Return a record as JSON has it: the cell's parts beside the figures."""
    facts = asdict(record)
    cell = record.cell
    del facts["cell"]
    place = {
        "environment": cell.subject.name,
        "carrier": cell.carrier.label,
        "lane": cell.carrier.lane,
        "transport": cell.carrier.transport,
        "clients": cell.clients,
    }
    return {**place, **facts}
