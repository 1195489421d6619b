import argparse
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import rlmesh
from rlcore.command_line import Misuse
from rlmesh.cli.gate import FAILED, MISSED, PASSED, Gate
from rlmesh.cli.main import main
from rlmesh.numpy import Model
from rlmesh.recorder import load
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.results import EpisodeResult, RunResult

POLICY = """
import gymnasium
import numpy as np
from rlmesh.numpy import Model

def right(observation):
    return 1

class Coin(gymnasium.Env):
    '''Even seeds succeed at once; seed 7 breaks, at its first two resets.'''

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    broken = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed = seed
        if seed == 7 and Coin.broken < 2:
            Coin.broken += 1
            raise OSError("no level")
        return np.zeros(1, np.float32), {}

    def step(self, action):
        info = {"solved": self.seed % 2 == 0, "kind": "even" if self.seed % 2 == 0 else "odd"}
        return np.zeros(1, np.float32), float(action), True, False, info
"""


@pytest.fixture(autouse=True)
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coins.py").write_text(POLICY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "coins", raising=False)


def result(*successes: bool | None, failed: int = 0, asked: int | None = None) -> RunResult:
    episodes = [
        EpisodeResult(i, i, 1, 10.0 + i, True, False, success=success)
        for i, success in enumerate(successes)
    ]
    lost = [
        EpisodeResult(i, i, 1, None, False, False, outcome=Outcome.ENV_ERROR, error="x")
        for i in range(len(episodes), len(episodes) + failed)
    ]
    return RunResult((*episodes, *lost), asked=asked)


@pytest.mark.parametrize(
    ("gate", "run", "code"),
    [
        (Gate(), result(True, None), PASSED),
        (Gate(min_success=0.5), result(True, False), PASSED),
        (Gate(min_success=0.51), result(True, False), MISSED),
        (Gate(min_reward=11.5), result(None, None, None, None), PASSED),
        (Gate(min_reward=11.51), result(None, None, None, None), MISSED),
        # 95 % of 18 of 20 is 70 % to 97 %.
        (Gate(min_success=0.69, confident=True), result(*[True] * 18, False, False), PASSED),
        (Gate(min_success=0.70, confident=True), result(*[True] * 18, False, False), MISSED),
        # What has no score fails whatever was reached, unless it is allowed.
        (Gate(min_success=0.1), result(True, failed=1), FAILED),
        (Gate(min_success=0.1), result(True, asked=2), FAILED),
        (Gate(min_success=0.5, allow_failures=1), result(True, failed=1), PASSED),
        # A failure is no success: one of two, not one of one.
        (Gate(min_success=0.51, allow_failures=1), result(True, failed=1), MISSED),
        (Gate(allow_failures=1), result(failed=1), FAILED),
        (Gate(), result(), FAILED),
    ],
)
def test_a_run_ends_with_the_code_of_what_it_reached(gate: Gate, run: RunResult, code: int) -> None:
    assert gate.judge(run)[0] == code


def test_success_that_is_not_told_cannot_be_a_gate() -> None:
    with pytest.raises(Misuse, match="--success-key or --success-threshold"):
        Gate(min_success=0.5).judge(result(True, None))
    with pytest.raises(Misuse, match="at least two episodes"):
        Gate(min_reward=1.0, confident=True).judge(result(True))


def test_confidence_in_nothing_is_misuse() -> None:
    options = argparse.Namespace(
        min_success=None, min_reward=None, confident=True, allow_failures=0
    )
    with pytest.raises(Misuse, match="--confident needs"):
        Gate.of(options)


COIN = ["run", "coins:right", "coins:Coin"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--seeds", "0:4", "--min-success", "0.5", "--success-key", "solved"], 0, "passed: the s"),
        (["--seeds", "0:4", "--min-success", "0.9", "--success-key", "solved"], 3, "missed: the s"),
        (["--seeds", "0:8"], 1, "1 of 8 episodes have no score: too many"),
        (["--seeds", "0:8", "--allow-failures", "1"], 0, "no score: allowed"),
        (["--seeds", "0:8", "--retries", "2"], 0, "8 of 8 scored"),
    ],
)
def test_the_command_ends_with_that_code_and_says_why(
    options: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COIN, *options]) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--min-success", "90"], "90 % is 0.9"),
        (["--allow-failures", "-1"], "no whole number"),
        (["--step-timeout", "0"], "more than 0 seconds"),
        (["--view", "cinema"], "none of terminal, http, http:PORT, both"),
    ],
)
def test_wrong_usage_is_code_2(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*COIN, *options])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_gate_that_cannot_be_judged_is_code_2_after_the_result_was_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*COIN, "--min-success", "0.5"]) == 2

    captured = capsys.readouterr()
    assert "1 of 1 scored" in captured.out
    assert "--success-key" in captured.err


def test_json_goes_to_a_file_or_alone_to_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*COIN, "--seeds", "0:3", "--json", "out.json", "--task-key", "kind"]) == 0
    assert "episode 2  seed 2" in capsys.readouterr().out
    assert main([*COIN, "--seeds", "0:3", "--json"]) == 0
    printed = RunResult.from_json(capsys.readouterr().out)

    saved = RunResult.load("out.json")
    assert saved.rewards == printed.rewards == (1.0, 1.0, 1.0)
    assert list(saved.summary().tasks) == ["even", "odd"]


def test_a_journal_continues_where_the_last_command_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [*COIN, "--seeds", "6:9", "--journal", "run.jsonl"]
    assert main([*command, "--max-failures", "0"]) == 1
    assert "the run stopped after 2 episodes" in capsys.readouterr().err
    assert main([*command, "--max-failures", "5"]) == 1

    out = capsys.readouterr().out
    assert "2 of 3 scored, 1 failed" in out
    # A header, an episode, the one that failed, that one again, and the last.
    assert len(Path("run.jsonl").read_text().splitlines()) == 5
    assert main([*COIN, "--seeds", "0:2", "--journal", "run.jsonl"]) == 1
    assert "belongs to another run: len(seeds) is 3 there and 2 here" in capsys.readouterr().err


def test_a_recording_is_written_also_of_a_run_that_misses(tmp_path: Path) -> None:
    options = ["--seeds", "0:2", "--min-reward", "5", "--record", "bundle"]

    assert main([*COIN, *options]) == 3

    with closing(load(tmp_path / "bundle")) as bundle:
        assert [item.reward for item in bundle.workloads[0].episodes] == [1.0, 1.0]


def test_an_environment_behind_tls_is_reached_with_its_fingerprint(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("cryptography")
    with rlmesh.EnvServer(gymnasium.make("CartPole-v1"), "127.0.0.1:0", tls="auto") as server:
        command = ["run", "random", server.address, "--seeds", "0:3"]
        assert main(command) == 1
        assert "TLS" in capsys.readouterr().err
        assert main([*command, "--tls", server.tls_fingerprint or ""]) == 0
        assert "3 of 3 scored" in capsys.readouterr().out
    assert main([*COIN, "--tls", "system"]) == 1
    assert "--tls is for addresses" in capsys.readouterr().err


def test_a_served_model_is_run_by_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    model = Model(lambda observation: 1)
    model.start("127.0.0.1:0")
    try:
        assert main(["run", model.address, "coins:Coin", "--seeds", "0:3"]) == 0
    finally:
        model.shutdown()
    assert "3 of 3 scored, 0 failed, mean reward 1.00" in capsys.readouterr().out


def test_workers_play_the_same_episodes_as_one_process(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "random", "CartPole-v1", "--seeds", "0:6"]
    assert main([*command, "--json", "one.json"]) == 0
    assert main([*command, "--json", "two.json", "--num-workers", "2"]) == 0

    one, two = RunResult.load("one.json"), RunResult.load("two.json")
    assert one.agrees_with(two, tolerance=0) == ()
    assert main(["compare", "one.json", "two.json"]) == 0
    assert "identical: 6 pairs" in capsys.readouterr().out


def run_file(path: str, *rewards: float, **facts: Any) -> None:  # Any: the fields' own types
    episodes = tuple(
        EpisodeResult(i, i, 1, reward, True, False) for i, reward in enumerate(rewards)
    )
    RunResult(episodes, model=path, **facts).save(path)


@pytest.mark.parametrize(
    ("second", "options", "code", "said"),
    [
        ([2.0] * 8, [], 0, "new.json is better than old.json, by reward"),
        ([0.0] * 8, [], 3, "new.json is worse than old.json, by reward"),
        ([1.0] * 8, ["--decide"], 0, "identical: 8 pairs"),
        ([1.0, 1.5] * 4, [], 0, "would decide it"),
        ([1.0, 1.5] * 4, ["--decide"], 4, "would decide it"),
        ([1.0] * 8, ["--metric", "success"], 1, ""),
    ],
)
def test_two_runs_are_compared_with_an_exit_code(
    second: list[float],
    options: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_file("old.json", *[1.0, 1.0] * 4)
    run_file("new.json", *second)

    assert main(["compare", "old.json", "new.json", *options]) == code
    assert said in capsys.readouterr().out


def test_a_run_with_failures_is_not_simply_not_worse(capsys: pytest.CaptureFixture[str]) -> None:
    run_file("old.json", *[1.0] * 8)
    run_file("new.json", *[2.0] * 8, asked=9)

    assert main(["compare", "old.json", "new.json"]) == 1
    assert main(["compare", "old.json", "new.json", "--allow-failures", "1"]) == 0


def test_a_comparison_is_written_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    run_file("old.json", *[1.0] * 8)
    run_file("new.json", *[2.0] * 8)

    assert main(["compare", "old.json", "new.json", "--json", "out.json"]) == 0
    assert "better" in capsys.readouterr().out
    assert main(["compare", "old.json", "new.json", "--json"]) == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(Path("out.json").read_text())
    assert (printed["verdict"], printed["reward"]["difference"]) == ("better", 1.0)


def test_what_is_no_result_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.json").write_text("[]")
    assert main(["compare", "notes.json", "notes.json"]) == 1
    assert capsys.readouterr().err.startswith("error: not the record of a run")
    assert main(["compare", "missing.json", "notes.json"]) == 1
    assert "'missing.json' cannot be read" in capsys.readouterr().err


def test_help_names_every_exit_code() -> None:
    for command, codes in (("run", "0 1 2 3 130"), ("compare", "0 1 2 3 4")):
        done = subprocess.run(
            [sys.executable, "-m", "rlmesh", command, "--help"],
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        table = done.stdout.split("exit codes:")[1]
        assert all(f"\n  {code} " in table for code in codes.split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "random", "CartPole-v1", "--episodes", "-1"],
        ["run", "random", "CartPole-v1", "--min-reward", "nan"],
        ["compare", "a.json", "b.json", "--confidence", "2"],
    ],
)
def test_a_number_that_an_option_cannot_be_is_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_identical_runs_are_decided(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert main(["run", "random", "CartPole-v1", "--seeds", "0:8", "--output", str(path)]) == 0
    assert main(["compare", str(path), str(path), "--decide"]) == 0
