"""A server stays well under all the attacks that are known, for as long as one likes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "fuzz" / "fuzz_server.py"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_server_survives_every_attack_and_a_few_seconds_of_all_of_them() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--seconds", "4", "--seed", str(os.getpid())],
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout


def test_an_attack_that_is_not_there_is_named() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--only", "nothing"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no attack 'nothing'" in done.stderr
