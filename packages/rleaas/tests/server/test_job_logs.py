"""The log of a job stays within bounds, whoever writes to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rleaas.server.job_logs import JobLogs
from rleaas.training import log_bound
from rleaas.training.log_bound import FULL, LONGEST_LINE, bound

FLOOD = """
import time
from rleaas.training import log_bound
log_bound._EVERY_SECONDS = 0.02
log_bound.bound_own_output()
end = time.monotonic() + 0.5
while time.monotonic() < end:
    print("x" * 65536, flush=True)
time.sleep(0.3)
print("the end", flush=True)
time.sleep(0.3)
"""


def test_a_worker_that_prints_without_end_leaves_a_bounded_log_that_says_so(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    with logs.open("job_1") as output:
        subprocess.run([sys.executable, "-c", FLOOD], stdout=output, check=True, timeout=50)
    lines = logs.tail("job_1")

    assert logs.path("job_1").stat().st_size < log_bound.MOST_LOG_BYTES + 100
    assert logs.tail("job_1", 1) == lines[-1:] == [FULL]


def test_reported_lines_end_at_the_bound_and_positions_before_it_stay_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def early(file: int) -> bool:
        return bound(file, 1_000)

    monkeypatch.setattr("rleaas.server.job_logs.bound", early)
    logs = JobLogs(tmp_path)
    logs.append("job_1", ["first"])
    cursor = logs.after("job_1", 0, finished=False).cursor
    for number in range(200):
        logs.append("job_1", [f"line {number}"])

    part = logs.after("job_1", cursor, finished=True)
    assert logs.path("job_1").stat().st_size == 1_000 + len(FULL) + 2
    assert (part.lines[0], part.lines[-1]) == ("line 0", FULL)
    assert logs.tail("job_1") == ["first", *part.lines]


def test_what_is_no_file_is_not_cut() -> None:
    command = [
        sys.executable,
        "-c",
        "from rleaas.training.log_bound import bound_own_output as b; b()",
    ]

    assert subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=50).stdout == b""


def test_a_long_line_is_cut_with_a_mark(tmp_path: Path) -> None:
    logs = JobLogs(tmp_path)
    logs.append("job_1", ["r" * (LONGEST_LINE + 5)])
    with logs.open("job_1") as output:
        os.write(output.fileno(), b"p" * (LONGEST_LINE + 7) + b"\n")

    reported, printed = logs.tail("job_1")

    assert reported == "r" * (LONGEST_LINE - 100) + " [… 105 more characters]"
    assert printed == "p" * (LONGEST_LINE - 100) + " [… 107 more characters]"


@pytest.mark.parametrize("limit", [1, 5, 60_000, 10**9])
def test_the_last_lines_are_those_of_the_whole_log(tmp_path: Path, limit: int) -> None:
    logs = JobLogs(tmp_path)
    logs.append("job_1", [f"line {number} {'é' * 5}" for number in range(50_000)])

    assert logs.tail("job_1", limit) == logs.tail("job_1")[-limit:]
    assert logs.tail("job_1", 0) == []
