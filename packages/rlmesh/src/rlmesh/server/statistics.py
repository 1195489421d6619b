"""What sessions have done and how long it took, counted cheaply enough for every request."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rlmesh.transport.traffic import Traffic

# Bucket n counts requests of 2**(n-1) up to 2**n nanoseconds; 48 of them reach three days.
BUCKETS = 48
KINDS = ("reset", "step", "render", "close", "configure", "")


class Tally:
    """Counts the requests of one kind and how long they took, in buckets of doubling width."""

    __slots__ = ("buckets", "count", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.buckets = [0] * BUCKETS

    def note(self, ns: int) -> None:
        """Count one that took so many nanoseconds."""
        self.count += 1
        self.total_ns += ns
        self.buckets[min(ns.bit_length(), BUCKETS - 1)] += 1

    def add(self, other: Tally) -> None:
        """Count all that another one has counted."""
        self.count += other.count
        self.total_ns += other.total_ns
        self.buckets = [mine + more for mine, more in zip(self.buckets, other.buckets, strict=True)]

    def quantile_ns(self, share: float) -> float | None:
        """Return what this share of the requests took at most, interpolated; None without any.

        It is off by less than half of itself, as it is read from buckets of doubling width.
        """
        seen, wanted = 0.0, share * self.count
        for number, count in enumerate(self.buckets):
            if count and seen + count >= wanted:
                low = 0 if number == 0 else 1 << (number - 1)
                return low + ((1 << number) - low) * max(0.0, wanted - seen) / count
            seen += count
        return None

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data, times in seconds."""
        halves = self.quantile_ns(0.5), self.quantile_ns(0.99)
        return {
            "count": self.count,
            "total_seconds": self.total_ns / 1e9,
            "p50_seconds": None if halves[0] is None else halves[0] / 1e9,
            "p99_seconds": None if halves[1] is None else halves[1] / 1e9,
        }


class Statistics:
    """What one session, or all of them together, have done."""

    __slots__ = (
        "by_kind",
        "carried",
        "episodes",
        "faults",
        "last_request",
        "repeated",
        "resumed",
        "started",
    )

    def __init__(self) -> None:
        self.started = self.last_request = time.monotonic()
        self.by_kind = {kind: Tally() for kind in KINDS}
        self.episodes = 0
        self.faults: dict[str, int] = {}
        self.carried: list[tuple[str, Traffic]] = []
        self.repeated = 0
        self.resumed = 0

    @property
    def traffic(self) -> dict[str, Traffic]:
        """How many bytes went over each kind of carrier."""
        return _by_carrier(self.carried)

    def note_fault(self, code: str) -> None:
        """Count a request that failed, by the code it failed with."""
        self.faults[code] = self.faults.get(code, 0) + 1

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return sum(tally.count for tally in self.by_kind.values())

    def add(self, other: Statistics) -> None:
        """Count all that another one has counted."""
        for kind, tally in other.by_kind.items():
            self.by_kind[kind].add(tally)
        self.episodes += other.episodes
        for code, count in list(other.faults.items()):
            self.faults[code] = self.faults.get(code, 0) + count
        self.carried = list(_by_carrier([*self.carried, *other.carried]).items())
        self.repeated += other.repeated
        self.resumed += other.resumed
        self.last_request = max(self.last_request, other.last_request)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data, times in seconds."""
        steps = self.by_kind["step"]
        return {
            "requests": self.requests,
            "steps": steps.count,
            "episodes": self.episodes,
            "faults": sum(self.faults.values()),
            "faults_by_code": dict(self.faults),
            "repeated_answers": self.repeated,
            "resumed": self.resumed,
            "last_request_age_seconds": max(0.0, time.monotonic() - self.last_request),
            "age_seconds": max(0.0, time.monotonic() - self.started),
            "latency": _latencies(self.by_kind),
            "bytes": {kind: traffic.to_dict() for kind, traffic in self.traffic.items()},
        }


def together(parts: Sequence[Statistics]) -> Statistics:
    """Return what several have counted, as one."""
    whole = Statistics()
    whole.last_request = 0.0
    for part in parts:
        whole.add(part)
    return whole


def _by_carrier(carried: Sequence[tuple[str, Traffic]]) -> dict[str, Traffic]:
    found: dict[str, Traffic] = {}
    for kind, traffic in tuple(carried):
        found.setdefault(kind, Traffic()).add(traffic)
    return found


def _latencies(by_kind: Mapping[str, Tally]) -> dict[str, object]:
    return {kind or "unknown": tally.to_dict() for kind, tally in by_kind.items() if tally.count}
