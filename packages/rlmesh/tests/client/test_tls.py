"""Whom a client believes, whom a server lets in, and what both say when they do not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator
from concurrent import futures
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from rlcore import (
    AccessDenied,
    CallTimeout,
    ConfigurationError,
    Endpoint,
    RLMeshException,
    ServerUnreachable,
    TlsError,
)
from rlmesh.client import lanes
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.transport import frame_dial
from rlmesh.transport.tls import ClientTls, ServerTls

Serve = Callable[..., EnvServer]
Issue = Callable[..., Any]


def play(*arguments: Any, **options: Any) -> list[float]:
    with RemoteEnv(*arguments, **options) as env:
        env.reset()
        observation: list[float] = env.step(0)[0].tolist()
        return observation


def refusal(*arguments: Any, **options: Any) -> TlsError:
    with pytest.raises(TlsError) as caught:
        RemoteEnv(*arguments, **options)
    assert not caught.value.retryable
    return caught.value


def test_a_self_made_certificate_is_pinned(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), tls="auto")
    fingerprint = server.tls_fingerprint
    assert fingerprint is not None
    assert play(server.address, tls=fingerprint) == [1, 1]
    colons = ":".join(fingerprint[7:][at : at + 2] for at in range(0, 64, 2)).upper()
    assert play(server.address, tls=f"SHA256:{colons}") == [1, 2]


def test_a_server_object_and_an_endpoint_carry_the_pin(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), tls="auto")
    assert play(server) == [1, 1]
    endpoint = Endpoint(server.address, tls_fingerprint=server.tls_fingerprint)
    assert play(endpoint) == [1, 2]


def test_each_server_makes_another_certificate(scripted: Any) -> None:
    with EnvServer(scripted(), tls="auto") as one, EnvServer(scripted(), tls="auto") as other:
        assert one.tls_fingerprint != other.tls_fingerprint


def test_a_changed_certificate_names_both_fingerprints(serve: Serve, scripted: Any) -> None:
    before = ServerTls.auto().fingerprint
    server = serve(scripted(), tls="auto")
    error = refusal(server.address, tls=before)
    assert error.code == "certificate_changed"
    assert (error.expected, error.actual) == (before, server.tls_fingerprint)
    assert before in str(error)
    assert str(server.tls_fingerprint) in str(error)


def test_a_certificate_of_a_ca_is_trusted(serve: Serve, scripted: Any, issue: Issue) -> None:
    ca = issue(ca=True)
    leaf = issue("127.0.0.1", by=ca)
    server = serve(scripted(), tls=(leaf.cert, leaf.key))
    assert server.tls_fingerprint == leaf.fingerprint
    assert play(server.address, tls=ca.cert) == [1, 1]
    assert play(server.address, tls=str(ca.cert)) == [1, 2]
    assert play(server.address, tls=leaf.fingerprint) == [1, 3]


def test_a_wildcard_certificate_can_be_pinned(serve: Serve, scripted: Any, issue: Issue) -> None:
    leaf = issue("*.example.com", by=issue(ca=True))
    server = serve(scripted(), tls=(leaf.cert, leaf.key))
    assert play(server.address, tls=leaf.fingerprint) == [1, 1]


def test_a_certificate_without_a_name_is_known_by_its_subject(
    serve: Serve, scripted: Any, issue: Issue
) -> None:
    leaf = issue()
    server = serve(scripted(), tls=(leaf.cert, leaf.key))
    assert play(server.address, tls=leaf.fingerprint) == [1, 1]


def test_another_ca_is_not_trusted(serve: Serve, scripted: Any, issue: Issue) -> None:
    leaf = issue("127.0.0.1", by=issue(ca=True))
    server = serve(scripted(), tls=(leaf.cert, leaf.key))
    assert refusal(server.address, tls=issue(ca=True).cert).code == "certificate_untrusted"
    assert refusal(server.address, tls=True).code == "certificate_untrusted"


def test_a_certificate_of_another_name_is_not_trusted_until_it_is_named(
    serve: Serve, scripted: Any, issue: Issue
) -> None:
    ca = issue(ca=True)
    leaf = issue("robots.example.com", by=ca)
    server = serve(scripted(), tls=(leaf.cert, leaf.key))
    error = refusal(server.address, tls=ca.cert)
    assert error.code == "certificate_name"
    assert "127.0.0.1" in error.message
    named = ClientTls.from_files(ca=ca.cert, server_name="robots.example.com")
    assert play(server.address, tls=named) == [1, 1]


def test_a_server_does_not_start_with_an_expired_certificate(scripted: Any, issue: Issue) -> None:
    old = issue("127.0.0.1", days=(-30, -1))
    with pytest.raises(ConfigurationError, match="expired"):
        EnvServer(scripted(), tls=(old.cert, old.key))


@pytest.mark.parametrize("pinned", [False, True])
def test_a_client_does_not_trust_an_expired_certificate(issue: Issue, pinned: bool) -> None:
    ca = issue(ca=True)
    old = issue("127.0.0.1", by=ca, days=(-30, -1))
    with bare_tls_server(old) as address:
        error = refusal(address, tls=old.fingerprint if pinned else ca.cert)
    assert error.code == "certificate_expired"
    assert "clocks" in str(error)


def test_a_client_without_tls_is_told_that_the_server_has_it(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), tls="auto")
    error = refusal(server.address)
    assert error.code == "tls_required"
    assert isinstance(error.__cause__, ServerUnreachable)
    # Waiting for a server would not help: it is there.
    assert refusal(server.address, wait_for_server_seconds=30).code == "tls_required"


def test_a_client_with_tls_is_told_that_the_server_has_none(
    serve: Serve, scripted: Any, issue: Issue
) -> None:
    server = serve(scripted())
    assert refusal(server.address, tls=issue(ca=True).cert).code == "tls_not_spoken"
    assert refusal(server.address, tls="sha256:" + "0" * 64).code == "tls_not_spoken"


def test_nobody_at_the_address_is_still_a_server_that_cannot_be_reached() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        for tls in (True, "sha256:" + "0" * 64):
            with pytest.raises(ServerUnreachable, match="refused"):
                RemoteEnv(address, tls=tls)


def test_a_pinned_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CallTimeout, match=r"TLS handshake within 0\.3 s") as caught:
            RemoteEnv(address, tls="sha256:" + "0" * 64, connect_timeout_seconds=0.3)
        assert caught.value.layer == "connect"


def test_only_clients_with_a_certificate_of_the_ca_come_in(
    serve: Serve, scripted: Any, issue: Issue
) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("127.0.0.1", by=ca), issue("me", by=ca)
    stranger = issue("me")
    server = serve(scripted(), tls=(leaf.cert, leaf.key, ca.cert))
    known = ClientTls.from_files(ca=ca.cert, cert=mine.cert, key=mine.key)
    assert play(server.address, tls=known) == [1, 1]
    pinned = ClientTls.from_files(fingerprint=leaf.fingerprint, cert=mine.cert, key=mine.key)
    assert play(server.address, tls=pinned) == [1, 2]

    error = refusal(server.address, tls=ca.cert)
    assert error.code == "client_certificate"
    assert "none was shown" in str(error)
    error = refusal(
        server.address, tls=ClientTls.from_files(ca=ca.cert, cert=stranger.cert, key=stranger.key)
    )
    assert error.code == "client_certificate"
    assert stranger.fingerprint in str(error)


@pytest.mark.parametrize("lane", ["grpc", "tcp", "local"])
def test_every_lane_has_the_same_trust(
    serve: Serve, scripted: Any, issue: Issue, lane: str
) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("127.0.0.1", by=ca), issue("me", by=ca)
    server = serve(scripted(), tls=(leaf.cert, leaf.key, ca.cert), token="open sesame")
    files = {"cert": mine.cert, "key": mine.key}
    for trust in (
        ClientTls.from_files(ca=ca.cert, **files),
        ClientTls.from_files(fingerprint=leaf.fingerprint, **files),
    ):
        env = RemoteEnv(server.address, tls=trust, token="open sesame", lane=cast("Any", lane))
        with env:
            env.reset()
            assert env.step(0)[0][0] == 1


def test_the_second_port_lets_nobody_in_without_a_certificate(
    serve: Serve, scripted: Any, issue: Issue, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("127.0.0.1", by=ca), issue("me", by=ca)
    server = serve(scripted(), tls=(leaf.cert, leaf.key, ca.cert))
    known = ClientTls.from_files(ca=ca.cert, cert=mine.cert, key=mine.key)
    real = frame_dial.reach

    def without(*arguments: Any, **options: Any) -> Any:
        return real(*arguments, **(options | {"tls": ClientTls.from_files(ca=ca.cert)}))

    monkeypatch.setattr(lanes, "reach", without)
    with RemoteEnv(server.address, tls=known, lane="tcp") as env, pytest.raises(RLMeshException):
        env.reset()


def test_a_token_is_still_asked_for_under_tls(serve: Serve, scripted: Any) -> None:
    server = serve(scripted(), tls="auto", token="open sesame")
    with pytest.raises(AccessDenied, match="a token is required"):
        RemoteEnv(server)
    assert play(server, token="open sesame") == [1, 1]


def test_a_unix_socket_takes_no_tls(serve: Serve, scripted: Any, folder: Path) -> None:
    place = f"unix://{folder}/env.sock"
    with pytest.raises(ConfigurationError, match="unix socket, which takes no TLS"):
        EnvServer(scripted(), place, tls="auto")
    server = serve(scripted(), place)
    with pytest.raises(ConfigurationError, match="unix socket, which takes no TLS"):
        RemoteEnv(server, tls="sha256:" + "0" * 64)


def test_a_public_address_is_protected_by_tls_as_well(scripted: Any) -> None:
    EnvServer(scripted(), "0.0.0.0:0", tls="auto").shutdown()


def test_variables_say_how_to_serve_and_whom_to_trust(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, scripted: Any, issue: Issue, folder: Path
) -> None:
    ca = issue(ca=True)
    leaf, mine = issue("127.0.0.1", by=ca), issue("me", by=ca)
    monkeypatch.setenv("RLMESH_SERVE_TLS", str(leaf.cert))
    monkeypatch.setenv("RLMESH_SERVE_TLS_KEY", str(leaf.key))
    monkeypatch.setenv("RLMESH_SERVE_TLS_CLIENT_CA", str(ca.cert))
    monkeypatch.setenv("RLMESH_TOKEN", "open sesame")
    server = serve(scripted())
    assert server.tls_fingerprint == leaf.fingerprint
    monkeypatch.setenv("RLMESH_TLS", str(ca.cert))
    monkeypatch.setenv("RLMESH_TLS_CERT", str(mine.cert))
    monkeypatch.setenv("RLMESH_TLS_KEY", str(mine.key))
    assert play(server.address) == [1, 1]
    # They are about TCP: a socket file is protected by its mode, and asks for the token only.
    assert play(serve(scripted(), f"unix://{folder}/env.sock").address) == [1, 1]
    # An argument comes before them.
    assert refusal(server.address, tls=False).code == "tls_required"
    with pytest.raises(AccessDenied):
        play(server.address, token="guess")


def test_variables_are_not_sent_to_what_an_endpoint_names(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, scripted: Any
) -> None:
    server = serve(scripted(), token="open sesame")
    monkeypatch.setenv("RLMESH_TOKEN", "open sesame")
    assert play(server.address) == [1, 1]
    with pytest.raises(AccessDenied, match="none was sent"):
        RemoteEnv(Endpoint(server.address))


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RLMESH_TLS_CERT": "me.pem"}, "RLMESH_TLS_CERT is set without RLMESH_TLS"),
        ({"RLMESH_TLS": "auto"}, "is for servers"),
        ({"RLMESH_TLS": "sha256:12"}, "is not the fingerprint"),
        ({"RLMESH_TLS": "/no/such/ca.pem"}, "cannot be read from '/no/such/ca.pem'"),
    ],
)
def test_variables_that_make_no_sense_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(ConfigurationError, match=words):
        RemoteEnv("127.0.0.1:1")


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RLMESH_SERVE_TLS_KEY": "x"}, "without RLMESH_SERVE_TLS"),
        ({"RLMESH_SERVE_TLS": "auto", "RLMESH_SERVE_TLS_KEY": "x"}, "makes its own key"),
        ({"RLMESH_SERVE_TLS": "/no/such.pem"}, "cannot be read"),
    ],
)
def test_variables_of_a_server_that_make_no_sense_are_refused(
    monkeypatch: pytest.MonkeyPatch, scripted: Any, variables: dict[str, str], words: str
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(ConfigurationError, match=words):
        EnvServer(scripted())


def test_a_token_in_the_clear_to_another_machine_is_warned_about() -> None:
    # 192.0.2.0/24 is nobody's: the warning comes before anything is sent.
    with (
        pytest.warns(UserWarning, match=r"token for tcp://192\.0\.2\.1:9 travels in the clear"),
        pytest.raises((ServerUnreachable, CallTimeout)),
    ):
        RemoteEnv("192.0.2.1:9", token="open sesame", connect_timeout_seconds=0.2)


def test_no_token_or_no_other_machine_is_not_warned_about(serve: Serve, scripted: Any) -> None:
    with pytest.raises((ServerUnreachable, CallTimeout)):
        RemoteEnv("192.0.2.1:9", connect_timeout_seconds=0.2)
    server = serve(scripted(), token="open sesame")
    assert play(server.address, token="open sesame") == [1, 1]


@contextlib.contextmanager
def bare_tls_server(issued: Any) -> Generator[str]:
    """A gRPC server with a certificate that an EnvServer would not start with."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    credentials = grpc.ssl_server_credentials([(issued.key.read_bytes(), issued.cert.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        stopped: threading.Event = server.stop(None)
        stopped.wait(5)
