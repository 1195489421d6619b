"""A module as an author writes one: factories that write down what is done to them."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

AUTHORED = """
import os
import sys
import gymnasium
import numpy as np
import rlmesh
from gymnasium import spaces
from rlmesh import Param, ParamSpec, Variant

print("the author's module speaks")
LOG = os.environ.get("AUTHOR_LOG")


def note(what):
    if LOG:
        with open(LOG, "a") as log:
            log.write(f"{os.getpid()} {what}\\n")


class Line(gymnasium.Env):
    metadata = {"render_modes": []}

    def __init__(self, size, length):
        note(f"made {size}")
        self.observation_space = spaces.Box(-1, 1, (size,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.length = length
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.low, {"options": dict(options or {}), "seeded": seed or 0}

    def step(self, action):
        self.steps += 1
        return self.observation_space.high, 1.0, self.steps >= self.length, False, {}

    def close(self):
        note("closed")


class Lines(rlmesh.EnvFactory):
    params = ParamSpec(
        Param("size", int, description="how wide", minimum=1, maximum=9),
        Param("mode", "enum", choices=("plain", "steep")),
    )
    reset_options = ("trial_index",)
    workflow_edition = "2026.06"

    def make(self, size=3, mode="plain", length: int = 2):
        return Line(size, length)

    def prepare(self):
        note("prepared")

    def close(self):
        note("factory closed")

    @classmethod
    def enumerate_variants(cls):
        return [Variant("small", {"size": 1}, title="Small"), Variant("huge", {"size": 100})]

    @classmethod
    def enumerate_params(cls):
        return {"size": [1, 2], "mode": ["plain", "steep"]}


class Broken(rlmesh.EnvFactory):
    def make(self):
        raise ValueError("the level is missing")


class Absent(rlmesh.EnvFactory):
    def make(self):
        raise FileNotFoundError("assets/level.bin")


class Policy(rlmesh.numpy.Model):
    params = ParamSpec(Param("path", str))
    native_chunk = 4

    def load(self, path="x", scale: float = 1.0): ...

    def predict(self, observation):
        return 1

    def predict_chunk(self, observation):
        return np.ones(4, np.int64)


def plain(size: int = 3):
    return Line(size, 2)
"""


@pytest.fixture
def author_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What was done to the author's objects, without the numbers of the processes."""
    file = tmp_path / "author.log"
    file.touch()
    monkeypatch.setenv("AUTHOR_LOG", str(file))
    return lambda: [line.partition(" ")[2] for line in file.read_text().splitlines()]


@pytest.fixture
def author_folder(tmp_path: Path) -> Path:
    """A folder with the author's module."""
    (tmp_path / "authored.py").write_text(AUTHORED)
    return tmp_path


@pytest.fixture
def authored(
    author_folder: Path, monkeypatch: pytest.MonkeyPatch, author_log: object
) -> Iterator[Any]:  # Any: classes of the author's
    """The author's module, imported; it writes into the log."""
    monkeypatch.setattr(sys, "path", [str(author_folder), *sys.path])
    sys.modules.pop("authored", None)
    module: ModuleType = importlib.import_module("authored")
    yield module
    sys.modules.pop("authored", None)


@pytest.fixture
def command(author_folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python module as a command beside the author's module."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=author_folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run
