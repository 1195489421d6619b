"""Jobs, evaluations and what they leave, from the command line; workers follow a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rleaas.cli.main import main

from .archives import policy_file
from .conftest import Running, Start

Cli = Callable[..., tuple[int, str, str]]
EPISODES: list[tuple[str, dict[str, object]]] = [
    (
        "episode",
        {"index": seed, "seed": seed, "steps": 3, "reward": float(seed), "outcome": "success"},
    )
    for seed in range(3)
]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    for name in ("RLEAAS_API_KEY", "RLEAAS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RLEAAS_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def parsed(ran: tuple[int, str, str]) -> Any:
    code, out, err = ran
    assert code == 0, err
    return json.loads(out)


def use(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLEAAS_BASE_URL", running.server.url)


def test_a_job_is_started_followed_and_looked_at(
    cli: Cli, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running = start(
        plan=[
            ("metric", {"episode": 5, "timestep": 50, "avg_reward": 1.5}),
            ("checkpoint", {"episode": 5, "avg_reward": 1.5, "content": "policy"}),
            ("completed", {"results": {"avg_reward": 1.5}}),
        ]
    )
    use(running, monkeypatch)
    running.ready()

    job = parsed(cli("job", "start", "CartPole", "--seed", 1, "--wait", "--json"))
    id = job["job_id"]
    assert (job["status"], job["results"]["avg_reward"]) == ("completed", 1.5)
    assert parsed(cli("job", "get", id, "--json")) == parsed(
        cli("train", "status", "--job-id", id, "--json")
    )
    assert [one["job_id"] for one in parsed(cli("job", "list", "--json"))] == [id]
    assert parsed(cli("job", "list", "--status", "failed", "--json")) == []
    assert parsed(cli("job", "metrics", id, "--json"))[0]["avg_reward"] == 1.5
    (checkpoint,) = parsed(cli("job", "checkpoints", id, "--json"))
    assert checkpoint["episode"] == 5
    assert cli("job", "rollouts", id)[1] == "No rollouts.\n"
    assert cli("job", "wait", id)[0] == 0

    code, said, _ = cli("job", "logs", id, "--follow")
    assert (code, "working on" in said) == (0, True)
    followed = [
        json.loads(line) for line in cli("job", "logs", id, "--follow", "--json")[1].splitlines()
    ]
    assert followed == said.splitlines()
    assert parsed(cli("job", "logs", id, "--json")) == followed
    assert parsed(cli("job", "logs", id, "--limit", 1, "--json")) == followed[-1:]

    events = [json.loads(line) for line in cli("job", "events", id, "--json")[1].splitlines()]
    assert events[-1]["kind"] == "completed"
    assert len(cli("job", "events", id, "--follow")[1].splitlines()) == len(events)
    only = cli("job", "events", id, "--kind", "completed")[1].splitlines()
    assert len(only) == 1
    after = cli("job", "events", id, "--after", events[-2]["id"])[1].splitlines()
    assert len(after) == 1

    assert checkpoint["id"] in cli("checkpoint", "get", checkpoint["id"])[1]
    assert cli("checkpoint", "download", checkpoint["id"], "policy.bin")[0] == 0
    assert (tmp_path / "policy.bin").read_bytes() == policy_file("policy")


def test_a_job_that_fails_is_a_failure_with_its_reason(
    cli: Cli, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(plan=[("failed", {"error": "no GPU"})])
    use(running, monkeypatch)
    running.ready()
    code, out, err = cli("job", "start", "CartPole", "--wait")
    assert (code, out, "no GPU" in err) == (8, "", True)
    (job,) = parsed(cli("job", "list", "--json"))
    assert cli("job", "wait", job["job_id"])[0] == 8
    assert cli("job", "logs", job["job_id"], "--follow")[0] == 8
    assert cli("job", "cancel", job["job_id"])[0] == 1


def test_a_job_that_runs_is_cancelled(
    cli: Cli, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start(plan=[("until_cancelled", {})])
    use(running, monkeypatch)
    running.ready()
    id = parsed(cli("job", "start", "CartPole", "--json"))["job_id"]
    code, _, err = cli("job", "wait", id, "--timeout", 0)
    assert (code, id in err) == (9, True)
    assert cli("job", "cancel", id)[1] == f"asked {id} to stop\n"
    assert running.finished("training", id) == "cancelled"
    assert cli("job", "wait", id)[0] == 6


def test_evaluations_are_run_read_compared_and_exported(
    cli: Cli, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trained = start(
        plan=[("checkpoint", {"episode": 5, "avg_reward": 1, "content": "p"}), ("completed", {})]
    )
    trained.ready()
    checkpoint = f"ckpt_{trained.train()}_5"
    trained.finished("training", checkpoint.removeprefix("ckpt_").rpartition("_")[0])
    trained.server.stop()
    results = {"mean_return": 1.0, "overall_score": 1.0, "return_interval": [0.0, 2.0]}
    running = start(plan=[*EPISODES, ("completed", {"results": results})])
    use(running, monkeypatch)

    report = parsed(cli("eval", "run", checkpoint, "--seeds", "0:3", "--json"))
    assert (report["asked"], report["scored"]) == (3, 3)
    later = parsed(cli("eval", "run", checkpoint, "--seeds", "0:3", "--no-wait", "--json"))
    assert cli("eval", "wait", later["id"])[0] == 0
    id = report["id"]
    shown = cli("eval", "report", id)[1]
    assert "3 asked, 3 scored, 0 failed" in shown
    assert "1 [0, 2] (95 %)" in shown
    assert [one["id"] for one in parsed(cli("eval", "list", "--limit", 1, "--json"))] == [
        later["id"]
    ]
    assert parsed(cli("eval", "get", id, "--json"))["status"] == "completed"
    assert cli("eval", "cancel", id)[0] == 1

    told = parsed(cli("eval", "compare", id, later["id"], "--json"))
    assert (told["delta"], told["winner"]) == (0.0, "tie")
    table = cli("eval", "compare", id, later["id"])[1]
    assert "ahead" in table
    assert "inconclusive: 0 [0, 0] (95 %)" in table
    assert table.splitlines()[-1].split() == ["2", "2", "2", "0"]
    assert cli("rollout", "compare", "CartPole", id, later["id"])[1] == table
    both = (
        "eval",
        "compare",
        checkpoint,
        checkpoint,
        "--checkpoints",
        "--env",
        "CartPole",
        "--json",
    )
    assert parsed(cli(*both))["winner"] == "tie"
    assert cli("eval", "compare", id, "eval_nothing")[0] == 3

    for name, begins in (
        ("r.json", b"{"),
        ("r.csv", b"evaluation_id,"),
        ("r.pdf", b"%PDF-"),
        ("r.html", b"<!doctype html>"),
    ):
        saved = parsed(cli("eval", "export", id, name, "--signature", "--json"))
        assert saved["signature"]
        assert (tmp_path / name).read_bytes().startswith(begins)
    _check_signed(cli, tmp_path)
    for form, opening in (("csv", "evaluation_id,"), ("html", "<!doctype html>"), ("json", "{")):
        assert cli("eval", "report", id, "--format", form)[1].startswith(opening)
        cli("eval", "report", id, "--format", form, "--output", f"shown.{form}")
        assert (tmp_path / f"shown.{form}").read_text().startswith(opening)
    assert cli("eval", "report", id, "--format", "pdf")[0] == 2
    assert cli("eval", "report", id, "--format", "pdf", "--output", "shown.pdf")[0] == 0
    assert (tmp_path / "shown.pdf").read_bytes().startswith(b"%PDF-")
    assert cli("eval", "report", id, "--output", "shown.txt")[0] == 2
    code, _, err = cli("eval", "export", id, "r.docx")
    assert (code, "pdf" in err, (tmp_path / "r.docx").exists()) == (2, True, False)


def _check_signed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "platform.pem").write_text(cli("audit", "report-key")[1])
    check = ("audit", "verify-report", "r.pdf", "--public-key", "platform.pem")
    assert parsed(cli(*check, "--json"))["size_bytes"] == (tmp_path / "r.pdf").stat().st_size
    found = [parsed(cli("audit", "verify-report", "r.csv", "--json"))["trust"] for _ in range(2)]
    assert found == ["first_use", "known"]
    other = cli(*check, "--signature", "r.csv.sig")
    assert (other[0], "not those that were signed" in other[2]) == (1, True)
    (tmp_path / "r.pdf.sig").unlink()
    missing = cli(*check)
    assert (missing[0], "there is no signature" in missing[2]) == (1, True)


def test_rollouts_and_figures_are_shown(
    cli: Cli, platform: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(platform, monkeypatch)
    platform.register()
    steps = [{"step": 0, "tool": "read", "reward": 1.0}, {"step": 1, "action": 1, "reward": 2.0}]
    body = {"environment_name": "CartPole", "steps": steps, "success": True}
    id = str(platform.ok(platform.http.post("/api/rollouts", json=body))["id"])
    assert [one["id"] for one in parsed(cli("rollout", "list", "--json"))] == [id]
    assert id in cli("env", "rollouts", "CartPole", "--limit", 1)[1]
    told = cli("rollout", "get", "CartPole", id)[1]
    assert told.splitlines()[-2].split() == ["0", "read", "1"]
    assert cli("rollout", "get", "CartPole", "nothing")[0] == 3
    assert parsed(cli("metrics", "show", "--env", "CartPole", "--json"))["avg_reward"] == 3.0
    assert "mean return      3\n" in cli("metrics", "show")[1]
    assert cli("metrics", "history")[1] == "No evaluations were kept.\n"
    assert cli("metrics", "clear", "--yes")[1] == "cleared the history\n"
    assert cli("metrics", "health")[0] == 0
    questions = parsed(cli("metrics", "tools", "--json"))
    asked = cli("metrics", "ask", questions[0]["name"])
    assert asked[0] in (0, 2), asked
    assert cli("metrics", "ask", "nonsense")[0] in (2, 3)
