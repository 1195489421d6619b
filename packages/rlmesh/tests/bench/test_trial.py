"""Environments that must not take the bench with them."""

from pathlib import Path

import pytest
from rlmesh.bench.cells import Subject
from rlmesh.bench.reference import REFERENCES
from rlmesh.bench.trial import CannotBeMeasured, tried

ENVS = """
import os
import threading

import numpy as np
from rlmesh.bench.reference import Frames, noop


class Leaving(Frames):
    def __init__(self):
        super().__init__("leaving", noop().observation_space)

    def step(self, action):
        os._exit(3)


class Hanging(Leaving):
    def step(self, action):
        threading.Event().wait()


class Unseeded(Leaving):
    def step(self, action):
        return np.random.default_rng().random(4, np.float32), 0.0, False, False, {}


class Raising(Leaving):
    def step(self, action):
        raise OSError("no disk")
"""


@pytest.fixture(autouse=True)
def envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trial_envs.py").write_text(ENVS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def subject(name: str) -> Subject:
    return Subject(name, 100, source=f"trial_envs:{name}")


def test_an_environment_that_ends_its_process_is_an_error() -> None:
    with pytest.raises(CannotBeMeasured, match="the trial ended with exit code 3"):
        tried(subject("Leaving"))


def test_an_environment_that_hangs_is_an_error_after_a_time() -> None:
    with pytest.raises(CannotBeMeasured, match="trying it took more than 2 s"):
        tried(subject("Hanging"), seconds=2)


def test_an_environment_that_raises_is_an_error() -> None:
    with pytest.raises(CannotBeMeasured, match="OSError: no disk"):
        tried(subject("Raising"))


def test_what_is_random_is_measured_without_a_check() -> None:
    found, unchecked = tried(subject("Unseeded"))

    assert found == subject("Unseeded")
    assert unchecked is not None
    assert "with one seed give other observations" in unchecked


@pytest.mark.parametrize(("name", "lanes"), [("noop", 1), ("vec16", 16)])
def test_lanes_are_counted(name: str, lanes: int) -> None:
    found, unchecked = tried(Subject(name, 100, source=REFERENCES[name].source))

    assert (found.lanes, unchecked) == (lanes, None)
