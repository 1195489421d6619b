from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium import spaces
from rlcore import EnvironmentIdentity
from rleaas.training.config import validate_training_config
from rleaas.training.sb3.trainer import SB3Trainer
from rleaas.training.trainer import Progress, Resume, TrainingResults, TrainingTask

IDENTITY = EnvironmentIdentity("CartPole", 2, "sha256:" + "0" * 64)


@dataclass
class Notebook:
    """A sink that keeps what it is told, and asks for a stop after so many steps."""

    stop_after: int | None = None
    episodes: list[Progress] = field(default_factory=list[Progress])
    rollouts: list[Mapping[str, float]] = field(default_factory=list[Mapping[str, float]])
    lines: list[str] = field(default_factory=list[str])
    checkpoints: list[tuple[str, Progress, Path]] = field(
        default_factory=list[tuple[str, Progress, Path]]
    )
    states: list[Path | None] = field(default_factory=list[Path | None])
    alerts: list[tuple[str, Mapping[str, object]]] = field(
        default_factory=list[tuple[str, Mapping[str, object]]]
    )
    asked: int = 0

    def episode_finished(self, progress: Progress) -> None:
        self.episodes.append(progress)

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        self.rollouts.append(diagnostics)

    def log(self, line: str) -> None:
        self.lines.append(line)

    def alert(self, kind: str, data: Mapping[str, object]) -> None:
        self.alerts.append((kind, data))

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        self.checkpoints.append((label, progress, path))
        self.states.append(state)

    def stop_requested(self) -> bool:
        self.asked += 1
        return self.stop_after is not None and self.asked >= self.stop_after


class Countdown(gymnasium.Env[Any, Any]):
    """Ends after four steps; `broken` is what its third step does instead of working."""

    def __init__(self, broken: Callable[[], float] | None = None, start: int = 0) -> None:
        self.observation_space = spaces.Discrete(5, start=start)
        self.action_space = spaces.Discrete(2, start=start)
        self._start = start
        self._broken = broken
        self._left = 0
        self.seeds: list[int | None] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seeds.append(seed)
        self._left = 4
        return self._start + 4, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self._left -= 1
        reward = 1.0
        if self._broken is not None and self._left == 1:
            reward = self._broken()
        return self._start + self._left, reward, self._left == 0, False, {}


Train = Callable[..., TrainingResults]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Run an algorithm on environments made by `make_env`, reporting to `sink`."""

    def run(
        sink: Notebook,
        make_env: Callable[[], gymnasium.Env[Any, Any]] = Countdown,
        *,
        num_episodes: int = 40,
        max_steps: int = 100,
        algorithm: str = "PPO",
        resume_from: Path | None = None,
        resume: Resume | None = None,
        job_id: str = "job_1",
        **config: object,
    ) -> TrainingResults:
        settings: dict[str, object] = {"seed": 1, **config}
        if algorithm == "PPO":
            settings = {"n_steps": 16, "num_envs": 2, "n_epochs": 1, **settings}
        directory = tmp_path / job_id
        directory.mkdir(exist_ok=True)
        checked = validate_training_config(algorithm, num_episodes, max_steps, settings)
        task = TrainingTask(
            job_id=job_id,
            config=checked,
            seed=checked.effective_seed or 0,
            environment=IDENTITY,
            make_env=lambda session: make_env(),
            directory=directory,
            resume=resume if resume_from is None else Resume(policy=resume_from),
        )
        return SB3Trainer().train(task, sink)

    return run


@pytest.fixture
def notebook() -> Notebook:
    """A fresh sink."""
    return Notebook()


@pytest.fixture
def notebook_type() -> type[Notebook]:
    """The class of sinks, for tests that give it an order."""
    return Notebook


@pytest.fixture
def countdown() -> type[Countdown]:
    """An environment whose every episode has four steps and a return of four."""
    return Countdown
