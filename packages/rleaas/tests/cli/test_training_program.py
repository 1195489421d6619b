"""`python -m rleaas.training_cli`, `python -m rleaas.training` and `rleaas train`: one program."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rlcore import ConfigurationError, EnvironmentNotFound, TrainingJobFailed
from rleaas import Client
from rleaas.cli.main import main as rleaas
from rleaas.cli.training.program import main
from rleaas.server.local import LocalServer
from rleaas.server.store import environments, jobs
from rleaas.server.store.tables import OrganisationRow

from ..sdk.conftest import served  # noqa: TID252 - a server whose jobs take no time
from ..training.run_file.seed import CONFIG, LINES  # noqa: TID252 - the published lines
from .conftest import SETTINGS, Ran

ENVIRONMENT = "Demo-FinSim-Env-aks-Demo"


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with served(tmp_path_factory.mktemp("platform")) as server:
        with Client(base_url=server.url) as client:
            client.Environment.create(ENVIRONMENT, source="gym://CartPole-v1").wait_until_ready()
        yield server


@pytest.fixture(scope="module")
def job(platform: LocalServer) -> str:
    """A job that is complete, with a log and a checkpoint."""
    with Client(base_url=platform.url) as client:
        started = client.TrainingJob.run(ENVIRONMENT, name="first")
        return started.wait_until_complete(timeout=50, progress=False).id


Program = Callable[..., Ran]


@pytest.fixture
def program(
    platform: LocalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Program:
    """Run the program in a directory of the test's own."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLEAAS_CONFIG", str(tmp_path / "profiles.toml"))
    monkeypatch.setenv("RLEAAS_BASE_URL", platform.url)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> Ran:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


def write_config(*entries: dict[str, Any], **top: object) -> None:
    given = [{"environment_name": ENVIRONMENT, "episodes": 3, **one} for one in entries]
    Path("config.json").write_text(json.dumps({"training": given, **top}, indent=1))


def jobs_of(platform: LocalServer) -> list[str]:
    with Client(base_url=platform.url) as client:
        return [one.id for one in client.TrainingJob.list()]


def settled(platform: LocalServer) -> int:
    """How many jobs have not ended, when none runs any more or is about to."""
    with Client(base_url=platform.url) as client:
        while True:
            found = [one.status for one in client.TrainingJob.list()]
            if not {"pending", "running"} & set(found):
                return found.count("awaiting_human_eval")
            time.sleep(0.05)


def test_the_published_lines_run_as_they_are_written(
    program: Program, platform: LocalServer, job: str
) -> None:
    Path("rewards").mkdir()
    Path("rewards/finsim_reward.py").write_text("def reward(*_, **__):\n    return 1.0\n")
    example: Any = json.loads(CONFIG)["training"]
    five = [*example, *({**example[1], "training": n} for n in (3, 4, 5))]
    ran: dict[str, Ran] = {}
    for line in LINES.splitlines():
        if not line.startswith("python"):
            continue
        several = "start --" in line
        Path("config.json").write_text(json.dumps({"training": five if several else five[:1]}))
        words = shlex.split(line.replace("<job_id>", job))
        assert words[:3] == ["python", "-m", "rleaas.training_cli"]
        ran[line.partition("training_cli ")[2]] = program(*words[3:])

    unknown = ran.pop("status --job-id train_8f3a2b1c")
    assert (unknown.code, unknown.out) == (3, "")
    assert "error: Training job not found: 'train_8f3a2b1c'" in unknown.err
    over = ran.pop("cancel --job-id <job_id>")
    assert (over.code, over.out) == (1, "")  # it is complete already
    assert {line: one.code for line, one in ran.items()} == dict.fromkeys(ran, 0)
    assert len(ran) == 11
    first = ran["start"].out.splitlines()
    assert first[0] == "[training=1] Training started"
    assert [line.partition(":")[0] for line in first[1:]] == [
        *("job_id", "status", "environment", "algorithm")
    ]
    assert first[3:] == [f"environment: {ENVIRONMENT}", "algorithm: PPO"]
    assert ran["start --training 3,4,5"].out.count("Training started") == 3
    assert [line for line in ran["start --all"].out.splitlines() if "idx" in line] == [
        f"[training={n + 1} idx={n}] Training started" for n in range(5)
    ]
    assert ran["status --job-id <job_id>"].out.splitlines() == [
        f"job_id: {job}",
        "status: completed",
        f"environment: {ENVIRONMENT}",
        "progress: 100",
        "run_name: first",
        "algorithm: PPO",
    ]
    assert job in ran["list --ids-only"].out.splitlines()
    assert (
        f"{job} | status=completed | env={ENVIRONMENT} | algorithm=PPO | progress=100"
        in ran["list"].out.splitlines()
    )
    assert ran["wait --job-id <job_id>"].out == f"job_id: {job}\nfinal_status: completed\n"
    assert json.loads(ran["metrics --job-id <job_id>"].out)["job_id"] == job
    assert json.loads(ran["checkpoints --job-id <job_id>"].out)[0]["episode"] == 1
    assert ran["rollouts --job-id <job_id>"].out == f"No rollouts of {job}.\n"


# defect: L-1
# defect: L-2
def test_neither_a_key_nor_a_config_file_is_needed_where_none_is_used(
    program: Program, job: str
) -> None:
    assert not Path("config.json").exists()
    assert program("status", "--job-id", job).code == 0


# defect: L-2
def test_each_failure_is_a_sentence_on_stderr_with_a_code_of_its_own(
    program: Program, platform: LocalServer, job: str
) -> None:
    codes: dict[str, Ran] = {"no file": program("start")}
    for name, text in (
        ("bad json", "{"),
        ("wrong type", "[]"),
        ("null", '{"training": [{"training": 1, "config": null}]}'),
    ):
        Path("config.json").write_text(text)
        codes[name] = program("start")
    Path("config.json").unlink()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody answers there
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        codes["nobody"] = program("list", "--base-url", nowhere)
    codes["unknown job"] = program("metrics", "--job-id", "train_none")
    codes["no job"] = program("status")
    codes["no command"] = program()
    codes["wrong word"] = program("strat")

    assert {name: one.code for name, one in codes.items()} == {
        "no file": 10,
        "bad json": 10,
        "wrong type": 10,
        "null": 10,
        "nobody": 5,
        "unknown job": 3,
        "no job": 2,
        "no command": 2,
        "wrong word": 2,
    }
    for ran in codes.values():
        assert ran.out == ""
        assert "Traceback" not in ran.err
        assert "error: " in ran.err


# defect: L-7
def test_a_wait_says_by_its_code_how_the_job_ended(
    program: Program, platform: LocalServer, job: str
) -> None:
    def set_status(status: str) -> None:
        with platform.state.database.write(1) as session:
            jobs.find(session, jobs.TRAINING, job).status = status

    codes: dict[str, int] = {}
    for status in ("completed", "failed", "cancelled", "awaiting_human_eval", "running"):
        set_status(status)
        ran = program("wait", "--job-id", job, "--timeout", 0)
        codes[status] = ran.code
        over = "" if status == "running" else f"job_id: {job}\nfinal_status: {status}\n"
        assert ran.out == over
    set_status("completed")

    assert codes == {
        "completed": 0,
        "failed": 8,
        "cancelled": 6,
        "awaiting_human_eval": 7,
        "running": 9,
    }


# defect: L-3
def test_every_command_has_an_answer_for_programs(
    program: Program, platform: LocalServer, job: str
) -> None:
    write_config({"training": "a"}, {"training": 2, "name": "second"})

    started = program("start", "--all", "--json").json
    assert [one["training"] for one in started] == ["a", 2]
    assert started[1]["name"] == "second"
    assert {one["job_id"] for one in started} <= set(program("list", "--ids-only", "--json").json)
    assert program("--json", "status", "--job-id", job).json["job_id"] == job
    assert program("list", "--json").json[-1]["job_id"] == job
    assert program("wait", "--job-id", job, "--json").json["status"] == "completed"
    assert program("metrics", "--job-id", job, "--json").json["progress"] == 100
    assert [one["label"] for one in program("checkpoints", "--job-id", job, "--json").json]
    assert program("rollouts", "--job-id", job, "--json").json == []
    assert "one" in program("logs", "--job-id", job, "--json").json
    assert "one" in program("logs", "--job-id", job, "--follow", "--json").lines
    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "pending"
    assert program("cancel", "--job-id", job, "--json").json["job_id"] == job
    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "completed"


# defect: L-4
def test_options_of_every_command_count_before_and_behind_it(
    program: Program, platform: LocalServer, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_BASE_URL", "http://127.0.0.1:9")
    write_config({"training": 1})
    Path("config.json").rename("other.json")

    before = program("--base-url", platform.url, "--config", "other.json", "start", "--json")
    behind = program("start", "--json", "--config", "other.json", "--base-url", platform.url)
    mixed = program("--config", "none.json", "start", "--config", "other.json", "--api-key", "k")

    assert (before.code, behind.code) == (0, 0)
    assert mixed.code == 5  # the later --config counts; the server is the variable's


def test_the_server_and_the_key_may_be_in_the_config_file(
    program: Program, platform: LocalServer, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLEAAS_BASE_URL")
    write_config({"training": 1}, base_url=platform.url, api_key="rleaas_sk_1")

    assert program("status", "--job-id", job).code == 0
    assert program("start").code == 0
    Path("config.json").write_text("{")
    broken = program("status", "--job-id", job, "--base-url", platform.url)
    assert (broken.code, broken.err.count("warning: config.json:1:2")) == (0, 1)


# defect: L-6
def test_nothing_starts_where_anything_is_wrong(program: Program, platform: LocalServer) -> None:
    before = jobs_of(platform)
    write_config({"training": 1}, {"training": 2}, {"training": 3})
    refused = [
        program("start", "--training", "1,9"),
        program("start", "--training", "1,1"),
        program("start", "--training", "1,,2"),
        program("start", "--training", ""),
        program("start", "--index", 3),
        program("start", "--index", 0, "--all"),
    ]
    write_config({"training": 1}, {"training": 1}, {"training": 3, "max_steps": "x"})
    twins = program("start", "--training", "3")
    write_config({"training": 1}, {"training": 2, "environment_name": "Nowhere"})
    missing = program("start", "--all")

    assert [one.code for one in refused] == [2] * 6
    assert "no training 9; nothing was started" in refused[0].err
    assert twins.code == 10
    assert "config.json:11:16: training[1].training: '1' is the id of training[0]" in twins.err
    assert "training[2].max_steps: must be an integer above 0, got 'x'" in twins.err
    assert "config.json has 2 errors; nothing was started" in twins.err
    assert missing.code == 3
    assert "training[1].environment_name: Environment not found: 'Nowhere'" in missing.err
    assert jobs_of(platform) == before


# defect: L-6
def test_nothing_starts_where_the_platform_would_refuse_a_later_entry(
    program: Program, platform: LocalServer
) -> None:
    with Client(base_url=platform.url) as client:
        client.Environment.create("Pend", source="gym://Pendulum-v1").wait_until_ready()
        with platform.state.database.write(1) as session:
            pendulum = environments.find_version(session, "Pend", None)
            pendulum.contract = {
                "observation_space": {"kind": "BOX", "shape": [3], "dtype": "FLOAT32"},
                "action_space": {"kind": "BOX", "shape": [1], "dtype": "FLOAT32"},
            }
    before = jobs_of(platform)
    write_config(
        {"training": 1},
        {"training": 2, "scenario_id": "sx"},
        {"training": 3, "environment_name": "Pend", "algorithm": "DQN"},
        {"training": 4, "config": {"rollout_workers": 2}},
        {"training": 5, "agent_id": "agx", "verifier_ids": ["vx"], "priority": 5},
    )

    ran = program("start", "--all")

    lines = [line for line in ran.err.splitlines() if line.startswith("config.json:")]
    assert (ran.code, ran.out) == (3, "")
    assert [line.split(": ")[1] for line in lines] == [
        "training[1].scenario_id",
        "training[2].algorithm",
        "training[3].config.rollout_workers",
        "training[4].agent_id",
        "training[4].verifier_ids",
    ]
    text = Path("config.json").read_text().splitlines()
    for line, key in zip(lines, ("sx", "DQN", "rollout", "agx", "["), strict=True):
        _, row, column = line.partition(": ")[0].split(":")
        assert text[int(row) - 1][int(column) - 1 :].lstrip('"').startswith(key)
    assert "DQN" in lines[1]
    assert "; nothing was started" in ran.err
    assert jobs_of(platform) == before


def test_nothing_starts_where_a_quota_has_no_room_for_all_of_it(
    program: Program, platform: LocalServer
) -> None:
    def limit(limits: dict[str, object]) -> None:
        with platform.state.database.write(1) as session:
            session.get_one(OrganisationRow, 1).limits = limits

    used = settled(platform)
    write_config(*({"training": number} for number in range(1, 5)))
    limit({"jobs": used + 2})
    try:
        ran = program("start", "--all")
        fits = program("start", "--training", "1,2")
    finally:
        limit({})

    lines = [line for line in ran.err.splitlines() if line.startswith("config.json:")]
    assert [line.split(": ")[1] for line in lines] == ["training[2]", "training[3]"]
    said = f"the quota 'jobs' is {used + 2}; {used} are used and 3 more were asked for"
    assert said in lines[0]
    assert (ran.code == 0, ran.out) == (False, "")
    assert "; nothing was started" in ran.err
    assert (fits.code, fits.out.count("Training started")) == (0, 2)


def test_a_platform_without_the_check_is_asked_for_what_the_entries_name(
    program: Program, platform: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rleaas.resources.training import TrainingClient

    def no_such_route(self: Any, *args: Any, **given: Any) -> Any:
        if self is not None:
            raise EnvironmentNotFound(ENVIRONMENT, status_code=404, body={"detail": "Not Found"})
        yield  # a flow is a generator

    monkeypatch.setattr(vars(TrainingClient)["check"], "flow", no_such_route)
    write_config({"training": 1}, {"training": 2, "scenario_id": "sx"})

    refused = program("start", "--all")
    started = program("start", "--training", 1)

    assert (refused.code, refused.out, started.code) == (3, "", 0)
    assert "training[1].scenario_id: Scenario not found: 'sx'" in refused.err


# defect: L-9
def test_several_entries_without_a_selector_are_listed(program: Program) -> None:
    write_config({"training": 1}, {"training": "night"})

    ran = program("start")

    assert (ran.code, ran.out) == (2, "")
    assert "config.json has 2 trainings: 1, night" in ran.err
    assert "--training 1" in ran.err


# defect: L-8
def test_a_limit_of_lines_is_kept_and_a_module_warns_of_nothing(
    program: Program, platform: LocalServer, job: str
) -> None:
    limited = program("logs", "--job-id", job, "--limit", 2)
    followed = program("logs", "--job-id", job, "--limit", 2, "--follow", "--poll-interval", 0.1)
    module = subprocess.run(
        [sys.executable, "-W", "error", "-m", "rleaas.training", "status", "--job-id", job],
        env={**os.environ, "RLEAAS_BASE_URL": platform.url},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert len(limited.out.splitlines()) == 2
    assert followed.out == limited.out
    assert (module.returncode, module.stderr) == (0, "")
    assert module.stdout.startswith(f"job_id: {job}\n")


def test_rleaas_train_is_the_same_program(
    program: Program, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = program("status", "--job-id", job)

    assert rleaas(["train", "status", "--job-id", job]) == 0
    assert capsys.readouterr().out == ours.out
    assert rleaas(["train", "--json", "status", "--job-id", "train_none"]) == 3
    assert rleaas(["train", "start", "--index", "x"]) == 2
    assert "see `rleaas train start --help`" in capsys.readouterr().err
    assert rleaas(["train", "wait", "--help"]) == 0
    assert "usage: rleaas train wait" in capsys.readouterr().out


def test_what_runs_is_said_when_a_later_start_fails(
    program: Program, platform: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config({"training": 1}, {"training": 2}, {"training": 3})
    from rleaas.resources.training import TrainingClient

    run: Any = vars(TrainingClient)["run"]  # its flow is for every driver
    real: Any = run.flow
    seen: list[object] = []

    def second_fails(self: Any, *args: Any, **given: Any) -> Any:
        seen.append(given)
        if len(seen) == 2:
            raise TrainingJobFailed("none", "the platform fell over")
        return cast("Any", (yield from real(self, *args, **given)))

    monkeypatch.setattr(run, "flow", second_fails)

    ran = program("start", "--all")

    (first,) = [line for line in ran.out.splitlines() if line.startswith("job_id")]
    assert ran.code == 8
    assert len(seen) == 2
    running = f"running: training 1 is job {first.removeprefix('job_id: ')}\n"
    assert running in ran.err
    assert "not started: training 2, 3\n" in ran.err


def test_a_tracker_that_the_server_has_not_is_refused_before_anything_starts(
    program: Program, platform: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = jobs_of(platform)
    monkeypatch.setattr("rleaas.training.tracking.settings.find_spec", {"wandb": None}.get)
    write_config({"training": 1, "config": {"tracking": {"wandb": {"mode": "offline"}}}})

    ran = program("start")

    assert (ran.code, ran.out) == (2, "")
    assert "tracking by wandb needs packages that the server does not have" in ran.err
    assert jobs_of(platform) == before


def test_a_ctrl_c_ends_a_wait_and_leaves_the_job(platform: LocalServer, job: str) -> None:
    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "running"
    waiting = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import sys; from rleaas.training_cli import main; import rleaas;"
            "client = rleaas.Client(); print('ready', flush=True); sys.exit(main())",
            *("wait", "--job-id", job, "--poll-interval", "0.1"),
        ],
        env={**os.environ, "RLEAAS_BASE_URL": platform.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    try:
        waiting.communicate(timeout=1.0)
    except subprocess.TimeoutExpired:
        waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=50)
    with platform.state.database.write(1) as session:
        jobs.find(session, jobs.TRAINING, job).status = "completed"

    assert (waiting.returncode, err) == (130, f"job {job} goes on\nerror: interrupted\n")


class Recorder:
    """A client that notes what it is asked to run."""

    def __init__(self) -> None:
        self.ran: list[dict[str, Any]] = []
        self.TrainingJob = self

    def run(self, **given: Any) -> dict[str, Any]:
        self.ran.append(given)
        return given


def test_the_helpers_of_the_published_module_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rleaas.training

    published: Any = rleaas.training  # names that no type checker sees
    monkeypatch.chdir(tmp_path)
    write_config({"training": 1, "config": {"gamma": 0.9}}, {"training": 2, "agent_id": "a"})
    client = Recorder()
    config = published._load_json("config.json")
    entries = published._resolve_training_entries(config)
    published._start_one(client, entries[1])
    published._cmd_start(
        SimpleNamespace(config="config.json", training="1", index=None, all=False), client
    )
    with pytest.raises(ConfigurationError, match="has no training 9"):
        published._cmd_start(SimpleNamespace(config="config.json", training="9"), client)

    assert client.ran == [
        {
            "environment_name": ENVIRONMENT,
            "algorithm": "PPO",
            "config": {"episodes": 3, "max_steps": 200},
            "agent_id": "a",
        },
        {
            "environment_name": ENVIRONMENT,
            "algorithm": "PPO",
            "config": {"gamma": 0.9, "episodes": 3, "max_steps": 200},
        },
    ]


def test_the_helpers_and_the_help_load_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from rleaas.training import _cmd_start, _load_json, _start_one\n"
        "from rleaas.training import _resolve_training_entries\n"
        "from rleaas.training_cli import main\n"
        "main(['--help'])\n"
        "heavy = {'httpx', 'pydantic', 'typer', 'rich', 'numpy', 'torch', 'rlmesh', 'gymnasium'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True
    )
    assert ran.stderr.strip() == "[]"


def test_a_config_is_checked_without_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    write_config({"training": 1}, {"training": 2})
    assert rleaas(["config", "check"]) == 0
    assert capsys.readouterr().out == "config.json is good; its trainings are 1, 2.\n"

    write_config({"training": 1, "max_steps": -1, "config": {"max_steps": 3}})
    assert rleaas(["config", "check", "config.json"]) == 10
    out = capsys.readouterr().out
    assert "config.json:7:17: training[0].max_steps: must be an integer above 0, got -1\n" in out
    assert rleaas(["config", "check", "config.json", "--json"]) == 10
    told = json.loads(capsys.readouterr().out)
    assert told["errors"][0]["path"] == "training[0].max_steps"
    assert (told["errors"][0]["line"], told["errors"][0]["column"]) == (7, 17)


def test_of_thousands_of_errors_and_ids_the_first_fifty_are_shown_and_the_rest_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_config(*({"training": n} for n in range(200)))
    assert rleaas(["config", "check"]) == 0
    assert capsys.readouterr().out.endswith(" 48, 49 and 150 more.\n")
    assert main(["start"]) == 2
    assert ", 49 and 150 more" in capsys.readouterr().err

    write_config(*({"training": n, "max_steps": 0} for n in range(200)))
    assert rleaas(["config", "check"]) == 10
    out = capsys.readouterr().out.splitlines()
    assert main(["start", "--all"]) == 10
    err = capsys.readouterr().err.splitlines()
    assert rleaas(["config", "check", "--json"]) == 10
    every = json.loads(capsys.readouterr().out)["errors"]

    more = "… and 150 more errors; `rleaas config check --json` has all"
    assert (len(out), out[50:]) == (52, [more, "config.json has 200 errors."])
    assert (len(err), err[50]) == (53, more)
    assert len(every) == 200


def test_no_escape_sequence_of_a_config_reaches_the_terminal(
    program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sharp = "\x1b[2J\u202e"
    write_config({"training": sharp}, {"training": 2, f"x{sharp}": 1}, **{f"top{sharp}": 1})
    said = program("start", "--all")
    assert rleaas(["config", "check"]) == 10
    checked, _ = capsys.readouterr()
    write_config({"training": sharp})
    assert rleaas(["config", "check"]) == 0
    good, _ = capsys.readouterr()
    started = program("start", "--index", 0)

    assert (said.code, started.code) == (10, 0)
    everything = said.out + said.err + checked + good + started.out + started.err
    assert [one for one in everything if not one.isprintable() and one != "\n"] == []
    assert "its trainings are \\x1b[2J\\u202e.\n" in good
    assert "[training=\\x1b[2J\\u202e]" in started.out
    assert "\\u001b[2J\\u202e" in checked
