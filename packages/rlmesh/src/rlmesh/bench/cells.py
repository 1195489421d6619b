"""What is measured, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Lane = Literal["local", "tcp", "grpc"]
Transport = Literal["tcp", "unix"]

LANES: tuple[Lane, ...] = ("local", "tcp", "grpc")
TRANSPORTS: tuple[Transport, ...] = ("tcp", "unix")


@dataclass(frozen=True, slots=True)
class Carrier:
    """How steps reach the environment.

    Attributes:
        lane: what carries the steps; None: nothing, the environment is in the client's process.
        transport: how the server is dialled.
    """

    lane: Lane | None
    transport: Transport | None = None

    @property
    def is_tcp(self) -> bool:
        """Whether the steps themselves travel over TCP."""
        return self.lane == "tcp" or (self.lane == "grpc" and self.transport == "tcp")

    @property
    def label(self) -> str:
        """What tables call it."""
        if self.lane is None:
            return "in process"
        if self.lane == "grpc":
            return f"gRPC over {self.transport}"
        return "local lane" if self.lane == "local" else "fast lane over tcp"


IN_PROCESS = Carrier(None)


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment that is measured.

    Attributes:
        name: what tables call it.
        steps: how many steps one measurement takes, unless its time is used up before.
        source: what makes it: a gymnasium id or module:attribute; None when it is only served.
        address: where it is served already; None when the measurement serves it.
        lanes: how many environments one step steps.
    """

    name: str
    steps: int
    source: str | None = None
    address: str | None = None
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in the tables."""

    subject: Subject
    carrier: Carrier
    clients: int = 1

    def __str__(self) -> str:
        many = f" x {self.clients} clients" if self.clients > 1 else ""
        return f"{self.subject.name}, {self.carrier.label}{many}"


def carriers(lanes: Sequence[Lane], transports: Sequence[Transport]) -> list[Carrier]:
    """Return the ways that lanes and transports make, each once.

    The local lane is the same whatever was dialled; the fast lane has one transport, TCP.
    """
    found: list[Carrier] = []
    for lane in lanes:
        if lane == "grpc":
            found += [Carrier(lane, transport) for transport in transports]
        elif lane == "local":
            found.append(Carrier(lane, transports[-1]))
        elif "tcp" in transports:
            found.append(Carrier(lane, "tcp"))
    return list(dict.fromkeys(found))


def cells(
    subjects: Sequence[Subject], ways: Sequence[Carrier], clients: Sequence[int]
) -> list[Cell]:
    """Return every cell of a bench; in process there is one client only."""
    return [
        Cell(subject, way, count)
        for subject in subjects
        for count in clients
        for way in ways
        if not (way.lane is None and (count > 1 or subject.source is None))
    ]


def rounds(all_cells: Sequence[Cell], count: int) -> Iterator[tuple[int, Cell]]:
    """Yield the cells round by round.

    Within an environment each round starts at another carrier, so that a noise that comes and goes
    hits all alike.
    """
    groups: dict[tuple[Subject, int], list[Cell]] = {}
    for cell in all_cells:
        groups.setdefault((cell.subject, cell.clients), []).append(cell)
    for number in range(count):
        for group in groups.values():
            shift = number % len(group)
            for cell in group[shift:] + group[:shift]:
                yield number, cell
