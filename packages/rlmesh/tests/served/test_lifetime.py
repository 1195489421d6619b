"""How a served model begins and ends, where it is, and who may reach it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import rlmesh.server.model_server
from rlmesh import (
    BindError,
    CallTimeout,
    ConfigurationError,
    ModelException,
    ModelServer,
    ServeOptions,
    ServerUnreachable,
    SessionClosed,
)
from rlmesh.numpy import Model, RemoteModel

# Any, in this file: fixtures' classes.
Raw = Callable[[Any], Any]
Bound = Callable[..., Any]
Eventually = Callable[[Callable[[], object]], None]
ONES = np.ones(4, np.float32)
EPISODE = ("ep", 7)


def two(observation: Any) -> int:
    return 2


class Closing(Model[Any, Any]):
    """Counts how often it is closed."""

    closed = 0

    def predict(self, observation: Any) -> int:
        return 2

    def close(self) -> None:
        self.closed += 1


def test_a_model_serves_itself_and_says_where(bound: Bound) -> None:
    model = Closing()
    with pytest.raises(SessionClosed, match="not being served"):
        _ = model.address

    address = model.start()

    assert model.address == address
    assert address.startswith("tcp://127.0.0.1:")
    policy = bound(model)
    assert policy.predict(ONES, policy.begin("a", None)) == 2
    with pytest.raises(SessionClosed, match="being served at"):
        model.start()
    assert model.wait(0.01) is False
    model.shutdown()
    model.shutdown()
    assert model.wait(0) is True
    assert model.closed == 1


def test_a_model_blocks_while_it_is_served_until_somebody_stops_it(
    bound: Bound, eventually: Eventually
) -> None:
    model = Closing()
    serving = threading.Thread(target=model.serve)
    serving.start()
    eventually(lambda: model._server is not None)  # pyright: ignore[reportPrivateUsage] # no other sign
    policy = bound(model)
    assert policy.predict(ONES, policy.begin("a", None)) == 2

    model.shutdown()

    serving.join(10)
    assert not serving.is_alive()
    assert model.closed == 1


def test_a_server_is_started_once_and_its_context_stops_it() -> None:
    model = Closing()
    with ModelServer(model) as server:
        assert repr(server) == f"ModelServer('Closing', address={server.address!r})"
        with pytest.raises(SessionClosed, match="started before") as caught:
            server.start()
        assert "Make a new ModelServer" in str(caught.value)

    assert model.closed == 1
    with pytest.raises(ServerUnreachable):
        RemoteModel(server).policy()


def test_a_server_that_never_started_gives_its_address_back() -> None:
    model = Closing()
    server = ModelServer(model)

    server.shutdown()

    assert model.closed == 1
    with ModelServer(model, server.address, close_model_on_shutdown=False):
        pass
    assert model.closed == 1


def test_it_is_reached_by_a_unix_socket(bound: Bound, folder: Path) -> None:
    with ModelServer(Model(two), path=str(folder / "m.sock")) as server:
        policy = bound(server)
        assert server.address == f"unix://{folder}/m.sock"
        assert policy.predict(ONES, policy.begin("a", None)) == 2
        assert (folder / "m.sock").stat().st_mode & 0o777 == 0o600
    assert not (folder / "m.sock").exists()


def test_an_address_that_is_taken_is_refused() -> None:
    with (
        ModelServer(Model(two)) as server,
        pytest.raises(BindError, match=server.address),
    ):
        ModelServer(Model(two), server.address)


def test_the_public_is_not_let_in_without_a_secret() -> None:
    with pytest.raises(ConfigurationError, match="neither a token nor TLS"):
        ModelServer(Model(two), "0.0.0.0:0")
    ModelServer(Model(two), "0.0.0.0:0", token="secret").shutdown()
    ModelServer(Model(two), "0.0.0.0:0", allow_insecure=True).shutdown()


@pytest.mark.parametrize("given", [two, Model, object(), None, "module:attr"])
def test_what_is_no_model_is_refused_with_advice(given: object) -> None:
    with pytest.raises(rlmesh.server.model_server.NotServable, match="Wrap it") as caught:
        ModelServer(given)
    assert isinstance(caught.value, TypeError)


def test_options_for_environments_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="isolation"):
        ModelServer(Model(two), options=ServeOptions(isolation="process"))


def test_a_prediction_that_runs_is_finished_before_the_server_stops(
    raw: Raw, messages: Any, gate: threading.Event
) -> None:
    inside = threading.Event()

    def slow(observation: Any) -> int:
        inside.set()
        gate.wait(20)
        return 3

    server = ModelServer(Model(slow))
    server.start()
    client = raw(server)
    client.resolve()
    client.send(predict=messages.asking(EPISODE))
    assert inside.wait(10)
    stopping = threading.Thread(target=server.shutdown)
    stopping.start()
    gate.set()

    assert messages.actions_of(client.take()) == [[3]]
    stopping.join(10)
    assert not stopping.is_alive()


def test_a_client_that_is_attached_and_idle_does_not_delay_the_end(raw: Raw, messages: Any) -> None:
    ended: list[str] = []
    server = ModelServer(Model(two, on_episode_end=ended.append))
    server.start()
    client = raw(server)
    client.resolve()
    client.predict(EPISODE)

    began = time.monotonic()
    server.shutdown()

    assert time.monotonic() - began < 3
    assert ended == ["ep"], "its episode is over"
    with pytest.raises(SessionClosed, match="shutting down"):
        client.take()


def test_a_model_that_hangs_does_not_hang_the_shutdown(
    raw: Raw, messages: Any, gate: threading.Event
) -> None:
    inside = threading.Event()

    def hang(observation: Any) -> int:
        inside.set()
        gate.wait(30)
        return 3

    options = ServeOptions(drain_timeout_seconds=0.2, close_timeout_seconds=0.2)
    server = ModelServer(Model(hang), options=options)
    server.start()
    client = raw(server)
    client.resolve()
    client.send(predict=messages.asking(EPISODE))
    assert inside.wait(10)

    began = time.monotonic()
    with pytest.raises(CallTimeout, match="still being called") as caught:
        server.shutdown()
    assert time.monotonic() - began < 4
    assert caught.value.layer == "shutdown"
    gate.set()


def test_a_model_that_fails_to_close_says_so() -> None:
    class Stuck(Closing):
        def close(self) -> None:
            raise OSError("the arm is stuck")

    server = ModelServer(Stuck())
    server.start()

    with pytest.raises(ModelException, match="the arm is stuck") as caught:
        server.shutdown()
    assert isinstance(caught.value.__cause__, OSError)
    assert server.wait(0)


def test_a_model_is_closed_in_the_thread_that_called_it(raw: Raw) -> None:
    threads: list[int] = []

    class Affine(Model[Any, Any]):
        def predict(self, observation: Any) -> int:
            threads.append(threading.get_ident())
            return 0

        def close(self) -> None:
            threads.append(threading.get_ident())

    with ModelServer(Affine()) as server:
        client = raw(server)
        client.resolve()
        client.predict(EPISODE)

    assert len(threads) == 2
    assert len(set(threads)) == 1


def test_an_idle_server_stops_though_a_client_is_attached(raw: Raw) -> None:
    model = Closing()
    server = ModelServer(model, options=ServeOptions(idle_timeout_seconds=0.3))
    server.start()
    raw(server).resolve()

    assert server.wait(10)
    assert model.closed == 1


def test_health_is_told_by_the_empty_name_and_the_service_s() -> None:
    with ModelServer(Model(two)) as server:
        with grpc.insecure_channel(server.address.removeprefix("tcp://")) as channel:
            check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/grpc.health.v1.Health/Check"
            )
            service = b"rlmesh.model.v1.ModelService"
            assert check(b"") == b"\x08\x01"
            assert check(b"\x0a" + bytes([len(service)]) + service) == b"\x08\x01"
            with pytest.raises(grpc.RpcError) as caught:
                check(b"\x0a\x01x")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_what_a_server_does_can_be_looked_at(raw: Raw) -> None:
    with ModelServer(Model(two, name="pi")) as server:
        client = raw(server)
        client.resolve()
        client.predict(EPISODE, ("b", 1))
        client.predict(EPISODE, env_id="nobody")
        status: Any = server.inspect()

    assert status["model"] == "pi"
    assert status["places_taken"] == 1
    assert status["sessions"][0]["routes"] == ["UnknownEnv-v1"]
    assert status["total"] == {
        "requests": 3,
        "model_calls": 1,
        "observations": 2,
        "faults": 1,
        "faults_by_code": {"internal": 1},
    }
