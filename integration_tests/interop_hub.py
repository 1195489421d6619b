"""The process with the published package, as the tests speak to it; and its environment on disk."""

import fcntl
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PUBLISHED = ("rlmesh==0.1.0", "gymnasium>=1.1", "numpy>=2")
PUBLISHED_RLEAAS = ("rleaas==1.1.0",)
PEER = Path(__file__).with_name("interop_peer.py")
ANSWER_SECONDS = 240.0 if os.environ.get("RLMESH_INTEROP_LONG") else 60.0
END_SECONDS = 20.0


def published_python() -> Path:
    """The interpreter of a virtual environment with the published package, made once a machine."""
    return _made("rlmesh", "0.1.0", PUBLISHED)


def published_rleaas() -> Path:
    """The same with the published control plane's client, in an environment of its own."""
    return _made("rleaas", "1.1.0", PUBLISHED_RLEAAS)


def _made(package: str, version: str, wanted: tuple[str, ...]) -> Path:
    python_version = f"py{sys.version_info[1]}.{sys.version_info[2]}"
    name = f"{package}-interop-{os.getuid()}-{version}-{python_version}"
    home = Path(tempfile.gettempdir()) / name
    python = home / "bin" / "python"
    with home.with_suffix(".lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            _install(home, python, wanted)
            (home / "complete").touch()
    return python


def _install(home: Path, python: Path, wanted: tuple[str, ...]) -> None:
    uv = shutil.which("uv")
    if uv is not None:
        subprocess.run([uv, "venv", "-q", "--python", sys.executable, home], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", python, *wanted], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)


class Hub:
    """Sends commands to `interop_peer.py` under the published package."""

    def __init__(self, python: Path) -> None:
        # The variable is for this repository's own tests; the published package has its own path.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, PEER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
        )

    def ask(self, *command: object) -> Any:  # Any: what JSON holds
        """The answer to a command; an assertion fails when there is none in time."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._line(time.monotonic() + ANSWER_SECONDS))

    def kill(self) -> None:
        """End the process at once, whatever it serves."""
        self._process.kill()
        self._process.wait()

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        found = bytearray()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                ready = waiting.select(max(0.0, deadline - time.monotonic()))
                assert ready, f"the published peer was silent for {ANSWER_SECONDS:g} s"
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                assert part, "the published peer has ended"
                found += part
        return bytes(found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
