"""What Prometheus reads at the HTTP endpoint of a server."""

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rlcore import BindError, ConfigurationError, EnvironmentException
from rlmesh import EnvServer, ServeOptions
from rlmesh.bench.reference import image, noop
from rlmesh.numpy import RemoteEnv

Labels = frozenset[tuple[str, str]]


class Failing(gymnasium.Env[Any, Any]):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, **_: object) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> Any:
        raise RuntimeError("stuck")


def scraped(server: EnvServer) -> dict[tuple[str, Labels], float]:
    assert server.metrics_address is not None
    with urllib.request.urlopen(server.metrics_address, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def named(name: str, **labels: str) -> tuple[str, Labels]:
    return name, frozenset(labels.items())


@pytest.fixture
def server() -> Iterator[EnvServer]:
    with EnvServer(noop, metrics_port=0, options=ServeOptions(max_sessions=3)) as started:
        yield started


def test_a_server_tells_what_it_serves_before_anybody_came(server: EnvServer) -> None:
    found = scraped(server)

    contract = server.env_contract
    about = {"environment": "rlmesh-bench/noop-v0", "digest": contract.digest}
    assert any(
        name == "rlmesh_server_info" and set(about.items()) <= labels for name, labels in found
    )
    assert found[named("rlmesh_session_places")] == 3
    assert found[named("rlmesh_session_places_taken")] == 0
    assert found[named("rlmesh_queue_length")] == 0
    assert found[named("rlmesh_steps_total")] == 0
    assert found[named("process_cpu_seconds_total")] > 0


@pytest.mark.parametrize("lane", ["grpc", "tcp", "local"])
def test_sessions_requests_and_bytes_are_counted(server: EnvServer, lane: Any) -> None:
    with RemoteEnv(server.address, lane=lane) as env:
        env.reset()
        for _ in range(20):
            env.step(1)
        env.reset()
        found = scraped(server)

    assert found[named("rlmesh_sessions", state="attached")] == 1
    assert found[named("rlmesh_sessions", state="detached")] == 0
    assert found[named("rlmesh_session_places_taken")] == 1
    assert found[named("rlmesh_steps_total")] == 20
    assert found[named("rlmesh_episodes_total")] == 2
    assert found[named("rlmesh_request_seconds_count", kind="step")] == 20
    assert found[named("rlmesh_request_seconds_count", kind="reset")] == 2
    assert found[named("rlmesh_request_seconds_sum", kind="step")] > 0
    carrier = {"grpc": "grpc", "tcp": "tcp", "local": "unix"}[lane]
    received = found[named("rlmesh_carrier_bytes_total", carrier=carrier, direction="received")]
    sent = found[named("rlmesh_carrier_bytes_total", carrier=carrier, direction="sent")]
    # An action has 8 bytes and an observation 16; what stands around them is less than 200.
    assert 20 * 8 < received < 20 * 208
    assert 20 * 16 < sent < 20 * 216


def test_what_went_through_shared_memory_is_counted_apart() -> None:
    with (
        EnvServer(image, metrics_port=0) as server,
        RemoteEnv(server.address, lane="local") as env,
    ):
        env.reset()
        for _ in range(10):
            env.step(1)
        found = scraped(server)

    kind = {"carrier": "shared-memory"}
    frame = 210 * 160 * 3
    shared = found[named("rlmesh_carrier_bytes_total", **kind, direction="shared")]
    assert shared == 10 * frame
    assert found[named("rlmesh_carrier_bytes_total", **kind, direction="sent")] < 2 * frame


def test_latencies_are_a_histogram_whose_buckets_grow(server: EnvServer) -> None:
    with RemoteEnv(server.address) as env:
        env.reset()
        for _ in range(50):
            env.step(1)
        found = scraped(server)

    buckets = {
        float(dict(labels)["le"]): count
        for (name, labels), count in found.items()
        if name == "rlmesh_request_seconds_bucket" and ("kind", "step") in labels
    }
    bounds = sorted(buckets)
    assert bounds[0] < 2e-6
    assert bounds[-2] > 30
    assert bounds[-1] == float("inf")
    counts = [buckets[bound] for bound in bounds]
    assert counts == sorted(counts)
    assert counts[-1] == 50


def test_failed_requests_are_counted_by_their_code() -> None:
    with EnvServer(Failing, metrics_port=0) as server:
        with RemoteEnv(server.address) as env:
            env.reset()
            with pytest.raises(EnvironmentException):
                env.step(1)
        found = scraped(server)

    assert found[named("rlmesh_faults_total", code="environment_failed")] == 1


def test_what_ended_sessions_did_stays_counted(server: EnvServer) -> None:
    for _ in range(2):
        with RemoteEnv(server.address, lane="grpc") as env:
            env.reset()
            env.step(1)

    found = scraped(server)
    assert found[named("rlmesh_steps_total")] == 2
    assert found[named("rlmesh_carrier_bytes_total", carrier="grpc", direction="sent")] > 0


def test_a_client_that_waits_is_in_the_queue() -> None:
    waiting = threading.Event()
    options = ServeOptions(max_sessions=1)
    with EnvServer(noop, metrics_port=0, options=options) as server:
        first = RemoteEnv(server.address)
        first.reset()
        second = RemoteEnv(server.address, on_queue_position=lambda _: waiting.set())
        thread = threading.Thread(target=second.reset, daemon=True)
        thread.start()
        assert waiting.wait(10)
        found = scraped(server)
        first.close()
        thread.join(10)
        assert not thread.is_alive()
        second.close()

    assert found[named("rlmesh_queue_length")] == 1


def test_the_endpoint_is_on_the_loopback_interface_and_ends_with_the_server() -> None:
    with EnvServer(noop, metrics_port=0) as server:
        address = server.metrics_address
        assert address is not None
        assert address.startswith("http://127.0.0.1:")

    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=5)


def test_there_are_no_metrics_without_a_port() -> None:
    with EnvServer(noop) as server:
        assert server.metrics_address is None


def test_a_port_that_is_taken_is_a_bind_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BindError, match=f"the metrics port 127.0.0.1:{port} cannot be taken"):
            EnvServer(noop, metrics_port=port)


def test_what_is_no_port_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="metrics_port is 70000"):
        EnvServer(noop, metrics_port=70000)


def test_a_server_that_was_never_started_gives_its_metrics_port_back() -> None:
    server = EnvServer(noop, metrics_port=0)
    address = server.metrics_address
    server.shutdown()

    assert address is not None
    port = int(address.rsplit(":", 1)[1].split("/")[0])
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("127.0.0.1:9100", "/metrics", 200),
        ("localhost", "/metrics", 200),
        ("[::1]:9100", "/metrics?a=1", 200),
        ("rebound.example", "/metrics", 403),
        ("127.0.0.1.rebound.example:80", "/metrics", 403),
        ("user@[", "/metrics", 403),
        ("", "/metrics", 403),
        ("localhost", "/", 404),
        ("localhost", "/favicon.ico", 404),
        ("localhost", "/metrics/more", 404),
    ],
)
def test_only_metrics_are_there_and_only_under_names_of_the_loopback_interface(
    server: EnvServer, host: str, path: str, status: int
) -> None:
    assert server.metrics_address is not None
    port = int(server.metrics_address.rsplit(":", 1)[1].split("/")[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()

    assert answer.status == status
    assert (b"rlmesh_steps" in text) is (status == 200)
