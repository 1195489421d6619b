"""Who may step what, for how long, and that nothing is left open."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from gymnasium import spaces
from rlcore import (
    AccessDenied,
    Bearer,
    CallTimeout,
    ConfigurationError,
    Endpoint,
    IdentityError,
    Secret,
    SessionBusy,
    SessionClosed,
)
from rlcore.resolvers import register, unregister
from rlcore.tokens import mint_token
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions
from rlmesh.transport.health import MAX_WATCHERS

Serve = Callable[..., EnvServer]
HEALTH = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"


def test_each_client_of_a_factory_has_an_environment_of_its_own(
    serve: Serve, factory: Any, either_address: str
) -> None:
    made = factory()
    server = serve(made, either_address)
    with RemoteEnv(server) as first, RemoteEnv(server) as second:
        first.reset()
        second.reset()
        first.step(0)
        first.step(0)
        assert second.step(0)[0].tolist() == [1, 1]
        assert first.step(0)[0].tolist() == [3, 1]
    server.shutdown()
    assert [one.closed for one in made.made] == [1, 1]
    assert all(len(one.threads) == 1 for one in made.made)


@pytest.mark.usefixtures("each_lane")
def test_a_shared_environment_takes_one_client_at_a_time(serve: Serve, scripted: Any) -> None:
    inner = scripted()
    server = serve(inner)
    first, second = RemoteEnv(server), RemoteEnv(server)
    first.reset()
    with pytest.raises(SessionBusy, match="another client"):
        second.reset()
    first.step(0)
    first.close()
    second.reset()
    second.close()
    assert inner.closed == 0
    server.shutdown()
    assert inner.closed == 1


@pytest.mark.usefixtures("each_lane")
def test_a_dropped_client_frees_its_place(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    dropped = RemoteEnv(server)
    dropped.reset()
    del dropped
    gc.collect()
    with RemoteEnv(server) as env:
        env.reset()


@pytest.mark.usefixtures("each_lane")
def test_no_more_sessions_than_allowed(serve: Serve, factory: Any) -> None:
    server = serve(factory(), options=ServeOptions(max_sessions=1))
    with RemoteEnv(server) as first, RemoteEnv(server, queue_timeout_seconds=0) as second:
        first.reset()
        with pytest.raises(SessionBusy, match="all 1 sessions"):
            second.reset()


@pytest.mark.usefixtures("each_lane")
def test_every_environment_that_was_made_is_closed(
    serve: Serve, factory: Any, eventually: Any
) -> None:
    made = factory()
    server = serve(made)
    for _ in range(3):
        with RemoteEnv(server) as env:
            env.reset()
    server.shutdown()
    eventually(lambda: all(one.closed == 1 for one in made.made))
    assert len(made.made) == 3


def test_a_server_nobody_used_closes_the_environment_it_made(factory: Any) -> None:
    made = factory()
    with EnvServer(made):
        pass
    assert (made.probe.closed, made.made) == (1, [])


def test_an_environment_can_be_left_open(scripted: Any) -> None:
    inner = scripted()
    with EnvServer(inner, close_env_on_shutdown=False):
        pass
    assert inner.closed == 0


def test_shutdown_does_not_wait_for_an_idle_client(
    serve: Serve, factory: Any, either_address: str
) -> None:
    made = factory()
    server = serve(made, either_address)
    env = RemoteEnv(server)
    env.reset()
    started = time.monotonic()
    server.shutdown()
    assert time.monotonic() - started < 1.5
    assert [one.closed for one in made.made] == [1]
    with pytest.raises(SessionClosed):
        env.step(0)
    env.close()


@pytest.mark.usefixtures("each_lane")
def test_shutdown_lets_a_running_step_finish(
    serve: Serve, factory: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    made = factory(hang())
    server = serve(made)
    with RemoteEnv(server) as env:
        env.reset()
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(env.step(0)))
        thread.start()
        eventually(lambda: made.made[0].steps == 1)
        stopping = threading.Thread(target=server.shutdown)
        stopping.start()
        gate.set()
        thread.join(10)
        stopping.join(10)
        assert results[0][0].tolist() == [1, 1]


@pytest.mark.usefixtures("each_lane")
def test_shutdown_gives_up_on_an_environment_that_hangs(
    factory: Any, hang: Any, gate: threading.Event, eventually: Any
) -> None:
    made = factory(hang())
    options = ServeOptions(drain_timeout_seconds=0.2, close_timeout_seconds=0.2)
    server = EnvServer(made, options=options)
    server.start()
    env = RemoteEnv(server)
    env.reset()
    lost: list[SessionClosed] = []

    def step() -> None:
        try:
            env.step(0)
        except SessionClosed as error:
            lost.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    eventually(lambda: made.made[0].steps == 1)
    started = time.monotonic()
    with pytest.raises(CallTimeout, match="still inside the environment") as caught:
        server.shutdown()
    assert time.monotonic() - started < 5
    assert caught.value.layer == "shutdown"
    assert server.wait(0)
    thread.join(10)
    assert len(lost) == 1
    gate.set()
    eventually(lambda: made.made[0].closed == 1)


def test_a_server_starts_once(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    with pytest.raises(SessionClosed):
        server.start()
    server.shutdown()
    server.shutdown()
    with pytest.raises(SessionClosed):
        server.start()


def test_waiting_for_a_server_is_bounded(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    assert server.wait(0.01) is False
    server.shutdown()
    assert server.wait(0.01) is True


def test_clients_stop_a_server_only_where_that_is_allowed(
    serve: Serve, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLMESH_ALLOW_REMOTE_SHUTDOWN", raising=False)
    kept = serve(scripted())
    with RemoteEnv(kept) as env:
        assert env.shutdown() is False
        env.reset()
    stopped = serve(scripted(), options=ServeOptions(allow_remote_shutdown=True))
    assert RemoteEnv(stopped).shutdown("done") is True
    assert stopped.wait(10)


def test_an_idle_server_stops_itself(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), options=ServeOptions(idle_timeout_seconds=0.3))
    with RemoteEnv(server) as env:
        env.reset()
        assert server.wait(10)


@pytest.mark.parametrize(
    "options",
    [
        {"idle_timeout_seconds": 0},
        {"drain_timeout_seconds": float("nan")},
        {"close_timeout_seconds": -1},
        {"max_sessions": 0},
        {"max_message_bytes": 1},
        {"workflow_edition": "2099.01"},
    ],
)
def test_serve_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        ServeOptions(**options)


@pytest.mark.usefixtures("each_lane")
def test_a_token_is_asked_for_and_checked(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), token="open sesame")
    with pytest.raises(AccessDenied, match="a token is required"):
        RemoteEnv(server)
    with pytest.raises(AccessDenied, match="not the one") as caught:
        RemoteEnv(server, token="guess")
    assert "guess" not in str(caught.value)
    with RemoteEnv(server, token="open sesame") as env:
        env.reset()


@pytest.mark.usefixtures("each_lane")
def test_signed_tokens_let_in_until_they_expire(serve: Serve, scripted: Any) -> None:
    key = Secret("a key of the control plane")
    server = serve(scripted(), token_key=key, token_subject="env:7")
    now = time.time()
    good = mint_token(key, subject="env:7", expires_at=now + 60)
    old = mint_token(key, subject="env:7", expires_at=now - 1)
    another = mint_token(key, subject="env:8", expires_at=now + 60)
    forged = mint_token(Secret("another key"), subject="env:7", expires_at=now + 60)
    with RemoteEnv(Endpoint(server.address, credential=Bearer(Secret(good)))) as env:
        env.reset()
    for token, reason in ((old, "expired"), (another, "env:8"), (forged, "not signed")):
        with pytest.raises(AccessDenied, match=reason):
            RemoteEnv(server, token=token)


def test_a_public_address_needs_a_token_or_a_decision(scripted: Any) -> None:
    with pytest.raises(ConfigurationError, match="other machines"):
        EnvServer(scripted(), "0.0.0.0:0")
    EnvServer(scripted(), "0.0.0.0:0", token="secret").shutdown()
    EnvServer(scripted(), "0.0.0.0:0", allow_insecure=True).shutdown()


def test_an_empty_token_is_no_token(scripted: Any) -> None:
    with pytest.raises(ConfigurationError, match="token is empty"):
        EnvServer(scripted(), token="")


def test_the_served_contract_must_be_the_registered_one(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    registered = server.env_contract.to_dict()
    registered["action_space"]["details"]["n"] = 4
    endpoint = Endpoint(
        server.address,
        environment_name="Counter",
        version=3,
        contract_digest="sha256:" + "0" * 64,
        contract=registered,
    )
    with pytest.raises(IdentityError, match="Counter@3") as caught:
        RemoteEnv(endpoint)
    error = caught.value
    assert (error.environment, error.version) == ("Counter", 3)
    assert (error.expected, error.actual) == (endpoint.contract_digest, server.env_contract.digest)
    assert error.differences == ("action_space.details.n",)


def test_a_registered_name_becomes_the_identity(serve: Serve, scripted: Any) -> None:
    server = serve(scripted())
    digest = server.env_contract.digest

    def resolve(uri: str, *, timeout: float | None) -> Endpoint:
        return Endpoint(
            server.address, environment_name="Counter", version=3, contract_digest=digest
        )

    register("testing", resolve)
    try:
        with RemoteEnv("testing://Counter@3") as env:
            assert str(env.identity).startswith("Counter@3 (sha256:")
            env.reset()
    finally:
        unregister("testing")


def test_another_environment_behind_the_address_is_noticed_when_dialling_again(
    serve: Serve, scripted: Any, folder: Path
) -> None:
    address = f"unix://{folder}/env.sock"
    server = EnvServer(scripted(), address)
    server.start()
    env = RemoteEnv(address)
    env.reset()
    server.shutdown()
    with pytest.raises(SessionClosed):
        env.step(0)
    changed = scripted()
    changed.action_space = spaces.Discrete(9)
    serve(changed, address)
    with pytest.raises(IdentityError) as caught:
        env.reset()
    env.close()
    assert "action_space.details.n" in caught.value.differences


def test_the_health_service_answers_without_a_token(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), token="secret")
    with grpc.insecure_channel(server.address.removeprefix("tcp://")) as channel:
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(HEALTH)
        assert check(b"", timeout=10) == b"\x08\x01"
        named = b"\x0a\x18rlmesh.env.v1.EnvService"
        assert check(named, timeout=10) == b"\x08\x01"
        with pytest.raises(grpc.RpcError) as caught:
            check(b"\x0a\x01x", timeout=10)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_watchers_without_a_token_do_not_lock_anybody_out(
    serve: Serve, scripted: Any, eventually: Any
) -> None:
    server = serve(scripted(), token="secret", options=ServeOptions(max_sessions=1))
    with grpc.insecure_channel(server.address.removeprefix("tcp://")) as channel:
        watch: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(WATCH)
        streams = [watch(b"", timeout=60) for _ in range(140)]
        heard = [first(stream) for stream in streams]
        assert heard.count(b"\x08\x01") == MAX_WATCHERS
        assert heard.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == 140 - MAX_WATCHERS
        with RemoteEnv(server, token="secret") as env:
            env.reset()
            env.step(0)
    with grpc.insecure_channel(server.address.removeprefix("tcp://")) as channel:
        watch = channel.unary_stream(WATCH)
        eventually(lambda: first(watch(b"", timeout=60)) == b"\x08\x01")


def first(stream: Any) -> bytes | grpc.StatusCode:
    try:
        answer: bytes = next(stream)
        return answer
    except grpc.RpcError:
        code: grpc.StatusCode = stream.code()
        return code


def test_small_messages_do_not_wait_for_each_other_on_either_side(
    serve: Serve, scripted: Any
) -> None:
    server = serve(scripted())
    port = int(server.address.rpartition(":")[2])
    env = RemoteEnv(server)
    env.reset()
    ends = [no_delay for ports, no_delay in tcp_sockets() if port in ports]
    env.close()
    # One socket is the client's, the other the server's: this process holds both.
    assert ends == [True, True]


def tcp_sockets() -> list[tuple[tuple[int, int], bool]]:
    """The connected TCP sockets of this process: their two ports, and their TCP_NODELAY."""
    found: list[tuple[tuple[int, int], bool]] = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it closed meanwhile, or is not connected
            if str(entry.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as view:
                    if view.family in (socket.AF_INET, socket.AF_INET6):
                        ports = (view.getsockname()[1], view.getpeername()[1])
                        no_delay = view.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                        found.append((ports, bool(no_delay)))
    return found
