"""Workers that nobody watches end themselves over their limits, with all that they started."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest
from rleaas.training.own_limits import EXIT_CODES, limits_text

WATCHED = "import sys; from rleaas.training.own_limits import watch_own_limits as watch; "
HOARD = WATCHED + "import time; watch(sys.argv[1]); hoard = bytearray(120 * 2**20); time.sleep(60)"
PARENT = (
    WATCHED + "import subprocess, time; child = subprocess.Popen([sys.executable, '-c', "
    "'import time; time.sleep(60)'], start_new_session=True); print(child.pid, flush=True); "
    "watch(sys.argv[1]); time.sleep(60)"
)


def ended(code: str, limits: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(limits)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_a_worker_with_too_much_memory_ends_itself_and_says_how_much() -> None:
    done = ended(HOARD, limits_text(memory_bytes=100 * 2**20, processes=None))

    assert done.returncode == EXIT_CODES["memory_bytes"]
    assert "its limit is 100 MiB" in done.stderr


def test_a_worker_with_too_many_processes_ends_them_too() -> None:
    done = ended(PARENT, limits_text(memory_bytes=None, processes=1))

    assert done.returncode == EXIT_CODES["processes"]
    assert "it had 2 processes: its limit is 1" in done.stderr
    child = int(done.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    "limits",
    [
        limits_text(memory_bytes=2**50, processes=10_000),
        limits_text(memory_bytes=None, processes=None),
    ],
)
def test_a_worker_within_its_limits_goes_on(limits: str | None) -> None:
    rests = WATCHED + "import time; watch(None if sys.argv[1] == 'None' else sys.argv[1]); "
    done = ended(rests + "time.sleep(1); print('done')", limits)

    assert (done.returncode, done.stdout) == (0, "done\n")
