from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from rlmesh.numpy import Model
from rlmesh.recorder import Recorder
from rlmesh.runs.hooks import RunHooks
from rlmesh.runs.results import RunResult
from rlmesh.runs.run import run

Picture = NDArray[np.uint8]


class Walk(gym.Env[Any, Any]):  # Any: gymnasium's own samples
    """Walks as it is seeded and told; draws its step number times 20, everywhere."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    render_mode: str | None = "rgb_array"
    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(
        self,
        length: int = 5,
        size: tuple[int, int] = (48, 64),
        named: dict[str, str] | None = None,
    ) -> None:
        self.length, self.size, self.named = length, size, named or {}
        self.at = 0
        self.where: NDArray[Any] = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at = 0
        self.where = self.np_random.normal(size=2).astype(np.float32)
        return self.where, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        push = self.np_random.normal(size=2).astype(np.float32) * np.float32(0.1)
        self.where = self.where + push + np.float32(int(action))
        over = self.at >= self.length
        info = {"at": self.at, **({"is_success": True} if over else {}), **self.named}
        return self.where, float(self.where.sum()), over, False, info

    def render(self) -> Any:  # Any: gymnasium's own, which is generic
        return np.full((*self.size, 3), min(255, self.at * 20), np.uint8)


@pytest.fixture
def walk() -> type[Walk]:
    return Walk


@pytest.fixture
def alternating() -> Model:
    return Model(lambda observation: int(observation[0] > 0))


Played = Callable[..., RunResult]


@pytest.fixture
def play(alternating: Model) -> Played:
    """Run a model that depends on what it sees, without a progress line."""

    def played(env: object, hooks: RunHooks | None = None, **options: Any) -> RunResult:
        options.setdefault("seeds", [1, 2])
        return run(options.pop("model", alternating), env, hooks=hooks, progress=False, **options)

    return played


@pytest.fixture
def bundle(tmp_path: Path, play: Played) -> Path:
    """Two episodes of a walk with observations, without videos."""
    with Recorder(result_set_id="fixed") as recorder:
        hooks = recorder.capture(
            model="walker", env="Walk", cameras=[], observations=True, info_keys=["at"]
        )
        play(Walk(), hooks)
        return recorder.export(tmp_path / "bundle")


@pytest.fixture
def full_disk() -> Callable[[int], AbstractContextManager[None]]:
    """Have no file of this process grow beyond so many bytes, as on a disk that is full."""

    @contextmanager
    def limited(size: int) -> Generator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
