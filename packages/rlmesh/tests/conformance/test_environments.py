"""Environments that people use conform, in this process and served."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import minigrid.wrappers
import pytest
from rlmesh import EnvServer
from rlmesh.conformance import Report, Verdict

pytestmark = pytest.mark.slow

Quick: TypeAlias = Callable[..., Report]

GYMNASIUM = [
    "Acrobot-v1",
    "Blackjack-v1",
    "CartPole-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Taxi-v4",
]
MINIGRID = [
    "MiniGrid-DistShift1-v0",
    "MiniGrid-DoorKey-5x5-v0",
    "MiniGrid-Dynamic-Obstacles-5x5-v0",
    "MiniGrid-Empty-Random-5x5-v0",
    "MiniGrid-Fetch-5x5-N2-v0",
    "MiniGrid-FourRooms-v0",
    "MiniGrid-GoToDoor-5x5-v0",
    "MiniGrid-KeyCorridorS3R1-v0",
    "MiniGrid-LavaGapS5-v0",
    "MiniGrid-MultiRoom-N2-S4-v0",
    "MiniGrid-PutNear-6x6-N2-v0",
]
SERVED = ["CartPole-v1", "Blackjack-v1", "Pendulum-v1", "Taxi-v4", *MINIGRID[1:4]]
# Legal, and true of these: nothing is random in them, or no random walk ends them in time.
MAY_BE_NOTED = {"episode_end", "seeds_differ"}


@pytest.mark.parametrize("name", GYMNASIUM)
def test_an_environment_of_gymnasium_conforms(name: str, quick: Quick) -> None:
    report = quick(name, steps=120)

    _judge(report)
    assert report["processes"].verdict is Verdict.PASSED
    assert report["render"].verdict is Verdict.PASSED


@pytest.mark.parametrize("name", MINIGRID)
def test_an_environment_of_minigrid_conforms(name: str, quick: Quick) -> None:
    report = quick(f"minigrid:{name}")

    _judge(report)
    assert report["contract"].verdict is Verdict.PASSED
    assert report["processes"].verdict is Verdict.PASSED


@pytest.mark.parametrize("name", SERVED)
def test_a_served_environment_conforms(name: str, quick: Quick) -> None:
    def make() -> Any:
        env = gym.make(name, render_mode="rgb_array")
        if name not in MINIGRID:
            return env
        seen: Any = minigrid.wrappers  # minigrid says nothing about types
        return seen.ImgObsWrapper(seen.FullyObsWrapper(env))

    with EnvServer(make, "tcp://127.0.0.1:0") as server:
        report = quick(server.address)

    _judge(report)
    for check in ("digest_stable", "values_survive", "latency", "threads", "render"):
        assert report[check].verdict is Verdict.PASSED, str(report[check])
    assert report.digest == server.env_contract.digest


def test_a_wrapped_environment_of_a_module_conforms(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import gymnasium as gym, minigrid\n"
        "from minigrid.wrappers import ImgObsWrapper\n"
        "def make():\n"
        "    return ImgObsWrapper(gym.make('MiniGrid-DoorKey-5x5-v0'))\n"
    )
    (tmp_path / "keys_and_doors.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    report = quick("keys_and_doors:make")

    _judge(report)
    assert report["processes"].verdict is Verdict.PASSED


def _judge(report: Report) -> None:
    assert report.conforms(), "\n".join(map(str, report.failed))
    noted = {finding.name for finding in report.of(Verdict.NOTED)}
    assert noted <= MAY_BE_NOTED, "\n".join(map(str, report.of(Verdict.NOTED)))
