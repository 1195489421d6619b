"""What went wrong on the published command line, on ours."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta

import pytest
from rlcore import TrainingJobCancelled
from rleaas import Client
from rleaas.server.local import LocalServer
from rleaas.server.store import jobs

from .conftest import Cli


@pytest.fixture(scope="module")
def job(platform: LocalServer) -> str:
    """A job that was cancelled, with a log of three lines."""
    with Client(base_url=platform.url) as client:
        client.Environment.create("E", source="gym://CartPole-v1")
        started = client.TrainingJob.run("E")
        started.cancel()
        with pytest.raises(TrainingJobCancelled):
            started.wait_until_complete(timeout=30, progress=False)
    platform.state.logs.append(started.id, ["one", "two", "three"])
    return started.id


# defect: L-1
def test_a_local_server_needs_no_key(cli: Cli) -> None:
    assert cli("job", "list").code == 0


# defect: L-2
def test_no_file_is_needed_and_what_fails_is_one_line_with_a_code_of_its_own(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody answers there
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        gone = cli("job", "status", "job_none", "--base-url", nowhere)
    unknown = cli("job", "status", "job_none")
    wrong = cli("job", "start", "E", "--config-json", "{")

    assert (unknown.code, wrong.code, gone.code) == (3, 2, 5)
    for ran in (unknown, wrong, gone):
        assert "Traceback" not in ran.err
        assert [line for line in ran.err.splitlines() if line.startswith("error: ")]


# defect: L-3
def test_errors_are_on_stderr_and_answers_can_be_read_by_programs(cli: Cli, job: str) -> None:
    failed = cli("job", "status", "job_none", "--json")
    told = cli("job", "status", job, "--json")

    assert (failed.out, failed.err[:6]) == ("", "error:")
    assert json.loads(told.out)["status"] == "cancelled"
    assert told.err == ""


# defect: L-4
def test_a_server_is_named_behind_the_command(
    cli: Cli, platform: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_BASE_URL", "http://127.0.0.1:9")

    assert cli("job", "list", "--base-url", platform.url, "--api-key", "").code == 0


# defect: L-7
def test_a_wait_says_by_its_code_how_the_job_ended(
    cli: Cli, platform: LocalServer, job: str
) -> None:
    codes: dict[str, int] = {}
    for status in ("completed", "failed", "cancelled", "awaiting_human_eval"):
        with platform.state.database.write(1) as session:
            jobs.find(session, jobs.TRAINING, job).status = status
        codes[status] = cli("job", "wait", job).code

    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "cancelled"
    assert codes == {"completed": 0, "failed": 8, "cancelled": 6, "awaiting_human_eval": 7}


def test_the_queue_says_who_waits_for_what(cli: Cli, platform: LocalServer, job: str) -> None:
    empty = cli("job", "queue")
    with platform.state.database.write(1) as session:
        row = jobs.find(session, jobs.TRAINING, job)
        # Later than any scheduler gives it out in this test.
        row.status, row.not_before = "pending", datetime.now(UTC) + timedelta(hours=1)
        row.priority = 7
    table, told = cli("job", "queue").out, json.loads(cli("job", "queue", "--json").out)
    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "cancelled"

    assert (empty.code, empty.out + empty.err) == (0, "No training job waits; running: 0 of 2.\n")
    assert job in table
    assert (told["waiting"], told["running"], told["max_jobs"]) == (1, 0, 2)
    (waits,) = told["queue"]
    assert (waits["job_id"], waits["position"], waits["priority"]) == (job, 1, 7)


# defect: L-8
def test_a_limit_of_lines_is_kept(cli: Cli, job: str) -> None:
    assert cli("job", "logs", job, "--limit", "2").out.splitlines()[-2:] == ["two", "three"]
    assert cli("job", "logs", job, "--limit", "2", "--follow").out.splitlines() == ["two", "three"]
