import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import rlcore
from rlcore import AddressError, Bearer, EnvironmentNotFound, PlatformUnreachable, Secret

GRANT = {
    "address": "tcp://127.0.0.1:5555",
    "token": "short-lived",
    "expires_at": 1_800_000_000.5,
    "environment_id": 3,
    "environment_name": "Cart Pole",
    "version": 2,
    "contract_digest": "sha256:1",
    "contract": {"id": "CartPole-v1"},
}


class MockPlatform(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers["authorization"]))
        found = self.path.startswith("/api/environments/Cart%20Pole/endpoint")
        body = json.dumps(GRANT if found else {"detail": "none", "kind": "environment"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str | None]]]:
    """What the mock platform of the environment variables was asked."""
    MockPlatform.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), MockPlatform) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("RLEAAS_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("RLEAAS_API_KEY", "rleaas_sk_1")
        yield MockPlatform.asked
        server.shutdown()
        thread.join()


def test_a_name_resolves_to_the_endpoint_that_the_platform_grants(
    asked: list[tuple[str, str | None]],
) -> None:
    endpoint = rlcore.resolve("rleaas://Cart%20Pole@2", timeout=5)

    assert endpoint.address == "tcp://127.0.0.1:5555"
    assert endpoint.credential == Bearer(Secret("short-lived"))
    assert (endpoint.environment_id, endpoint.expires_at) == (3, 1_800_000_000.5)
    assert str(endpoint.identity) == "Cart Pole@2 (sha256:1…)"
    assert endpoint.contract == {"id": "CartPole-v1"}
    assert asked == [("/api/environments/Cart%20Pole/endpoint?version=2", "Bearer rleaas_sk_1")]


def test_the_current_version_is_asked_for_without_a_number(
    asked: list[tuple[str, str | None]],
) -> None:
    rlcore.resolve("rleaas://Cart%20Pole")

    assert asked[0][0] == "/api/environments/Cart%20Pole/endpoint"


def test_an_unknown_name_is_said(asked: list[tuple[str, str | None]]) -> None:
    with pytest.raises(EnvironmentNotFound) as caught:
        rlcore.resolve("rleaas://Nope@7", timeout=5)

    assert caught.value.ref == "Nope@7"
    assert len(asked) == 1


@pytest.mark.parametrize("uri", ["rleaas://", "rleaas://a@0", "rleaas://a#b"])
def test_a_broken_uri_is_refused_before_anything_is_asked(
    uri: str, asked: list[tuple[str, str | None]]
) -> None:
    with pytest.raises((AddressError, rlcore.ConfigurationError)):
        rlcore.resolve(uri)

    assert asked == []


def test_a_platform_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLEAAS_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("RLEAAS_RETRIES", "1")

    with pytest.raises(PlatformUnreachable, match=r"http://127\.0\.0\.1:9"):
        rlcore.resolve("rleaas://E", timeout=5)
