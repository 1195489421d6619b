"""The same author's module, described by the published package and by ours, part by part."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

AUTHORED = """
import gymnasium
import numpy as np
import rlmesh
from gymnasium import spaces
from rlmesh import Param, ParamSpec, Variant, Vector


class Env(gymnasium.Env):
    metadata = {"render_modes": []}

    def __init__(self, size=3):
        self.observation_space = spaces.Dict({
            "free": spaces.Box(-np.inf, np.inf, (size,), np.float32),
            "half": spaces.Box(0, np.inf, (2,), np.float64),
            "each": spaces.Box(np.array([-1, -np.inf], np.float32), np.array([1, 2], np.float32)),
            "frame": spaces.Box(0, 255, (2, 2, 3), np.uint8),
            "whole": spaces.Box(-5, 5, (2,), np.int32),
            "half_precision": spaces.Box(0, 1, (2,), np.float16),
            "bits": spaces.MultiBinary(3),
            "flags": spaces.Box(0, 1, (2,), np.bool_),
            "text": spaces.Text(5, min_length=1, charset="ab"),
            "pair": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3, start=1))),
        })
        self.action_space = spaces.MultiDiscrete([2, 3])

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


class Full(rlmesh.EnvFactory):
    workflow_edition = "2026.06"
    reset_options = ("trial_index",)
    params = ParamSpec(
        Param("size", int, description="how wide", group="shape"),
        Param("mode", "enum", choices=("x", "y")),
        Param("goal", Vector(3, unit=True)),
        Param("spot", Vector(2)),
        Param("label", "a label"),
        Param("raw", bytes),
        Param("speed", float),
        Param("name"),
        Param("on", "bool", choices=(True,)),
        extra="passthrough",
    )

    def make(self, size=3, mode="x", goal=(1.0, 0.0, 0.0), spot=(0, 0), label=None, raw=b"x",
             speed=0.5, name="q", on=True, other: int = 7, quoted: "str" = "z", bare=None,
             items: list = (), maybe: "int|None" = None, either: int | None = 1,
             far: float = float("inf"), table: dict = {"b": 1, "a": (1,)}, *, last=1,
             pair=(1, 2.5), flag=True, part=0.5, **more):
        return Env(size)

    @classmethod
    def enumerate_variants(cls):
        return [Variant("small", {"size": 1}, title="Small"), Variant("bad", {"size": "x"})]

    @classmethod
    def enumerate_params(cls):
        return {"size": [1, 2], "mode": ["x", "y"]}


class Bare(rlmesh.EnvFactory):
    def make(self, size: int = 3):
        return gymnasium.make_vec("CartPole-v1", num_envs=2)


class Odd(rlmesh.EnvFactory):
    def make(self):
        raise ValueError("the level is missing")

    def enumerate_variants(self):
        return []


class Policy(rlmesh.numpy.Model):
    params = ParamSpec(Param("path", str))
    native_chunk = 4

    def load(self, path="x", scale: float = 1.0): ...

    def predict(self, observation):
        return 1

    def predict_chunk(self, observation):
        return [1]


class Plain(rlmesh.Model):
    def predict_batch(self, observations, contexts):
        return observations
"""
# What is about this build and its surroundings, not about what is described.
BUILD = ("package_version", "framework_versions")


def described(python: str | Path, target: str, folder: Path) -> tuple[str, dict[str, Any]]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-m", "rlmesh", "describe", target],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.stdout.strip(), found


@pytest.fixture(scope="module")
def published(helpers: None) -> Path:
    python: Path = import_module("interop_hub").published_python()
    return python


@pytest.mark.parametrize("name", ["Full", "Bare", "Odd", "Policy", "Plain"])
def test_a_description_of_ours_is_the_published_one_part_by_part(
    name: str, tmp_path: Path, published: Path
) -> None:
    (tmp_path / "authored.py").write_text(AUTHORED)

    theirs_text, theirs = described(published, f"authored:{name}", tmp_path)
    ours_text, ours = described(sys.executable, f"authored:{name}", tmp_path)

    for part in BUILD:
        assert theirs["runtime"].pop(part)
        assert ours["runtime"].pop(part)
    for entry in [*theirs.get("variants", {}).get("catalog", ())]:
        if "error" in entry:
            # The words are each package's own.
            entry["error"] = next(
                mine["error"] for mine in ours["variants"]["catalog"] if mine["id"] == entry["id"]
            )
    assert list(theirs) == list(ours)
    for part, content in theirs.items():
        assert ours[part] == content, part
    # Both texts are canonical: the same content stands there in the same order.
    until = theirs_text.index('"runtime"')
    if "error" not in theirs_text:
        assert ours_text[:until] == theirs_text[:until]
