"""What the shells make of names that somebody else has chosen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer

from .conftest import Cli

ODD = (
    "zz;touch pwned;echo",
    "zz$(touch pwned2)",
    "zz`touch pwned3`",
    "zz'\"$(touch pwned4)",
    "zz&touch pwned5",
    "zz two words",
    "zz*",
    "zz{a,b}",
    "zz|cat",
    "zz>pwned6",
    "zz!1",
    "zz“x”",
)

BASH = """
source ./completion.sh
COMP_WORDS=(rleaas "$@" zz) COMP_CWORD=$(($# + 1))
_rleaas_completion rleaas
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def shell_path(tmp_path: Path) -> str:
    """A PATH on which `rleaas` is the one of this Python."""
    place = tmp_path / "bin"
    place.mkdir()
    program = place / "rleaas"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rleaas.cli.main "$@"\n')
    program.chmod(0o755)
    return f"{place}:{os.environ['PATH']}"


def completed_by_bash(path: str, *words: str) -> list[str]:
    environ = {**os.environ, "PATH": path}
    script = subprocess.run(
        ["rleaas"],
        env={**environ, "_RLEAAS_COMPLETE": "source_bash"},
        capture_output=True,
        text=True,
        check=False,
    )
    Path("completion.sh").write_text(script.stdout)
    run = subprocess.run(
        ["bash", "-c", BASH, "bash", *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert run.stderr == ""
    return run.stdout.split("\n")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="it is bash that completes")
def test_completion_runs_nothing_and_offers_only_names_that_a_shell_takes_as_one_word(
    cli: Cli, platform: LocalServer, shell_path: str
) -> None:
    for name in (*ODD, "zz-plain"):
        assert cli("env", "create", "--source", "custom", "--", name).code == 0, name
    with Client(base_url=platform.url) as client:
        for name in (*ODD, "zz.tool"):
            client.Tools.register(None, name)
            client.Organisation.create(name, admin="a@lab.example")

    there = set(Path.cwd().iterdir()) | {Path.cwd() / "completion.sh"}
    assert completed_by_bash(shell_path, "env", "get") == ["zz-plain"]
    assert completed_by_bash(shell_path, "tool", "get") == ["zz.tool"]
    assert completed_by_bash(shell_path, "org", "members") == ["zz.tool"]
    assert set(Path.cwd().iterdir()) == there
