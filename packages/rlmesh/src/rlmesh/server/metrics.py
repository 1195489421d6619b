"""What a server is doing, as Prometheus scrapes it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from rlcore import BindError, ConfigurationError, MissingDependencyError

from rlmesh.build import build_info
from rlmesh.server.sessions import Registry
from rlmesh.server.statistics import Tally

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from prometheus_client.core import Metric

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
STATES = ("attached", "busy", "detached")
# Buckets of latencies: from a microsecond to half a minute, each twice as wide as the last.
FIRST_BUCKET, LAST_BUCKET = 10, 35
# A scraper that says nothing for so long is hung up on.
PATIENCE_SECONDS = 10.0


class MetricsEndpoint:
    """Serves `http://127.0.0.1:PORT/metrics`; it reads counters that sessions keep anyway.

    Every process of the machine may read it, whoever its user is. A page of a browser may not:
    requests whose Host is no name of the loopback interface are refused.

    Args:
        registry: the sessions to tell about.
        port: the port on the loopback interface; 0: a free one.

    Raises:
        BindError: the port is taken or not allowed.
        ConfigurationError: it is no port.
        MissingDependencyError: prometheus-client is not installed.
    """

    def __init__(self, registry: Registry, *, port: int) -> None:
        if not 0 <= port <= 65535:
            raise ConfigurationError(
                f"metrics_port is {port!r}", hint="Use 1 to 65535, or 0 for a free one."
            )
        page = _page(registry)
        try:
            self._server = make_server(LOOPBACK, port, _guarded(page), _Server, _Handler)
        except OSError as error:
            raise BindError(
                f"the metrics port {LOOPBACK}:{port} cannot be taken: {error.strerror}",
                address=f"{LOOPBACK}:{port}",
                hint="Is another server there? Pass 0 for a free port.",
            ) from error
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The address to scrape."""
        return f"http://{LOOPBACK}:{self._server.server_port}{PATH}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="rlmesh-metrics", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Give the port back."""
        if self._thread is not None:
            self._server.shutdown()
        self._server.server_close()


def _page(registry: Registry) -> WSGIApplication:
    try:
        import prometheus_client
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "metrics_port needs prometheus-client, which is not installed",
            hint='Install it: pip install "rlmesh[metrics]"',
        ) from error
    # A registry of its own: what else the process measures is not the server's to tell.
    collectors = prometheus_client.CollectorRegistry()
    collectors.register(_Collector(registry))
    prometheus_client.ProcessCollector(registry=collectors)
    # Any: what it returns has parameters without types.
    return cast("WSGIApplication", cast("Any", prometheus_client).make_wsgi_app(collectors))


def _guarded(page: WSGIApplication) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if not _is_loopback(environ.get("HTTP_HOST", "")):
            # A name that leads here (DNS rebinding) would let a web page read the answer.
            return _refused(start, "403 Forbidden", "the Host is no name of the loopback interface")
        if environ.get("PATH_INFO") != PATH:
            return _refused(start, "404 Not Found", f"there is {PATH} only")
        return page(environ, start)

    return answer


def _is_loopback(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_NAMES
    except ValueError:
        return False


def _refused(start: StartResponse, status: str, reason: str) -> list[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [f"{reason}\n".encode()]


class _Collector:
    """Reads the counters when it is asked."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._started = time.time()

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from self._about()
        yield from self._sessions()
        yield from self._requests()

    def _about(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        contract = self._registry.environments.contract
        facts = {
            "environment": contract.id,
            "digest": contract.digest,
            "version": build_info().version,
        }
        yield InfoMetricFamily("rlmesh_server", "What is served, and by which version.", facts)
        yield GaugeMetricFamily(
            "rlmesh_start_time_seconds", "When the server was made, in Unix time.", self._started
        )

    def _sessions(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        places = self._registry.places
        found = Counter(session.state for session in self._registry.all())
        sessions = GaugeMetricFamily(
            "rlmesh_sessions", "Sessions that are open, by what they are at.", labels=["state"]
        )
        for state in STATES:
            sessions.add_metric([state], found[state])
        yield sessions
        for name, text, value in (
            ("rlmesh_session_places", "How many sessions there may be at once.", places.count),
            ("rlmesh_session_places_taken", "How many places are taken.", places.taken),
            ("rlmesh_queue_length", "How many clients wait for a place.", places.waiting),
        ):
            yield GaugeMetricFamily(name, text, value)

    def _requests(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        done = self._registry.statistics()
        latency = HistogramMetricFamily(
            "rlmesh_request_seconds",
            "How long requests took in the server, environment included.",
            labels=["kind"],
        )
        for kind, tally in done.by_kind.items():
            if kind:
                latency.add_metric([kind], _buckets(tally), tally.total_ns / 1e9)
        yield latency
        for name, text, value in (
            ("rlmesh_steps", "Requests to step, failed ones included.", done.by_kind["step"].count),
            ("rlmesh_episodes", "Episodes that were begun.", done.episodes),
            ("rlmesh_repeated_answers", "Answers that were given again.", done.repeated),
            ("rlmesh_resumes", "Sessions that were taken up again after a break.", done.resumed),
        ):
            yield CounterMetricFamily(name, text, value)
        faults = CounterMetricFamily(
            "rlmesh_faults", "Requests that failed, by the code they failed with.", labels=["code"]
        )
        for code, count in sorted(done.faults.items()):
            faults.add_metric([code], count)
        yield faults
        carried = CounterMetricFamily(
            "rlmesh_carrier_bytes",
            "Bytes of sessions, by what carried them; shared ones were read from memory.",
            labels=["carrier", "direction"],
        )
        for carrier, traffic in sorted(done.traffic.items()):
            for direction, count in traffic.to_dict().items():
                carried.add_metric([carrier, direction], count)
        yield carried


def _buckets(tally: Tally) -> list[tuple[str, float]]:
    # Bucket n of a tally holds what took less than 2**n nanoseconds, and not less than half of it.
    counts = list(tally.buckets)
    found: list[tuple[str, float]] = []
    seen = sum(counts[:FIRST_BUCKET])
    for number in range(FIRST_BUCKET, LAST_BUCKET + 1):
        seen += counts[number]
        found.append((repr(2**number / 1e9), seen))
    return [*found, ("+Inf", sum(counts))]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # As its base class, without asking the name service for the name of the machine.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.socket.getsockname()[1]
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: scrapers come every few seconds."""
