# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import EnvironmentIdentity
from rleaas.training.config import validate_training_config
from rleaas.training.grpo.trainer import GRPOTrainer
from rleaas.training.trainer import Resume, SessionFactory, TrainingResults, TrainingTask

IDENTITY = EnvironmentIdentity("Bandit", 2, "sha256:" + "0" * 64)


class Bandit(gymnasium.Env[Any, Any]):
    """Shows one of three signs four times; the reward is 1 for the arm that the sign means."""

    def __init__(self) -> None:
        self.observation_space = spaces.Discrete(3, start=1)
        self.action_space = spaces.Discrete(3, start=-1)
        self.starts: list[tuple[int | None, int]] = []
        self._left = 0
        self._sign = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = 4
        self._sign = int(self.np_random.integers(3))
        self.starts.append((seed, self._sign))
        return np.int64(1 + self._sign), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(action == self._sign - 1)
        self._left -= 1
        self._sign = int(self.np_random.integers(3))
        return np.int64(1 + self._sign), reward, self._left == 0, False, {}


Train = Callable[..., TrainingResults]


@pytest.fixture
def bandit() -> type[Bandit]:
    """An environment that two hundred episodes solve."""
    return Bandit


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Run GRPO on environments made by `make_env`, reporting to `sink`."""

    def run(
        sink: Any,
        make_env: Callable[[], gymnasium.Env[Any, Any]] = Bandit,
        *,
        sessions: SessionFactory | None = None,
        num_episodes: int = 24,
        max_steps: int = 100,
        resume: Resume | None = None,
        job_id: str = "job_1",
        **config: object,
    ) -> TrainingResults:
        settings = {"seed": 1, "group_size": 4, "groups_per_update": 2, "num_envs": 4, **config}
        directory = tmp_path / job_id
        directory.mkdir(exist_ok=True)
        checked = validate_training_config("GRPO", num_episodes, max_steps, settings)
        task = TrainingTask(
            job_id=job_id,
            config=checked,
            seed=checked.effective_seed or 0,
            environment=IDENTITY,
            make_env=sessions or (lambda session: make_env()),
            directory=directory,
            resume=resume,
        )
        return GRPOTrainer().train(task, sink)

    return run
