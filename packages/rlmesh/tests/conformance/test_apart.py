"""An environment that ends its process is reported, and ends nobody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rlmesh.conformance import Place, Verdict, check, check_apart

ENVS = """
import os
import sys
import gymnasium as gym

class Cart(gym.Wrapper):
    taken = 0

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def step(self, action):
        self.taken += 1
        if self.taken == 7:
            self.end()
        return super().step(action)

class Exits(Cart):
    def end(self):
        os._exit(0)

class Crashes(Cart):
    def end(self):
        import ctypes
        ctypes.string_at(0)

class Interrupts(Cart):
    def end(self):
        raise KeyboardInterrupt

class CrashesWhenWronged(Cart):
    def step(self, action):
        if not self.action_space.contains(action):
            os.abort()
        return gym.Wrapper.step(self, action)

class CrashesTheSecondTime(Cart):
    made = 0

    def __init__(self):
        super().__init__()
        CrashesTheSecondTime.made += 1
        self.taken = 1000 if self.made == 1 else 0

    def end(self):
        os._exit(5)

class HasNoSpaceToShow(Cart):
    @property
    def observation_space(self):
        raise OSError("no space")

class HasNoModeToShow(Cart):
    @property
    def render_mode(self):
        raise OSError("no mode")

class Prints(Cart):
    def end(self):
        print("hello from the cart")
"""
NAMES = ["contract", "plays", "reward", "made_again", "illegal_action"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ending_envs.py").write_text(ENVS, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.parametrize(("name", "way"), [("Exits", "exit 0"), ("Crashes", "signal SIGSEGV")])
def test_the_end_of_the_process_fails_plays_and_tells_the_step(name: str, way: str) -> None:
    report = check_apart(f"ending_envs:{name}", steps=20, only=NAMES)

    assert [finding.name for finding in report] == NAMES
    assert [finding.name for finding in report.failed] == ["plays"]
    assert report["plays"].seen.startswith(f"the process ended ({way}) in step 7 after reset(")
    assert report["plays"].place == Place(0, 0, 7)
    assert report["reward"].verdict is Verdict.SKIPPED


def test_an_end_fails_the_report_also_where_other_checks_were_chosen() -> None:
    report = check_apart("ending_envs:Exits", steps=20, only=["reward"])

    assert [finding.name for finding in report.failed] == ["plays"]


def test_what_was_judged_before_the_end_is_kept() -> None:
    report = check_apart("ending_envs:CrashesTheSecondTime", steps=20, only=NAMES)

    assert report["plays"].verdict is Verdict.PASSED
    assert report["reward"].verdict is Verdict.PASSED
    assert [finding.name for finding in report.failed] == ["made_again"]
    assert "exit 5" in report["made_again"].seen
    assert report.digest is not None


def test_an_illegal_action_that_ends_the_process_costs_no_other_check() -> None:
    report = check_apart("ending_envs:CrashesWhenWronged", steps=20, only=NAMES)

    assert [finding.name for finding in report] == NAMES
    assert [finding.name for finding in report.failed] == ["illegal_action"]
    assert "signal SIGABRT" in report["illegal_action"].seen
    assert report["made_again"].verdict is Verdict.PASSED


def test_a_keyboard_interrupt_of_the_environment_is_what_it_raised() -> None:
    report = check("ending_envs:Interrupts", steps=20, only=NAMES)

    assert [finding.name for finding in report.failed] == ["plays"]
    assert "raised KeyboardInterrupt" in report["plays"].seen


@pytest.mark.parametrize(("name", "text"), [("Space", "no space"), ("Mode", "no mode")])
def test_what_cannot_be_read_fails_contract(name: str, text: str) -> None:
    report = check(f"ending_envs:HasNo{name}ToShow", steps=20, only=["reward"])

    assert [finding.name for finding in report.failed] == ["contract"]
    assert f"OSError: {text}" in report["contract"].seen
    assert report["reward"].verdict is Verdict.SKIPPED


def test_what_the_environment_prints_is_kept_apart(capfd: pytest.CaptureFixture[str]) -> None:
    report = check_apart("ending_envs:Prints", steps=20, only=["plays"])

    assert report.conforms()
    said = capfd.readouterr()
    assert said.out == ""
    assert "hello from the cart" in said.err


def test_errors_are_those_of_a_check() -> None:
    with pytest.raises(ConfigurationError, match="has no attribute 'Nowhere'"):
        check_apart("ending_envs:Nowhere")
