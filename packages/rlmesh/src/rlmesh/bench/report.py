"""A bench as tables for people, and as one JSON document for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from rlmesh.bench.cells import IN_PROCESS, Cell, Subject
from rlmesh.bench.measure import Settings
from rlmesh.bench.measurements import (
    Measurement,
    Record,
    Summary,
    baseline_of,
    flat,
    summaries,
)

FORMAT = "rlmesh.bench.v1"
NOTHING = "-"
LIMITED = "†"
# A load above this share of the processors takes time away from what is measured.
BUSY = 0.5

_COLUMNS = (  # title, field, digits after the point
    ("p50 us", "p50_us", 0),
    ("p90 us", "p90_us", 0),
    ("p99 us", "p99_us", 0),
    ("client CPU us", "client_cpu_us", 0),
    ("server CPU us", "server_cpu_us", 0),
    ("server MB", "server_memory_mb", 0),
    ("TCP bytes", "tcp_bytes", 0),
    ("start s", "startup_s", 2),
)


@dataclass(slots=True)
class Report:
    """Everything that a bench found out.

    Attributes:
        machine: where.
        settings: how.
        cells: what was to be measured.
        unchecked: the subjects whose observations are compared with nothing, and why.
        records: what was measured so far, in the order of time.
        interrupted: whether it was ended before it was through.
    """

    machine: Mapping[str, object]
    settings: Settings
    cells: Sequence[Cell]
    unchecked: Mapping[str, str] = field(default_factory=dict[str, str])
    records: list[Record] = field(default_factory=list[Record])
    interrupted: bool = False

    @property
    def total(self) -> int:
        """How many measurements there are to be."""
        return len(self.cells) * self.settings.rounds

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "format": FORMAT,
            "machine": dict(self.machine),
            "seconds": self.settings.seconds,
            "rounds": self.settings.rounds,
            "interrupted": self.interrupted,
            "notes": self.notes(),
            "summaries": [flat(one) for one in self.summaries()],
            "measurements": [flat(one) for one in self.records],
        }

    def summaries(self) -> list[Summary]:
        """Return what the rounds say together."""
        return summaries(self.cells, self.records)

    def tables(self) -> str:
        """Return the tables, and what has to be known to read them."""
        found = self.summaries()
        parts = [_machine(self.machine)]
        subjects = dict.fromkeys(one.cell.subject for one in found)
        parts += [_steps(subject, found) for subject in subjects]
        parts += [_scaling(subject, found) for subject in subjects]
        return "\n\n".join([*filter(None, parts), "\n".join(self.notes())])

    def notes(self) -> list[str]:
        """Return what has to be known to read the figures."""
        started = any(one.carrier.lane and one.subject.address is None for one in self.cells)
        count = self.settings.rounds
        rounds = (
            "One round"
            if count == 1
            else (f"Medians of {count} interleaved rounds, with the range of the rate")
        )
        said = [
            f"{rounds}; each measurement has {'a server and ' if started else ''}clients of its "
            "own, one after another.",
            "steps/s counts resets; p50, p90 and p99 are of single steps. CPU is per step, all "
            "threads.",
        ]
        if started:
            said.append(
                "start: from the server's start to the first reset's answer. server MB: the "
                "memory that the server holds at the end."
            )
        if any(one.tcp_bytes is not None for one in self._made()):
            said.append("TCP bytes are the kernel's count, both ways, without headers.")
        baseline = baseline_of(self.cells)
        if baseline is not None:
            said.append(f"x: the rate divided by that of {baseline.label} in the same round.")
        if any(isinstance(one, Measurement) and one.limited for one in self.records):
            said.append(
                f"{LIMITED} ended by the time limit of {self.settings.seconds:g} s, before the "
                "steps were taken."
            )
        said += self._failed()
        said += [f"{name}: no observation was checked: {why}" for name, why in self._unchecked()]
        if checked := sum(one.checked for one in self._served()):
            said.append(f"{checked:,} observations were equal to a local copy's.")
        load, cpus = self.machine["load"], self.machine["cpus"]
        if isinstance(load, float) and isinstance(cpus, int) and load > cpus * BUSY:
            said.append(f"The machine was busy at the start (load {load} on {cpus} CPUs).")
        if self.interrupted:
            said.append(f"Interrupted: {len(self._made())} of {self.total} measurements were made.")
        return said

    def _made(self) -> list[Measurement]:
        return [one for one in self.records if isinstance(one, Measurement)]

    def _served(self) -> list[Measurement]:
        return [one for one in self._made() if one.cell.carrier != IN_PROCESS]

    def _failed(self) -> list[str]:
        """Return why measurements failed, where no row of a table says it."""
        return [
            f"{one.cell} failed in {one.failed} of {one.rounds + one.failed} rounds: {one.reason}"
            for one in self.summaries()
            if one.reason is not None and (one.rounds or one.cell.clients > 1)
        ]

    def _unchecked(self) -> list[tuple[str, str]]:
        measured = {one.cell.subject.name for one in self.records}
        return [(name, why) for name, why in self.unchecked.items() if name in measured]


def _machine(facts: Mapping[str, object]) -> str:
    versions = cast("Mapping[str, str]", facts["versions"])
    shown = ", ".join(f"{name} {number}" for name, number in versions.items())
    cpus, load = facts["cpus"], facts["load"]
    return f"{facts['processor']}, {cpus} CPUs, {facts['system']}, load {load}\n{shown}"


def _steps(subject: Subject, found: Sequence[Summary]) -> str:
    rows = [one for one in found if one.cell.subject == subject and one.cell.clients == 1]
    if not rows:
        return ""
    payload = next((one.medians["payload_bytes"] for one in rows if one.medians), None)
    lanes = f"; each steps {subject.lanes} lanes" if subject.lanes > 1 else ""
    size = "" if payload is None else f" ({payload:,.0f} bytes of action and observation{lanes})"
    head = ["", "steps/s", "range", "x", *(title for title, *_ in _COLUMNS)]
    return f"{subject.name}{size}\n" + _table([head, *map(_row, rows)])


def _row(one: Summary) -> list[str]:
    if one.steps_per_s is None:
        return [one.cell.carrier.label, f"failed: {one.reason}"]
    mark = f" {LIMITED}" if one.limited else ""
    numbers: list[str] = []
    for _, name, digits in _COLUMNS:
        number = one.medians[name]
        numbers.append(NOTHING if number is None else _shown(number, digits))
    return [
        one.cell.carrier.label,
        f"{one.steps_per_s:,.0f}{mark}",
        f"{one.slowest:,.0f}-{one.fastest:,.0f}",
        NOTHING if one.ratio is None else _shown(one.ratio, 0),
        *numbers,
    ]


def _shown(number: float, digits: int) -> str:
    # Of small numbers, two digits are worth knowing.
    if 0 < number < 10:
        digits = max(digits, 1 if number >= 1 else 2)
    return f"{number:,.{digits}f}"


def _scaling(subject: Subject, found: Sequence[Summary]) -> str:
    mine = [one for one in found if one.cell.subject == subject and one.cell.carrier != IN_PROCESS]
    counts = sorted({one.cell.clients for one in mine})
    if counts in ([], [1]):
        return ""
    rates = {(one.cell.carrier, one.cell.clients): one for one in mine}
    rows = [["", *("1 client" if count == 1 else f"{count} clients" for count in counts)]]
    for carrier in dict.fromkeys(one.cell.carrier for one in mine):
        cells = [rates.get((carrier, count)) for count in counts]
        rows.append([carrier.label, *map(_rate, cells)])
    title = f"{subject.name}, steps/s of all clients of one server together (its memory)"
    return f"{title}\n{_table(rows)}"


def _rate(one: Summary | None) -> str:
    if one is None:
        return NOTHING
    if one.steps_per_s is None:
        return "failed"
    memory = one.medians["server_memory_mb"]
    return f"{one.steps_per_s:,.0f}{'' if memory is None else f' ({memory:,.1f} MB)'}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    # What failed has a text instead of figures; it must not widen the columns.
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[column]) for row in whole) for column in range(len(rows[0]))]
    widths[0] = max(len(row[0]) for row in rows)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 or len(row) < len(widths) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    )
