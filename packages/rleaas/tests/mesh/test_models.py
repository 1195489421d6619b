"""`rlmesh.load_model` of checkpoints, through the entry points that are installed."""

from __future__ import annotations

import hashlib
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import rlmesh
from rlcore import AddressError, CheckpointNotFound, ConfigurationError

CONTENT = b"weights"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class MockPlatform(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        record = {"id": "c1", "sha256": SHA256, "algorithm": "PPO"}
        answers = {
            "/api/checkpoints/c1": json.dumps(record).encode(),
            "/api/checkpoints/c1/file": CONTENT,
        }
        found = answers.get(self.path.partition("?")[0])
        body = json.dumps({"detail": "none", "kind": "checkpoint"}).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(body if found is None else found)))
        self.end_headers()
        self.wfile.write(body if found is None else found)

    def log_message(self, format: str, *args: object) -> None:
        pass


def opposite(path: Path, algorithm: str | None = None) -> rlmesh.Model:
    """Stands for the trainer, which is slow to import: the content decides the action."""

    def act(observation: int) -> int:
        return path.read_bytes()[observation]

    return rlmesh.Model(act, name="trained")


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """One checkpoint, on the platform of the environment variables."""
    monkeypatch.setenv("RLEAAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("rleaas.training.policy.load_policy", opposite)
    with ThreadingHTTPServer(("127.0.0.1", 0), MockPlatform) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("RLEAAS_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("RLEAAS_API_KEY", "rleaas_sk_1")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("platform")
def test_a_checkpoint_loads_by_its_address() -> None:
    model = rlmesh.load_model("rleaas://checkpoints/c1", name="mine")

    assert model.name == "mine"
    assert model.predict(0) == CONTENT[0]


@pytest.mark.usefixtures("platform")
def test_a_checkpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(CheckpointNotFound, match="c2"):
        rlmesh.load_model("rleaas://checkpoints/c2")


@pytest.mark.usefixtures("platform")
def test_a_downloaded_checkpoint_loads_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "rleaas.checkpoint.v1"}))

    model = rlmesh.load_model(path)

    assert model.name == "trained"
    assert model.predict(0) == ord("P")


@pytest.mark.parametrize(
    "address", ["rleaas://CartPole", "rleaas://checkpoints/", "rleaas://checkpoints/a/b"]
)
def test_an_address_of_something_else_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match="no address of a model"):
        rlmesh.load_model(address)


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"deterministic": False}])
def test_options_that_checkpoints_do_not_have_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="not for checkpoints"):
        rlmesh.load_model("rleaas://checkpoints/c1", **options)  # type: ignore[arg-type]  # wrong on purpose
