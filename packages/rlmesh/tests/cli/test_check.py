"""`rlmesh check` as it is typed."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from rlmesh import EnvServer
from rlmesh.cli.check_table import Look, table
from rlmesh.cli.main import main
from rlmesh.conformance import CHECKS, Finding, Place, Report, Verdict

ENVS = """
import time
import gymnasium as gym

class Unbounded(gym.Wrapper):
    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float("nan"), *rest

class Hanging(Unbounded):
    def step(self, action):
        while True:
            time.sleep(0.01)

def unmade():
    raise OSError("no level")
"""
QUICK = ["--steps", "20", "--skip", "processes,render"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "checked_envs.py").write_text(ENVS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "checked_envs", raising=False)
    return tmp_path


@pytest.fixture
def server() -> Iterator[EnvServer]:
    def make() -> Any:
        return gym.make("CartPole-v1")

    with EnvServer(make) as served:
        yield served


def test_an_environment_that_conforms_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "CartPole-v1", *QUICK]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("CartPole-v1 (sha256:")
    assert any(re.match(r"  ✓ seed_honoured +two instances", line) for line in lines)
    assert re.fullmatch(r"2\d passed, 0 failed, 0 noted, 0 skipped, in .* s", lines[-1])


def test_a_broken_promise_is_exit_code_1_and_says_how_to_get_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "checked_envs:Unbounded", "--only", "reward,flags", "--seeds", "4"]) == 1

    said = " ".join(capsys.readouterr().out.split())
    assert "✗ reward the reward is nan, which is not finite" in said
    assert "at step 1 after reset(seed=4), action_space.seed(0)" in said
    assert "✓ flags" in said
    assert "1 passed, 1 failed" in said


def test_what_is_noted_fails_with_strict(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["check", "CliffWalking-v1", "--steps", "20", "--only", "seeds_differ"]

    assert main(chosen) == 0
    assert "! seeds_differ" in capsys.readouterr().out
    assert main([*chosen, "--strict"]) == 1


def test_a_call_that_hangs_fails_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "checked_envs:Hanging", "--timeout", "0.5"]) == 1

    assert "✗ in_time" in capsys.readouterr().out


def test_a_call_that_holds_the_interpreter_ends_the_command(folder: Path) -> None:
    # Nothing of Python's runs any more, not even the waiting for the timeout.
    text = ENVS + (
        "import ctypes\n"
        "class Frozen(Unbounded):\n"
        "    def step(self, action):\n"
        "        ctypes.PyDLL(None).sleep(40)\n"
    )
    (folder / "checked_envs.py").write_text(text, encoding="utf-8")
    code = (
        "import sys, rlmesh.cli.check as check; check.GRACE_SECONDS = 1.0\n"
        "from rlmesh.cli.main import main\n"
        "sys.exit(main(['check', 'checked_envs:Frozen', '--timeout', '1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=35
    )

    assert done.returncode == 1
    assert "checked_envs.py" in done.stderr
    assert "the process ended (exit 1) in step 1 after reset(seed=0)" in done.stdout


def test_a_served_environment_is_checked_at_its_address(
    server: EnvServer, capsys: pytest.CaptureFixture[str]
) -> None:
    for address in (server.address, server.address.removeprefix("tcp://")):
        assert main(["check", address, "--steps", "20", "--wait", "5"]) == 0

        said = capsys.readouterr().out
        assert f"at {address}" in said
        assert re.search(r"✓ latency +p50 [\d.]+ ms, p99 [\d.]+ ms", said)
        assert "✓ digest_stable" in said


def test_a_server_with_tls_and_a_token_is_checked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_TOKEN", "open sesame")
    with EnvServer(gym.make("CartPole-v1"), tls="auto", token="open sesame") as served:
        trusted = str(served.tls_fingerprint)

        assert main(["check", served.address, "--tls", trusted, "--only", "plays,reward"]) == 0
        assert main(["check", served.address, "--tls", f"sha256:{'0' * 64}"]) == 2

    assert "✓ reward" in capsys.readouterr().out


def test_several_targets_are_checked_and_the_worst_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    targets = ["CartPole-v1", "checked_envs:Unbounded"]

    assert main(["check", *targets, "--only", "reward", "--json", "reports.json"]) == 1

    assert capsys.readouterr().out.count("sha256:") == 2
    reports = json.loads(Path("reports.json").read_text(encoding="utf-8"))["reports"]
    assert [one["target"] for one in reports] == targets
    (reward,) = reports[1]["checks"]
    assert reward["verdict"] == "failed"
    assert reward["reproduce"] == {"seed": 0, "action_seed": 0, "step": 1}


def test_json_to_standard_output_is_nothing_but_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "CartPole-v1", "--only", "reward", "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["reports"][0]["environment"] == "CartPole-v1"


def test_json_to_standard_output_is_json_whatever_the_environment_prints(folder: Path) -> None:
    text = ENVS + 'class Prints(Unbounded):\n    print("hello")\n'
    (folder / "checked_envs.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "rlmesh", "check", "checked_envs:Prints", "--json", "-"]
    done = subprocess.run(
        [*command, "--only", "flags"], cwd=folder, capture_output=True, text=True, timeout=35
    )

    assert json.loads(done.stdout)["reports"][0]["counts"]["passed"] == 1
    assert "hello" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "there is no TARGET"),
        (["tcp://127.0.0.1:1"], "nothing answers there"),
        (["tcp://127.0.0.1:1"], "pass --wait SECONDS"),
        (["NoSuch-v1"], "gymnasium has no environment 'NoSuch-v1'"),
        (["nowhere:Env"], "'nowhere'"),
        (["checked_envs:unmade"], "no level"),
        (["CartPole-v1", "--only", "seed_honored"], "Did you mean seed_honoured?"),
        (["CartPole-v1", "--skip", "reward,xyzzy"], "there is no check 'xyzzy'"),
        (["CartPole-v1", "--only", "plays", "--skip", "plays"], "no check is left"),
        (["CartPole-v1", "--only", ","], "--only names no check"),
        (["CartPole-v1", "--steps", "0"], "Play one step at least"),
        (["CartPole-v1", "--json", "no/x.json"], "--json 'no/x.json' cannot be written"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_2_and_one_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *arguments]) == 2

    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert text in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "option",
    [["--seeds", "5:1"], ["--seeds", "0:100000000000"], ["--timeout", "0"], ["--nonsense"]],
)
def test_options_that_make_no_sense_are_exit_code_2(option: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["check", "CartPole-v1", *option])

    assert caught.value.code == 2


def test_one_target_that_cannot_be_reached_does_not_keep_the_others_from_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["check", "tcp://127.0.0.1:1", "CartPole-v1", "--only", "reward"]) == 2

    assert "✓ reward" in capsys.readouterr().out


def test_the_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == 0

    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(CHECKS)


def test_help_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    assert "check whether environments keep their promises" in capsys.readouterr().out


def test_a_table_fits_its_terminal_and_its_encoding() -> None:
    place = Place(3, 1, 7)
    fix = "Return a finite float; mark a failed episode by a flag or in the info."
    findings = (
        Finding(Verdict.FAILED, "the reward is " + "very " * 30 + "odd", fix, place, "reward"),
        Finding(Verdict.PASSED, "all is well", name="flags"),
    )
    report = Report("my:Env", "my:Env", None, (3,), 50, 1.25, findings)

    plain = table(report, Look(colour=False, marks=False, width=60))
    coloured = table(report, Look(colour=True, marks=True, width=60))

    assert plain.isascii()
    assert max(map(len, plain.splitlines())) <= 60
    assert plain.splitlines()[1].startswith("  FAIL reward  the reward is very")
    assert "-> Return a finite float" in plain
    assert "\x1b[31m  ✗ reward\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()[-1] == plain.splitlines()[-1]
