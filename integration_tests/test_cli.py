from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rleaas.server.local import LocalServer

    from integration_tests.conftest import Commands, Processes

ALL_COMMANDS = (
    (),
    ("quickstart",),
    ("serve",),
    ("ping",),
    ("version",),
    ("env",),
    *(("env", verb) for verb in ("create", "get", "list", "delete", "endpoint")),
    ("job",),
    *(("job", verb) for verb in ("start", "status", "list", "logs", "metrics", "cancel")),
    *(("job", verb) for verb in ("wait", "checkpoints")),
    ("eval",),
    *(("eval", verb) for verb in ("run", "report", "list")),
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.parametrize("command", ALL_COMMANDS, ids=" ".join)
def test_every_command_explains_itself(rleaas: Commands, command: tuple[str, ...]) -> None:
    told = rleaas(*command, "--help")
    assert told.returncode == 0, told.stderr
    assert " ".join(("Usage: rleaas", *command)) in " ".join(told.stdout.split())


def test_ping_says_which_server_answered(rleaas: Commands, server: LocalServer) -> None:
    told = rleaas("ping")
    assert told.returncode == 0, told.stderr
    assert server.url in told.stdout


def test_an_environment_is_created_shown_listed_dialled_and_deleted(rleaas: Commands) -> None:
    created = rleaas("env", "create", "Cli-CartPole", "--source", "gym://CartPole-v1", "--json")
    assert created.returncode == 0, created.stderr
    record = json.loads(created.stdout)
    assert (record["status"], record["source"]) == ("ready", "gym://CartPole-v1")

    shown = rleaas("env", "get", "Cli-CartPole", "--json")
    assert json.loads(shown.stdout)["contract_digest"] == record["contract_digest"]
    assert "Cli-CartPole" in rleaas("env", "list").stdout

    endpoint = json.loads(rleaas("env", "endpoint", "Cli-CartPole", "--json").stdout)
    assert endpoint["contract_digest"] == record["contract_digest"]
    plain = rleaas("env", "endpoint", "Cli-CartPole")
    assert endpoint["address"] in plain.stdout
    assert endpoint["token"] not in plain.stdout

    assert rleaas("env", "delete", "Cli-CartPole", "--yes").returncode == 0
    gone = rleaas("env", "get", "Cli-CartPole")
    assert gone.returncode == 3
    assert gone.stderr.startswith("error: Environment not found: 'Cli-CartPole'\nhint: ")


def test_a_job_is_trained_followed_evaluated_and_reported(
    rleaas: Commands, quick_ppo: dict[str, object]
) -> None:
    assert rleaas("env", "create", "Cli-Train", "--source", "gym://CartPole-v1").returncode == 0
    started = rleaas(
        *("job", "start", "Cli-Train", "--episodes", "6", "--seed", "3"),
        *("--config-json", json.dumps(quick_ppo), "--config", "checkpoint_interval=3"),
        *("--wait", "--poll-interval", "0.2", "--json"),
    )
    assert started.returncode == 0, started.stderr
    job = json.loads(started.stdout)
    assert (job["status"], job["config"]["seed"]) == ("completed", 3)

    job_id = job["job_id"]
    assert json.loads(rleaas("job", "status", job_id, "--json").stdout)["progress"] == 100
    assert job_id in rleaas("job", "list", "--status", "completed").stdout
    assert rleaas("job", "logs", job_id).stdout.strip()
    assert json.loads(rleaas("job", "metrics", job_id, "--json").stdout)
    assert rleaas("job", "wait", job_id).returncode == 0

    checkpoints = json.loads(rleaas("job", "checkpoints", job_id, "--json").stdout)
    evaluated = rleaas("eval", "run", checkpoints[-1]["id"], "--seeds", "3,5,8", "--json")
    assert evaluated.returncode == 0, evaluated.stderr
    report = json.loads(evaluated.stdout)
    assert [episode["seed"] for episode in report["episodes"]] == [3, 5, 8]
    assert (report["asked"], report["scored"], report["failed"]) == (3, 3, 0)

    shown = rleaas("eval", "report", report["id"])
    assert "3 asked, 3 scored, 0 failed" in shown.stdout
    assert report["id"] in rleaas("eval", "list").stdout


def test_wrong_usage_exits_with_2(rleaas: Commands) -> None:
    for arguments in (
        ("env", "create"),
        ("nonsense",),
        ("job", "start", "X", "--config", "gamma"),
        ("env", "create", "X", "--source", "gym://CartPole-v1", "--kwargs-json", "[1]"),
        ("eval", "run", "X", "--seeds", "5:5"),
        ("ping", "--base-url", "ftp://nowhere"),
    ):
        told = rleaas(*arguments)
        assert told.returncode == 2, (arguments, told.stdout, told.stderr)
        assert told.stderr.startswith("error: ")
        assert "Traceback" not in told.stderr


def test_a_server_that_is_not_there_exits_with_5(rleaas: Commands) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else can answer there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        told = rleaas("ping", "--base-url", url)
    assert told.returncode == 5
    assert told.stderr.startswith("error: ")
    assert url in told.stderr
    assert "\nhint: Start a server with `rleaas serve`" in told.stderr


def test_serve_says_where_it_is_and_ends_on_interrupt(
    processes: Processes, tmp_path: object
) -> None:
    import signal

    server = processes.spawn(
        "-m", "rleaas.cli.main", "serve", "--port", "0", "--data", str(tmp_path)
    )
    assert server.stdout is not None
    said = ""
    while "http://" not in said or str(tmp_path) not in said:
        line = server.stdout.readline()
        assert line, f"it ended, having said {said!r}"
        said += line
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=20) in (0, 130)
    assert "Traceback" not in server.stdout.read()
    assert processes.marked() == {}
