import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rlmesh
from rlmesh.cli.main import main
from rlmesh.runs.results import RunResult

POLICY = """
from rlmesh.numpy import Model

def left(observation):
    return 0

class Right(Model):
    def predict(self, observation):
        return 1

wrong = Model(lambda observation: 7)

def interrupting(observation, context):
    if context["episode_seed"] == 1:
        raise KeyboardInterrupt
    return 0

def raising(observation):
    raise OSError("a\\nb")

def on_tensors(observation):
    assert type(observation).__name__ == "Tensor"
    return 0

class Broken:
    def reset(self, *, seed=None):
        raise OSError("no level")

    def step(self, action):
        raise AssertionError("never reached")
"""


@pytest.fixture(autouse=True)
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policies.py").write_text(POLICY, encoding="utf-8")
    (tmp_path / "raising.py").write_text("raise ZeroDivisionError('at import')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "policies", raising=False)


def test_version_names_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0

    assert {"python", "rlmesh", "numpy"} <= json.loads(capsys.readouterr().out).keys()


def test_the_version_is_an_option_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])

    assert caught.value.code == 0
    assert capsys.readouterr().out == f"rlmesh {rlmesh.__version__}\n"


def test_no_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])

    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_run_prints_every_episode_and_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "policies:Right", "CartPole-v1", "--seeds", "3:5"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("episode 0  seed 3  completed  ")
    assert lines[1].startswith("episode 1  seed 4  completed  ")
    assert lines[2].startswith("CartPole-v1 (sha256:")
    assert "2 of 2 scored, 0 failed, mean reward" in lines[2]


@pytest.mark.parametrize("model", ["random", "policies:left"])
def test_run_as_json_is_a_result(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", model, "gym://CartPole-v1", "--seeds", "5,9", "--output", "result.json"]
    assert main([*command, "--success-threshold", "8", "--json"]) == 0

    result = RunResult.from_json(capsys.readouterr().out)
    assert result.seeds == (5, 9)
    assert result.success_rate == 1.0
    assert RunResult.from_json(Path("result.json").read_text(encoding="utf-8")) == result


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "policies:nobody", "CartPole-v1"], "cannot load 'policies:nobody'"),
        (["run", "nowhere:model", "CartPole-v1"], "cannot load 'nowhere:model'"),
        (
            ["run", "policies", "CartPole-v1"],
            "'policies' is neither MODULE:ATTRIBUTE nor a file of a policy",
        ),
        (["run", "random", "CartPoel-v1"], "CartPoel"),
        (["run", "policies:wrong", "CartPole-v1"], "must be 0 to 1"),
        (["ping", "tcp://127.0.0.1:1", "--timeout", "0.2"], "tcp://127.0.0.1:1"),
        (["ping", "tcp://127.0.0.1:1"], "pass --wait SECONDS"),
        (["run", "policies:left", "CartPole-v1", "--output", "no/x.json"], "no folder 'no'"),
        (["run", "policies:left", "CartPole-v1", "--output", "."], "it is a folder"),
        (["run", "raising:Z", "CartPole-v1"], "it raised ZeroDivisionError: at import"),
        (["run", "policies:raising", "CartPole-v1"], "'policies:raising' raised OSError: a b"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1

    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert text in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "random", "CartPole-v1", "--seeds", "a:b"], "'a:b' is neither FIRST:LAST"),
        (["run", "random", "CartPole-v1", "--seeds", "5:1"], "'5:1' names no seed"),
        (["run", "random", "CartPole-v1", "--episodes", "-2"], "'-2' is no whole number"),
        (["run", "random", "CartPole-v1", "--wait", "nan"], "'nan' is no number of seconds"),
        (["ping", "127.0.0.1:5000", "--timeout", "-1"], "'-1' is no number of seconds"),
        (["ping", "127.0.0.1:5000", "--timeout", "0"], "give more than 0 seconds"),
    ],
)
def test_options_that_make_no_sense_are_a_usage_error(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("address", ["carrier-pigeon://coop", "127.0.0.1:99999"])
def test_what_is_no_address_is_a_usage_error_in_one_line(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", address]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_failed_episodes_make_a_failed_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "policies:left", "policies:Broken", "--episodes", "2"]) == 1

    out = capsys.readouterr().out
    assert out.count("env_error") == 2
    assert "0 of 2 scored, 2 failed, no score" in out


def test_a_stopped_run_prints_what_was_finished(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "policies:left", "policies:Broken", "--episodes", "5", "--max-failures", "1"]
    assert main(command) == 1

    captured = capsys.readouterr()
    assert "0 of 5 scored, 2 failed" in captured.out
    assert captured.err.startswith("error: the run stopped after 2 episodes: 2 episodes failed")


def test_ctrl_c_prints_what_was_finished_and_ends_with_130(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "policies:interrupting", "CartPole-v1", "--episodes", "3"]) == 130

    captured = capsys.readouterr()
    assert "1 of 3 scored, 1 failed" in captured.out
    assert captured.err.strip() == "interrupted: 1 of 3 scored, 1 failed"


def test_native_functions_get_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "policies:on_tensors", "CartPole-v1", "--native"]) == 0


def test_a_reader_that_has_enough_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "rlmesh", "version"],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=30,
        )

    assert (done.returncode, done.stderr) == (0, b"")
