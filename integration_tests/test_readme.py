from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rleaas.pytest_plugin import Platform

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(README.read_text()) if kind == language]


def test_the_readme_has_code_for_both_planes() -> None:
    code = blocks("python")
    assert any("rlmesh" in block for block in code)
    assert any("from rleaas import" in block for block in code)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_python_block_runs(number: int, rleaas_server: Platform, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
        env={**os.environ, **rleaas_server.environ},
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_the_commands_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for block in blocks("sh"):
        for line in block.splitlines():
            if words := re.match(r"make (\w+)", line):
                assert f"\n{words[1]}:" in makefile, line
            elif words := re.match(r"rleaas ([a-z]+(?: [a-z]+)?)", line):
                help_of = [sys.executable, "-m", "rleaas.cli.main", *words[1].split(), "--help"]
                assert subprocess.run(help_of, capture_output=True, check=False).returncode == 0, (
                    line
                )


def test_every_file_that_the_readme_links_to_is_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
