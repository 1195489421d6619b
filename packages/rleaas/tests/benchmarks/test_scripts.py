"""The load, kill and fleet scripts, in small: what they compare, not how fast it went."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def figures(script: str, *options: str, good: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), "--json", *options],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == good, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_crowd_is_served_without_an_error_and_repeated_creates_make_one_row_each() -> None:
    sizes = ("--requests", "100", "--clients", "300", "--seconds", "1", "--streams", "40")
    found = figures("load.py", "--engine", "sqlite", *sizes)

    assert found["get_environment_crowd"]["clients_served_to_the_end"] == 300
    assert found["creates"]["rows"] == {"tool": 13, "environment": 13, "agent": 12, "job": 12}
    assert found["event_streams"]["requests"] == 40
    told = found["get_environment_one_client"]
    assert told["target_p50_ms"] == 3.0
    assert told["verdict"] == ("met" if told["p50_ms"] < 3.0 else "missed")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_server_that_is_killed_again_and_again_keeps_its_word() -> None:
    lives = ("--kills", "3", "--longest", "0.7", "--light")
    found = figures("kill.py", "--engine", "sqlite", *lives)

    assert found["kills"] == 3
    assert found["cut_off"] > 0
    assert found["acknowledged"] > 0
    assert found["audit_records"] > 0
    assert found["events_read"] > 0
    assert found["jobs_that_ran"] > 0


def test_a_round_without_a_kill_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "kill.py"), "--kills", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "at least one kill" in done.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_servers_of_one_database_share_the_work_and_do_none_of_it_twice() -> None:
    found = figures("fleet.py", "--servers", "2", "--jobs", "6", "--no-kill")

    assert found["jobs"] == {"completed": 6}
    assert found["events_delivered"] > 6


@pytest.mark.slow
def test_verdicts_are_counted_by_kind() -> None:
    found = figures("verify.py", "--seconds", "0.05")

    assert found["worst_expression_seconds"] > 0
    assert found["rule_verdicts_per_second"] > found["whole_verdicts_per_second"] > 0


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_job_learns_the_very_same_as_its_library_alone_with_the_same_settings() -> None:
    # Twelve episodes are not enough for the target, which it says by its exit code.
    found = figures("train.py", "--only", "DQN", "--episodes", "12", "--seeds", "3", good=1)

    (row,) = found["rows"]
    assert row["episodes"] == 12
    assert row["same_curve"] is True
    assert row["mean_return"] == row["direct_return"]
    assert row["interval"][0] <= row["mean_return"] <= row["interval"][1]
    assert row["start_seconds"] > 0
    assert row["ratio"] == pytest.approx(row["seconds"] / row["direct_seconds"])
    assert row["met"] is False


def test_an_algorithm_without_a_reference_is_refused_by_name() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "train.py"), "--only", "PPO,DQNN"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no reference of DQNN" in done.stderr) == (2, True)
