from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rleaas.pytest_plugin import Platform

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples_and_each_is_short() -> None:
    assert EXAMPLES
    assert [path.name for path in EXAMPLES if len(path.read_text().splitlines()) >= 80] == []


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path: Path, rleaas_server: Platform) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", str(path)],
        capture_output=True,
        text=True,
        timeout=220,
        env={**os.environ, **rleaas_server.environ, "EPISODES": "800"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    assert "Traceback" not in run.stderr
