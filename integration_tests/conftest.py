"""A real control plane on a free port, and what the tests need to look at its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer
from rlmesh import EnvServer, ServeOptions
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv

QUICK_PPO: dict[str, object] = {"num_envs": 1, "n_steps": 32, "batch_size": 32, "n_epochs": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A control plane of this test module's own, whose processes can import `worlds`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parent))
        yield from started(tmp_path_factory.mktemp("server"))


def started(data: Path) -> Iterator[LocalServer]:
    with LocalServer(data_dir=data, port=0) as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[Client]:
    with Client(base_url=server.url) as connected:
        yield connected


@dataclass(frozen=True)
class Commands:
    """Runs `rleaas` as a user would: its own process, no terminal."""

    environ: Mapping[str, str]

    def __call__(self, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rleaas.cli.main", *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=dict(self.environ),
            check=False,
        )


@pytest.fixture
def rleaas(server: LocalServer, tmp_path: Path) -> Commands:
    """The command line, set to the module's server by RLEAAS_BASE_URL."""
    settings = {"RLEAAS_BASE_URL": server.url, "RLEAAS_CONFIG": str(tmp_path / "none.toml")}
    return Commands({**os.environ, **settings})


@dataclass
class Processes:
    """Looks at /proc: which processes belong to a test, by a mark in their environment."""

    mark: str
    started: list[subprocess.Popen[str]] = field(default_factory=list["subprocess.Popen[str]"])

    def spawn(
        self, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start `python ...` as the leader of a process group, marked."""
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environ or {}), "PROCESS_MARK": self.mark},
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def marked(self) -> dict[int, str]:
        """Every living process that carries the mark, with its command line."""
        wanted = f"PROCESS_MARK={self.mark}".encode()
        return {
            pid: command.replace("\0", " ").strip()
            for pid in living()
            if wanted in read(pid, "environ").split(b"\0")
            and (command := read(pid, "cmdline").decode(errors="replace"))
        }

    def end(self) -> None:
        """Leave nothing behind, whatever the test did."""
        for pid in self.marked():
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.wait(timeout=10)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture
def processes(request: pytest.FixtureRequest) -> Iterator[Processes]:
    found = Processes(mark=f"{os.getpid()}-{request.node.name}")
    yield found
    found.end()


def living() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def read(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return b""


@pytest.fixture(scope="session")
def children_matching() -> Callable[[str], list[int]]:
    """Descendants of this test process whose command line has a text in it."""

    def find(text: str) -> list[int]:
        return [
            pid
            for pid in living()
            if text in read(pid, "cmdline").decode(errors="replace").replace("\0", " ")
            and os.getpid() in ancestors(pid)
        ]

    return find


def ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1:
        status = read(pid, "stat").decode(errors="replace")
        if not status:
            break
        # The second field is the command in parentheses, which may hold anything.
        pid = int(status.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """Wait for a fact that another process brings about; fail with what it is when it does not."""

    def wait(fact: Callable[[], bool], what: str, *, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > end:
                pytest.fail(f"not within {seconds} s: {what}")
            # Nothing in this process can be waited on: what changes is another process.
            time.sleep(0.05)

    return wait


@pytest.fixture
def quick_ppo() -> dict[str, object]:
    """Settings with which PPO learns little, but at once."""
    return dict(QUICK_PPO)


# Interop: one side is the published rlmesh, in a process and an environment of its own.

OUR_SERVER, OUR_CLIENT = "published client, our server", "our client, published server"


@pytest.fixture(scope="session")
def helpers() -> Iterator[None]:
    """The helpers beside this file can be imported by name, as the published side does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
        yield


@pytest.fixture(scope="session")
def peer(helpers: None) -> ModuleType:
    return import_module("interop_peer")


@pytest.fixture(scope="session")
def hub(helpers: None) -> Iterator[Any]:  # Any: an interop_hub.Hub, importable by then
    module = import_module("interop_hub")
    with module.Hub(module.published_python()) as published:
        yield published


@pytest.fixture(params=["tcp", "unix"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[OUR_SERVER, OUR_CLIENT])
def direction(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def our_server(direction: str) -> bool:
    return direction == OUR_SERVER


@pytest.fixture
def between(
    hub: Any, peer: ModuleType, our_server: bool, transport: str
) -> Iterator[Callable[..., Any]]:
    """Serve on one side and call the other: by a command to the hub, or a function here."""
    # Socket paths have to be short; pytest's own folders are not.
    with tempfile.TemporaryDirectory(prefix="rlm-") as folder:
        place = "127.0.0.1:0" if transport == "tcp" else f"unix://{folder}/env.sock"

        def call(
            command: Callable[[str], tuple[object, ...]],
            here: Callable[[str], Any],
            *,
            kind: str,
            arrangement: str,
            protection: Mapping[str, Any] | None = None,
            **limits: Any,
        ) -> Any:
            if our_server:
                more: Mapping[str, Any] = {"options": ServeOptions(**limits), **(protection or {})}
                with EnvServer(peer.made(kind, arrangement), place, **more) as server:
                    return hub.ask(*command(server.address))
            served = hub.ask("serve", kind, arrangement, place, limits)
            if not isinstance(served, str):
                return served
            try:
                return json.loads(json.dumps(peer.outcome(lambda: here(served))))
            finally:
                hub.ask("stop", served)

        yield call


@pytest.fixture
def through(between: Callable[..., Any], peer: ModuleType) -> Callable[..., Any]:
    """Serve on one side, play a script on the other, and return what it saw."""

    def play(
        script: str,
        *arguments: object,
        kind: str = "Trouble",
        arrangement: str = "scalar",
        **limits: Any,
    ) -> Any:
        many = arrangement not in ("scalar", "factory")
        client: Callable[..., Any] = RemoteVectorEnv if many else RemoteEnv

        def there(address: str) -> tuple[object, ...]:
            return "script", script, address, many, arguments

        def here(address: str) -> Any:
            return peer.SCRIPTS[script](partial(client, address), *arguments)

        return between(there, here, kind=kind, arrangement=arrangement, **limits)

    return play


@pytest.fixture
def cell(
    record_property: Callable[[str, object], None], direction: str, transport: str
) -> Callable[..., None]:
    """Name the cell of the table that a test is, and what it is to say when the test passes."""

    def name(row: str, says: str = "same") -> None:
        record_property("interop", [row, f"{direction}, {transport}", says])

    return name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the interop tests found out as tables."""
    _of_rlmesh(terminalreporter)
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            for name, rows in getattr(report, "user_properties", ()):
                if name == "rleaas interop":
                    _of_rleaas(terminalreporter, rows)


def _of_rleaas(terminalreporter: pytest.TerminalReporter, rows: list[list[str]]) -> None:
    told = ["| callable | effect | verdict |", "|---|---|---|"]
    told += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
    terminalreporter.section("interop with the published rleaas 1.1.0")
    terminalreporter.write_line("\n".join(told))
    path = os.environ.get("RLEAAS_INTEROP_TABLE")
    if path:
        Path(path).write_text("\n".join(told) + "\n", encoding="utf-8")


def _of_rlmesh(terminalreporter: pytest.TerminalReporter) -> None:
    """One cell for each test."""
    table: dict[str, dict[str, str]] = {}
    for reports in list(terminalreporter.stats.values()):
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "interop":
                    row, column, says = value
                    found = says if report.outcome == "passed" else _not_passed(report)
                    table.setdefault(row, {})[column] = found
    if not table:
        return
    columns = sorted({column for cells in table.values() for column in cells}, reverse=True)
    lines = ["| |" + "|".join(columns) + "|", "|---" * (len(columns) + 1) + "|"]
    for row, cells in table.items():
        lines.append(f"|{row}|" + "|".join(cells.get(column, "") for column in columns) + "|")
    terminalreporter.section("interop with the published rlmesh 0.1.0")
    terminalreporter.write_line("\n".join(lines))
    path = os.environ.get("RLMESH_INTEROP_TABLE")
    if path:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _not_passed(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].replace("Skipped: ", "not run: ")
    return report.outcome.upper()
