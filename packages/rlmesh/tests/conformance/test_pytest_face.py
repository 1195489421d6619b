"""The checks as tests: pytest run on a suite as users write it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rlmesh.conformance import EnvConformance

SUITE = """
import gymnasium as gym
from rlmesh.conformance import EnvConformance


class TestNamed(EnvConformance):
    target = "CartPole-v1"
    steps = 30
    skip = ("processes",)


class Bad(gym.Wrapper):
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, float("inf"), *rest


class TestMade(EnvConformance):
    steps = 30

    def make(self):
        return Bad(gym.make("CartPole-v1"))


class TestStrict(EnvConformance):
    target = "CliffWalking-v1"
    steps = 30
    strict = True
    skip = ("processes",)


class TestEnding(EnvConformance):
    target = "ending:make"
    steps = 30


class TestNothing(EnvConformance):
    pass
"""


ENDING = """
import os
import gymnasium as gym


class Ends(gym.Wrapper):
    def step(self, action):
        os._exit(0)


def make():
    return Ends(gym.make("CartPole-v1"))
"""


def _pytest(folder: Path, *arguments: str) -> str:
    (folder / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (folder / "ending.py").write_text(ENDING, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rsfE", *arguments]
    wide = {**os.environ, "COLUMNS": "250", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, timeout=50)
    return done.stdout + done.stderr


def test_each_check_is_a_test_with_its_verdict(tmp_path: Path) -> None:
    out = _pytest(tmp_path)

    for expected in (
        "TestMade::test_conforms[reward] - AssertionError: reward failed: the reward is inf",
        "TestEnding::test_conforms[plays] - AssertionError: plays failed: the process ended (exit",
        "TestStrict::test_conforms[seeds_differ] - AssertionError: seeds_differ noted: all 3",
        "processes: left out by `skip`",
        "autoreset: not about such an environment",
        "TestNothing names no environment to check",
        "the environment could not be had; see the first test",
    ):
        assert expected in out, out
    assert "FAILED test_suite.py::TestNamed" not in out
    assert "Warning" not in out, out
    assert len([line for line in out.splitlines() if line.startswith("ERROR")]) == 1
    failed = [line for line in out.splitlines() if line.startswith("FAILED")]
    made = [line for line in failed if "TestMade" in line]
    assert len(made) == 1, made


def test_one_check_can_be_run_alone(tmp_path: Path) -> None:
    out = _pytest(tmp_path, "-k", "TestNamed and seed_honoured")

    assert "1 passed" in out, out


def test_the_checks_are_there_without_pytest() -> None:
    code = (
        "import sys; sys.modules['pytest'] = None\n"
        "import rlmesh.conformance as conformance\n"
        "print(len(conformance.CHECKS))\n"
        "try: conformance.EnvConformance\n"
        "except ImportError: print('only the suite needs pytest')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout.splitlines()[1:] == ["only the suite needs pytest"]


def test_a_suite_that_names_no_environment_is_told_what_to_give() -> None:
    class TestNothing(EnvConformance):
        pass

    with pytest.raises(ConfigurationError, match=r"TestNothing names no .* make\(\)"):
        TestNothing().make()
