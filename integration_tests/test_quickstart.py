from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rlcore import TrainingJobCancelled
from rleaas.cli.main import main

if TYPE_CHECKING:
    from rleaas import Client
    from rleaas.server.local import LocalServer

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
    assert 475 <= platform["mean_return"] <= 500
    if len({e["reward"] for e in platform["episodes"]}) > 1:
        low, high = platform["return_interval"]
        assert low <= platform["mean_return"] <= high
    else:  # what does not differ tells nothing of how much it might
        assert platform["return_interval"] is None

    identity = report["environment"]
    assert local["environment"] == identity
    for record in (report["training"], report["checkpoint"], platform):
        assert record["environment_name"] == identity["name"]
        assert record["environment_version"] == identity["version"]
        assert record["contract_digest"] == identity["contract_digest"]
    assert platform["checkpoint_sha256"] == report["checkpoint"]["sha256"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_in_a_world_a_trained_agent_keeps_the_rule_that_a_random_one_breaks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--vertical", "finsim", "--episodes", "2000", "--seeds", "2", "--out", str(tmp_path))
    code = main(["quickstart", *words, "--json"])
    told = capfd.readouterr()
    report = json.loads(told.out)

    assert code == (1 if report["shortcomings"] else 0)
    assert "aml_compliance_rate" in told.err
    random, trained = (
        report[who]["verifier_breakdown"]["finsim_aml_check"] for who in ("random", "trained")
    )
    assert random["pass_rate"] <= 0.2
    assert random["pass_interval"][1] < trained["pass_interval"][0]
    for who in ("random", "trained"):
        assert report[who]["scored"] == report[who]["asked"] == 38
        assert report[who]["scenario_suite_id"] == "suite_eval_01"
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


MOMENTS = (
    ("Start a server", "1500"),
    ("Register", "1500"),
    ("Train PPO", "1500"),
    ("training: ", "1500"),
    ("Evaluate", "10"),
    ("Run it here", "10"),
)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("moment", "episodes"), MOMENTS, ids=[moment for moment, _ in MOMENTS])
def test_an_interrupt_at_any_moment_leaves_no_process(
    moment: str,
    episodes: str,
    tmp_path: Path,
    processes: Processes,
    eventually: Callable[..., None],
) -> None:
    quickstart = processes.spawn("-u", *QUICKSTART, "--out", str(tmp_path), "--episodes", episodes)
    said = read_until(moment, quickstart)
    # Ctrl-C in a terminal goes to the whole foreground group.
    os.killpg(quickstart.pid, signal.SIGINT)
    ends_interrupted(quickstart, said)
    eventually(lambda: not processes.marked(), "every process is gone", seconds=5)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_being_told_to_end_cleans_up_as_an_interrupt_does(
    number: signal.Signals, tmp_path: Path, processes: Processes, eventually: Callable[..., None]
) -> None:
    quickstart = processes.spawn("-u", *QUICKSTART, "--out", str(tmp_path))
    said = read_until("Train PPO", quickstart)
    quickstart.send_signal(number)
    ends_interrupted(quickstart, said)
    eventually(lambda: not processes.marked(), "every process is gone", seconds=5)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_an_interrupted_quickstart_cancels_its_job_on_a_server_that_goes_on(
    tmp_path: Path, processes: Processes, server: LocalServer, client: Client
) -> None:
    quickstart = processes.spawn(
        *("-u", *QUICKSTART, "--out", str(tmp_path), "--base-url", server.url)
    )
    said = read_until("training: ", quickstart)
    (job,) = client.TrainingJob.list(status="running")
    quickstart.send_signal(signal.SIGINT)
    ends_interrupted(quickstart, said)
    with pytest.raises(TrainingJobCancelled):
        job.wait_until_complete(timeout=30)


def read_until(text: str, process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    while text not in said:
        line = process.stdout.readline()
        assert line, f"it ended before {text!r}, having said {said!r}"
        said += line
    return said


def ends_interrupted(process: subprocess.Popen[str], said: str) -> None:
    assert process.stdout is not None
    said += process.stdout.read()
    assert process.wait(timeout=30) == 130, said
    assert said.endswith("error: interrupted\n"), said
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_killed_quickstart_takes_its_processes_with_it(
    tmp_path: Path, processes: Processes, eventually: Callable[..., None]
) -> None:
    quickstart = processes.spawn("-u", *QUICKSTART, "--out", str(tmp_path))
    read_until("training: ", quickstart)
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
