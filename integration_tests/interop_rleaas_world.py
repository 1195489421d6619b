"""What the checks of the published rleaas share: its client, a neighbourhood, and their table."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import json
import os
import subprocess
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

published: Any = import_module("rleaas")  # Any: whichever is installed where this runs

AS_PROMISED = "as promised"
QUICK_PPO = {"num_envs": 1, "n_steps": 16, "batch_size": 16, "n_epochs": 1}


@dataclass
class World:
    """The client under test, and what one check leaves for the next."""

    url: str
    key: str
    folder: Path
    client: Any
    neighbours: "Neighbours"
    kept: dict[str, Any] = field(default_factory=dict[str, Any])

    def __getattr__(self, name: str) -> Any:
        """Return what a check before has kept under the name."""
        try:
            return self.__dict__["kept"][name]
        except KeyError:
            raise AttributeError(f"no check before has kept {name!r}") from None


@dataclass(frozen=True)
class Check:
    """A callable, the effect that is looked at, and what stands beside it where it has that."""

    name: str
    effect: str
    says: str
    run: Callable[[World], None]


CHECKS: list[Check] = []


def effect(name: str, what: str, says: str = AS_PROMISED) -> Callable[..., Any]:
    """Add the function to the checks, as that of a callable."""

    def add(run: Callable[[World], None]) -> Callable[[World], None]:
        CHECKS.append(Check(name, what, says, run))
        return run

    return add


def verdicts(world: World) -> list[list[str]]:
    """Run all checks in their order; a row for each: callable, effect, verdict."""
    rows: list[list[str]] = []
    for check in CHECKS:
        try:
            check.run(world)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            rows.append(
                [
                    check.name,
                    check.effect,
                    f"WRONG: {type(error).__name__}: {error} ({where.name}: {where.line})",
                ]
            )
        else:
            rows.append([check.name, check.effect, check.says])
    return rows


def raises(kind: Any, call: Callable[[], object]) -> Any:
    """Return the error of that kind that the call raises."""
    try:
        got = call()
    except kind as error:
        return error
    raise AssertionError(f"it returned {got!r}")


def told(row: Any, **expected: object) -> None:
    """Require fields of a dictionary, or attributes of a handle."""
    for name, value in expected.items():
        found = _field(row, name)
        assert found == value, f"{name} is {found!r}, not {value!r}"


def _field(row: Any, name: str) -> object:
    try:
        return row[name]
    except TypeError:  # a handle
        return getattr(row, name)


class Neighbours:
    """An HTTP server with a repository, an application that answers, a model, and a receiver."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[dict[str, Any]] = []
        self.came = threading.Condition()
        self.commit = _repository(folder)
        neighbours = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/env.git"):
                    _serve_git(self, folder, b"")
                else:
                    _answer(self, 200 if self.path == "/app" else 404, {"says": self.path})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.startswith("/env.git"):
                    _serve_git(self, folder, body)
                    return
                if self.path == "/hook":
                    with neighbours.came:
                        neighbours.heard.append(json.loads(body))
                        neighbours.came.notify_all()
                _answer(self, 200, {"choices": [{"message": {"content": "four"}}]})

            def log_message(self, format: str, *args: object) -> None:
                """Write nothing: standard output is the table's."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return what the receiver hears of an event."""
        with self.came:
            assert self.came.wait_for(lambda: self._about(event), timeout=30), self.heard
        return self._about(event)[0]

    def _about(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.heard if one["event"] == event]

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()


def _answer(request: BaseHTTPRequestHandler, status: int, body: object) -> None:
    content = json.dumps(body).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def _serve_git(request: BaseHTTPRequestHandler, folder: Path, body: bytes) -> None:
    path, _, query = request.path.partition("?")
    environ = {
        **os.environ,
        "GIT_PROJECT_ROOT": str(folder),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "REMOTE_ADDR": "127.0.0.1",
    }
    command = ["git", "http-backend"]
    done = subprocess.run(command, env=environ, input=body, check=True, capture_output=True)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    request.send_response(200)
    for line in head.decode().split("\r\n"):
        name, _, value = line.partition(": ")
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def _repository(folder: Path) -> str:
    """Make a repository that plain HTTP can serve, and return its commit."""
    work = folder / "work"
    work.mkdir()
    (work / "README.md").write_text("# A balancing act\n")
    for command in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "add", "."],
        ["git", "commit", "-q", "-m", "one"],
        ["git", "clone", "-q", "--bare", ".", str(folder / "env.git")],
    ):
        _git(command, work)
    return _git(["git", "rev-parse", "HEAD"], work)


def _git(command: list[str], folder: Path) -> str:
    who = {
        f"GIT_{role}_{what}": "a@example.org"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    environ = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
    return done.stdout.decode().strip()
