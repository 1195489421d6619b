"""How long things took, and how much of it: counted in bounded memory, read as percentiles."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np
from rlcore import ConfigurationError

from rlmesh.runs.tables import aligned
from rlmesh.runs.typed import require_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

RELATIVE_ERROR = 0.01
"""How far a percentile of many values may be from the true one."""

# DDSketch (Masson et al., VLDB 2019): buckets of a width relative to their place answer every
# quantile within the same relative error, and sketches are merged by adding them up.
_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_LOG_GAMMA = float(np.log(_GAMMA))
# 1e-9 to about 1e12 of a unit; what is beyond is counted in the last bucket of its side.
_LOWEST = round(np.log(1e-9) / _LOG_GAMMA)
_BUCKETS = 2432
_PENDING = 4096
SETTLE_EVERY = 4096
"""How many values may be added before somebody settles."""
_SHARES = (0.5, 0.95, 0.99)
_NAMES = ("op", "component", "metric", "unit")
_NUMBERS = ("avg", "p50", "p95", "p99")
# Bucket b > 0 holds values up to GAMMA**(b - 1 + LOWEST), bucket -b their negatives, bucket 0 zero.
_MIDDLES = 2 * np.exp((np.arange(_BUCKETS) + _LOWEST) * _LOG_GAMMA) / (1 + _GAMMA)

Buckets = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TelemetryRow:
    """One measured quantity of a run.

    `op` is what was done (`env.step`), `component` by whom (`env`, `model`, `runner`), `metric`
    what was measured (`endpoint.total`), in `unit`. Percentiles are exact for up to 4096 values,
    and within 1 % beyond that. `buckets` is the distribution behind them, by which rows are merged.
    """

    op: str
    component: str
    metric: str
    unit: str
    count: int
    avg: float
    p50: float
    p95: float
    p99: float
    buckets: Buckets = ()

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain JSON values."""
        return {**asdict(self), "buckets": [list(pair) for pair in self.buckets]}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Return the row that `to_dict` wrote.

        Raises:
            ConfigurationError: it is none.
        """
        try:
            require_types(cls, data, (*_NAMES, *_NUMBERS, "count"))
            pairs = cast("Iterable[tuple[int, int]]", data["buckets"])
            buckets = tuple((int(bucket), int(count)) for bucket, count in pairs)
            op, component, metric, unit = (str(data[name]) for name in _NAMES)
            avg, p50, p95, p99 = (float(cast("float", data[name])) for name in _NUMBERS)
            count = int(cast("int", data["count"]))
            return cls(op, component, metric, unit, count, avg, p50, p95, p99, buckets)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ConfigurationError(f"not a row of telemetry: {error}") from error


_Kept: TypeAlias = "tuple[list[float], NDArray[np.int64] | None, int, float]"


class Series:
    """The values of one quantity; belongs to one thread, and can be sent to another process.

    Attributes:
        add: counts a value; one that is not finite is no measurement and is left out. Whoever adds
            many calls `settle` every some thousands of them, so that memory stays bounded.
    """

    __slots__ = ("_buckets", "_count", "_pending", "_sum", "add")

    def __init__(self) -> None:
        self._pending: list[float] = []
        # The list's own method: this is called several times in every step of a run.
        self.add = self._pending.append
        self._buckets: NDArray[np.int64] | None = None
        self._count = 0
        self._sum = 0.0

    def extend(self, values: Iterable[float]) -> None:
        """Count several values."""
        for value in values:
            self._pending.append(value)
            self.settle()

    def settle(self) -> None:
        """Keep what was added in bounded memory."""
        if len(self._pending) >= _PENDING:
            self._fold()

    def merge(self, other: "Series") -> None:
        """Count everything that another series counted."""
        buckets = other._buckets
        if buckets is not None:
            if self._buckets is None:
                self._buckets = buckets.copy()
            else:
                self._buckets += buckets
            self._count += other._count
            self._sum += other._sum
        self.extend(other._pending)

    def row(self, op: str, component: str, metric: str, unit: str) -> TelemetryRow | None:
        """Return the series as a row; None when nothing was counted."""
        pending = _finite(self._pending)
        count = self._count + pending.size
        if not count:
            return None
        buckets = _counted(pending) if self._buckets is None else self._buckets + _counted(pending)
        if self._buckets is None:
            p50, p95, p99 = np.quantile(pending, _SHARES).tolist()
        else:
            p50, p95, p99 = (_quantile(buckets, share) for share in _SHARES)
        avg = (self._sum + float(pending.sum())) / count
        return TelemetryRow(
            op, component, metric, unit, count, avg, p50, p95, p99, _sparse(buckets)
        )

    def __getstate__(self) -> _Kept:
        return self._pending, self._buckets, self._count, self._sum

    def __setstate__(self, kept: _Kept) -> None:
        self._pending, self._buckets, self._count, self._sum = kept
        self.add = self._pending.append

    def _fold(self) -> None:
        values = _finite(self._pending)
        self._pending.clear()
        counted = _counted(values)
        self._buckets = counted if self._buckets is None else self._buckets + counted
        self._count += values.size
        self._sum += float(values.sum())


class Telemetry:
    """All series of a run, by what they measure."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str, str, str], Series] = {}

    def series(self, op: str, component: str, metric: str, unit: str = "ms") -> Series:
        """Return the series of one quantity; the same one for the same names."""
        return self._series.setdefault((op, component, metric, unit), Series())

    def settle(self) -> None:
        """Keep what was added in bounded memory."""
        for series in self._series.values():
            series.settle()

    def rows(self) -> tuple[TelemetryRow, ...]:
        """Return a row for every series that has values, in the order of their names."""
        made = (self._series[key].row(*key) for key in sorted(self._series))
        return tuple(row for row in made if row is not None)

    def merge(self, other: "Telemetry") -> None:
        """Count everything that another telemetry counted, for instance that of a worker."""
        for key, series in other._series.items():
            self.series(*key).merge(series)


def merged_rows(parts: Iterable[Iterable[TelemetryRow]]) -> tuple[TelemetryRow, ...]:
    """Return the rows of several runs as those of one; percentiles are within 1 %."""
    groups: dict[tuple[str, str, str, str], list[TelemetryRow]] = {}
    for row in (row for part in parts for row in part):
        groups.setdefault((row.op, row.component, row.metric, row.unit), []).append(row)
    return tuple(_merged(groups[key]) for key in sorted(groups))


def format_rows(rows: Iterable[TelemetryRow]) -> str:
    """Return rows as an aligned table; one line that says so where there are none."""
    cells: list[tuple[str, ...]] = [(*_NAMES, "count", *_NUMBERS)]
    for row in rows:
        numbers = (f"{value:.4g}" for value in (row.avg, row.p50, row.p95, row.p99))
        cells.append((row.op, row.component, row.metric, row.unit, str(row.count), *numbers))
    if len(cells) == 1:
        return "no telemetry was recorded"
    return aligned(cells, right=range(4, 9))


def _merged(rows: list[TelemetryRow]) -> TelemetryRow:
    first = rows[0]
    if len(rows) == 1:
        return first
    count = sum(row.count for row in rows)
    buckets = np.zeros(2 * _BUCKETS + 1, np.int64)
    for row in rows:
        for bucket, number in row.buckets:
            buckets[bucket + _BUCKETS] += number
    p50, p95, p99 = (_quantile(buckets, share) for share in _SHARES)
    avg = sum(row.avg * row.count for row in rows) / count
    return replace(first, count=count, avg=avg, p50=p50, p95=p95, p99=p99, buckets=_sparse(buckets))


def _finite(values: list[float]) -> "NDArray[np.float64]":
    found = np.asarray(values, np.float64)
    return found[np.isfinite(found)]


def _counted(values: "NDArray[np.float64]") -> "NDArray[np.int64]":
    """How many values are in each bucket, from the most negative one to the largest."""
    sizes = np.abs(values)
    with np.errstate(divide="ignore"):
        places = np.ceil(np.log(sizes) / _LOG_GAMMA) - _LOWEST + 1
    places = np.where(sizes == 0, 0, np.clip(places, 1, _BUCKETS)).astype(np.int64)
    signed = np.where(values < 0, -places, places) + _BUCKETS
    return np.bincount(signed, minlength=2 * _BUCKETS + 1)


def _quantile(buckets: "NDArray[np.int64]", share: float) -> float:
    total = np.cumsum(buckets)
    rank = share * (float(total[-1]) - 1)
    place = int(np.searchsorted(total, rank, side="right")) - _BUCKETS
    if place == 0:
        return 0.0
    middle = float(_MIDDLES[abs(place) - 1])
    return middle if place > 0 else -middle


def _sparse(buckets: "NDArray[np.int64]") -> Buckets:
    places = np.flatnonzero(buckets)
    return tuple(zip((places - _BUCKETS).tolist(), buckets[places].tolist(), strict=True))
