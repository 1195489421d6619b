"""Commands in this process, against a real server that the tests of a file share."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rleaas.cli.main import main
from rleaas.server.local import LocalServer

SETTINGS = ("RLEAAS_API_KEY", "RLEAAS_BASE_URL", "RLEAAS_PROFILE", "RLEAAS_DATABASE_URL")


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    # Any: tests say what they expect of an output.
    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        assert self.code == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ran]


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("platform")) as server:
        yield server


@pytest.fixture
def cli(
    platform: LocalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    """Run a command against the file's server, in a directory of the test's own."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLEAAS_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("RLEAAS_BASE_URL", platform.url)
    monkeypatch.chdir(tmp_path)

    def run(*words: object, typed: str = "") -> Ran:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run
