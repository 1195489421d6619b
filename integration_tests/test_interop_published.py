"""The published rlmesh 0.1.0 and ours drive each other's servers.

The published package is installed into an environment of its own, and only run, never read.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

PUBLISHED = ("rlmesh==0.1.0", "gymnasium>=1.1", "numpy>=2")
PEER = Path(__file__).with_name("interop_peer.py")
KINDS = ("box", "image", "discrete", "dict", "text")
TRANSPORTS = ("tcp", "unix")
CALL_SECONDS = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="session")
def published_python() -> Path:
    """The interpreter of a virtual environment with the published package, made once a machine."""
    home = (
        Path(tempfile.gettempdir()) / f"rlmesh-interop-{os.getuid()}-0.1.0-py{sys.version_info[1]}"
    )
    python = home / "bin" / "python"
    if not (home / "complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        install(home, python)
        (home / "complete").touch()
    return python


@pytest.fixture(scope="session")
def peer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interop_peer", PEER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(home: Path, python: Path) -> None:
    uv = shutil.which("uv")
    if uv is not None:
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, home], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, *PUBLISHED], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PUBLISHED], check=True)


def bind_address(transport: str, folder: Path) -> str:
    return "127.0.0.1:0" if transport == "tcp" else f"unix://{folder}/env.sock"


def run_published(python: Path, *arguments: str) -> list[object]:
    done = subprocess.run(
        [python, PEER, *arguments],
        capture_output=True,
        text=True,
        timeout=CALL_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1:]
    found: list[object] = json.loads(done.stdout)
    return found


@contextmanager
def published_server(python: Path, kind: str, address: str) -> Generator[str]:
    process = subprocess.Popen(
        [python, PEER, "serve", kind, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready = process.stdout.readline().strip()
        assert ready, "the published server did not start"
        yield ready
    finally:
        process.stdin.close()
        process.wait(timeout=CALL_SECONDS)
        process.stdout.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    # Socket paths have to be short; pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="rlm-") as made:
        yield Path(made)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", KINDS)
def test_published_client_sees_through_our_server_what_the_environment_does(
    published_python: Path, peer: ModuleType, folder: Path, kind: str, transport: str
) -> None:
    local = json.loads(json.dumps(peer.play(peer.Mirror(kind), kind)))
    with EnvServer(peer.Mirror(kind), bind_address(transport, folder)) as server:
        assert run_published(published_python, "drive", kind, server.address) == local


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("kind", KINDS)
def test_our_client_sees_through_a_published_server_what_the_environment_does(
    published_python: Path, peer: ModuleType, folder: Path, kind: str, transport: str
) -> None:
    local = json.loads(json.dumps(peer.play(peer.Mirror(kind), kind)))
    address = bind_address(transport, folder)
    with published_server(published_python, kind, address) as ready, RemoteEnv(ready) as env:
        assert json.loads(json.dumps(peer.play(env, kind))) == local


def test_published_evaluation_ends_every_episode_on_our_server(
    published_python: Path, peer: ModuleType, folder: Path
) -> None:
    with EnvServer(lambda: peer.Mirror("discrete")) as server:
        records = run_published(published_python, "evaluate", "discrete", server.address)
    assert records == [[4, 5.0, True], [4, 5.0, True]]
