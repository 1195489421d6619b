from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rleaas.cli.main import main

if TYPE_CHECKING:
    from integration_tests.conftest import Processes

QUICKSTART = ("-m", "rleaas.cli.main", "quickstart")
SHORT = ("--episodes", "40", "--seeds", "5")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_main_job_ends_with_a_good_policy_and_agreeing_episodes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["quickstart", "--out", str(tmp_path)]) == 0
    told = capfd.readouterr().out
    assert "agree on all 50 episodes" in told
    assert "mean return" in told
    assert "\x1b" not in told  # not a terminal: plain lines

    report = json.loads((tmp_path / "report.json").read_text())
    platform, local = report["platform"], report["local"]
    assert (platform["asked"], platform["scored"], platform["failed"]) == (50, 50, 0)
    assert (local["asked"], local["scored"], local["failed"]) == (50, 50, 0)
    assert [e["reward"] for e in platform["episodes"]] == [e["reward"] for e in local["episodes"]]
    low, high = platform["return_interval"]
    assert low <= platform["mean_return"] <= high <= 500
    assert platform["mean_return"] >= 475

    identity = report["environment"]
    assert local["environment"] == identity
    for record in (report["training"], report["checkpoint"], platform):
        assert record["environment_name"] == identity["name"]
        assert record["environment_version"] == identity["version"]
        assert record["contract_digest"] == identity["contract_digest"]
    assert platform["checkpoint_sha256"] == report["checkpoint"]["sha256"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_it_can_be_run_again_in_the_same_folder_and_speaks_json(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert main(["quickstart", "--out", str(tmp_path), *SHORT, "--json"]) == 0
        told = capfd.readouterr()
        report = json.loads(told.out)
        assert report["agrees"] is True
        assert len(report["platform"]["episodes"]) == 5
        assert "Compare, episode by episode" in told.err


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "moment", ["Start a server", "Register", "Train PPO", "training ", "Evaluate", "Run it here"]
)
@pytest.mark.parametrize("to_group", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_at_any_moment_leaves_no_process(
    moment: str,
    to_group: bool,
    tmp_path: Path,
    processes: Processes,
    eventually: Callable[..., None],
) -> None:
    quickstart = processes.spawn(
        *("-u", *QUICKSTART, "--out", str(tmp_path), "--seeds", "50", "--episodes", "250"),
    )
    assert quickstart.stdout is not None
    said = ""
    while moment not in said:
        line = quickstart.stdout.readline()
        assert line, f"it ended before {moment!r}, having said {said!r}"
        said += line
    # Ctrl-C in a terminal goes to the whole foreground group, `kill` to one process.
    (os.killpg if to_group else os.kill)(quickstart.pid, signal.SIGINT)
    rest = quickstart.stdout.read()
    assert quickstart.wait(timeout=30) == 130, said + rest
    assert "error: interrupted" in rest
    assert "Traceback" not in rest
    eventually(lambda: not processes.marked(), "every process is gone", seconds=5)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_killed_quickstart_takes_its_processes_with_it(
    tmp_path: Path, processes: Processes, eventually: Callable[..., None]
) -> None:
    quickstart = processes.spawn("-u", *QUICKSTART, "--out", str(tmp_path))
    assert quickstart.stdout is not None
    while "training " not in (line := quickstart.stdout.readline()):
        assert line, "it ended before it trained"
    assert len(processes.marked()) > 1
    quickstart.kill()
    quickstart.wait(timeout=10)
    eventually(lambda: not processes.marked(), "every process is gone", seconds=20)


def test_a_server_that_is_not_there_is_a_clear_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["quickstart", "--base-url", "http://127.0.0.1:9", "--out", str(tmp_path)])
    assert code == 5
    assert capfd.readouterr().err.startswith("error: ")
