"""Figures about the server for Prometheus, in a registry of its own."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select

from rleaas.server.store.database import Database
from rleaas.server.store.tables import CheckpointRow, EnvironmentRow, JobRow

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class Heard:
    """A request that is being answered."""

    began: float = field(default_factory=time.monotonic)
    status: int | None = None

    @property
    def milliseconds(self) -> float:
        """How long it has taken until now."""
        return (time.monotonic() - self.began) * 1000


class Metrics:
    """What the server counts, and what it looks up when it is asked."""

    def __init__(self, database: Database) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "rleaas_http_requests",
            "Requests that were answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "rleaas_http_request_seconds",
            "How long they took",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._open = Gauge(
            "rleaas_http_requests_open", "Requests being answered", registry=self._registry
        )
        self._registry.register(_Rows(database))

    def begin(self) -> Heard:
        """Count a request that has come."""
        self._open.inc()
        return Heard()

    def end(self, heard: Heard, method: str, route: str | None) -> None:
        """Count it as answered; the route is its template, so that names make no new series."""
        self._open.dec()
        method = method if method in _METHODS else "other"
        route = route or "none"
        self._requests.labels(method, route, str(heard.status or "none")).inc()
        self._seconds.labels(method, route).observe(heard.milliseconds / 1000)

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry).decode()


class _Rows(Collector):
    """What there is in the database, counted when it is asked for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing before the database is there to be asked."""
        return ()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The rows of all organisations."""
        jobs = GaugeMetricFamily(
            "rleaas_jobs", "Jobs by kind and status", labels=("kind", "status")
        )
        with self._database.read() as session:
            counted = select(JobRow.kind, JobRow.status, func.count()).group_by(
                JobRow.kind, JobRow.status
            )
            for kind, status, count in session.execute(counted):
                jobs.add_metric((kind, status), count)
            environments = session.scalar(select(func.count()).select_from(EnvironmentRow)) or 0
            size = session.scalar(select(func.coalesce(func.sum(CheckpointRow.size_bytes), 0))) or 0
        yield jobs
        yield GaugeMetricFamily(
            "rleaas_environments", "Registered environments", value=float(environments)
        )
        yield GaugeMetricFamily(
            "rleaas_checkpoint_bytes", "Bytes of checkpoints", value=float(size)
        )
